"""Events that go out, to which targets, and what became of each (decision 0102)."""

from __future__ import annotations

import uuid

from django.db import models

from approvals.encryption.fields import EncryptedTextField


class OutboxEvent(models.Model):
    """One event, written in the transaction of the audit entry that it is about and has its number of.

    It says what the deployment was then, and refers to no row: what it tells of may go before it is sent.
    """

    number = models.PositiveBigIntegerField(primary_key=True)
    type = models.CharField(max_length=60)
    cluster = models.CharField(max_length=63, blank=True)
    subject = models.CharField(max_length=400)
    labels = models.JSONField(default=list)  # each set that its deployment had; of no deployment an empty list
    severity = models.CharField(max_length=10, blank=True, help_text="of the worst new finding; empty: of no request")
    data = models.JSONField(default=dict)
    at = models.DateTimeField()
    spread_at = models.DateTimeField(null=True, blank=True, help_text="when targets were found for it")

    class Meta:
        ordering = ["number"]
        indexes = [
            models.Index(fields=["number"], condition=models.Q(spread_at__isnull=True), name="event_to_spread"),
            models.Index(fields=["at"], name="event_time"),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.type}"


class NotificationTarget(models.Model):
    """Where events are sent to. What is left empty narrows nothing.

    `granted` are the clusters of which its last writer may see all, asked when it was saved: no other is told of.
    `rests_until` and `failures` are of a target that does not answer: it is tried rarely then, whatever waits for it.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    name = models.SlugField(max_length=63, unique=True)
    kind = models.CharField(max_length=20)
    address = EncryptedTextField(place="address of notification target", bound_to=["uid"])
    event_types = models.JSONField(default=list)
    clusters = models.JSONField(default=list, help_text="names or globs, as they were written")
    granted = models.JSONField(default=list)
    labels = models.JSONField(default=dict)
    min_severity = models.CharField(max_length=10, blank=True)
    is_active = models.BooleanField(default=True)
    stopped_because = models.CharField(max_length=500, blank=True)
    secret = EncryptedTextField(place="secret of notification target", bound_to=["uid"])
    earlier = EncryptedTextField(place="earlier secret of notification target", bound_to=["uid"], blank=True)
    earlier_until = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    rests_until = models.DateTimeField(null=True, blank=True)
    version = models.PositiveIntegerField(default=1)
    created_by = models.CharField(max_length=253)
    created_at = models.DateTimeField()
    changed_by = models.CharField(max_length=253)
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class NotificationDelivery(models.Model):
    """One event for one target: waiting while `send_at` is set, else delivered or dead."""

    target = models.ForeignKey(NotificationTarget, on_delete=models.CASCADE, related_name="deliveries")
    event = models.ForeignKey(OutboxEvent, on_delete=models.CASCADE, related_name="deliveries")
    subject = models.CharField(max_length=400, help_text="of the event: what is about one subject keeps its order")
    send_at = models.DateTimeField(null=True, blank=True, help_text="when it is sent next; null: never again")
    attempts = models.PositiveIntegerField(default=0)
    tried_at = models.DateTimeField(null=True, blank=True)
    status = models.PositiveIntegerField(default=0, help_text="of the last answer; 0: there was none")
    milliseconds = models.PositiveIntegerField(default=0, help_text="that the last attempt took")
    problem = models.CharField(max_length=500, blank=True, help_text="why the last attempt did not deliver it")
    delivered_at = models.DateTimeField(null=True, blank=True)
    dead_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["target", "event"], name="event_once_per_target"),
            models.CheckConstraint(
                condition=models.Q(send_at__isnull=False, delivered_at__isnull=True, dead_at__isnull=True)
                | models.Q(send_at__isnull=True, delivered_at__isnull=False, dead_at__isnull=True)
                | models.Q(send_at__isnull=True, delivered_at__isnull=True, dead_at__isnull=False),
                name="delivery_waits_or_is_delivered_or_dead",
            ),
        ]
        indexes = [
            models.Index(
                fields=["target", "subject", "event"],
                condition=models.Q(send_at__isnull=False),
                name="delivery_waiting",
            ),
            models.Index(fields=["target", "-id"], name="delivery_lately"),
        ]

    def __str__(self) -> str:
        return f"{self.event_id} to {self.target_id}"
