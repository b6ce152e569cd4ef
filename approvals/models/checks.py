"""What external checks were asked about requests, and what they answered (decision 0098)."""

from __future__ import annotations

import uuid

from django.db import models

from approvals.encryption.fields import EncryptedTextField


class CheckSecret(models.Model):
    """What signs the events for one ExternalCheck; the one before signs as well until `earlier_until`."""

    cluster = models.ForeignKey("approvals.Cluster", on_delete=models.CASCADE, related_name="+")
    check_uid = models.CharField(
        max_length=63, help_text="of the ExternalCheck: another of its name has another secret"
    )
    secret = EncryptedTextField(place="secret of external check", bound_to=["cluster_id", "check_uid"])
    earlier = EncryptedTextField(
        place="earlier secret of external check", bound_to=["cluster_id", "check_uid"], blank=True
    )
    earlier_until = models.DateTimeField(null=True, blank=True)
    made_by = models.CharField(max_length=253)
    made_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["cluster", "check_uid"], name="one_secret_per_external_check")]

    def __str__(self) -> str:
        return f"secret of {self.check_uid}"


class CheckRun(models.Model):
    """One question to one external check about one subject. Of several the one with the highest `number` counts.

    Its `uid` is the id of the event, however often that is sent. What is written to a run is written under the lock of
    its request, but what became of sending: the first attempt puts `due_at` off by how long it waited in line.
    """

    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    request = models.ForeignKey("approvals.Request", on_delete=models.CASCADE, related_name="check_runs")
    round = models.PositiveIntegerField()
    subject_digest = models.CharField(max_length=80)
    check_uid = models.CharField(max_length=63)
    check_name = models.CharField(max_length=253)
    stage = models.CharField(max_length=20)
    enforcement = models.CharField(max_length=20)
    url = models.CharField(max_length=500)
    number = models.PositiveIntegerField(help_text="among the questions of this check about this round, from 1")
    asked_by = models.CharField(max_length=253, blank=True, help_text="who had it run again; empty: Pratique")
    asked_at = models.DateTimeField()
    due_at = models.DateTimeField(help_text="until when an answer counts")
    send_at = models.DateTimeField(null=True, blank=True, help_text="when the event is sent next; null: never again")
    attempts = models.PositiveIntegerField(default=0)
    delivered_at = models.DateTimeField(null=True, blank=True)
    problem = models.CharField(max_length=100, blank=True, help_text="why it was not delivered at the last attempt")
    outcome = models.CharField(max_length=10, blank=True, help_text="pending, passed or failed; empty: no answer yet")
    message = models.CharField(max_length=1000, blank=True)
    link = models.CharField(max_length=500, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["request", "round", "check_uid", "number"], name="check_run_once"),
            models.CheckConstraint(
                condition=models.Q(outcome="", answered_at__isnull=True)
                | models.Q(outcome__in=["pending", "passed", "failed"], answered_at__isnull=False),
                name="check_run_answer_has_its_time",
            ),
        ]
        indexes = [
            models.Index(fields=["send_at"], condition=models.Q(send_at__isnull=False), name="check_run_to_send")
        ]

    def __str__(self) -> str:
        return f"{self.check_name} about {self.request_id}"
