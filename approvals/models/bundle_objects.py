"""What was found to differ from what was approved, one row an object."""

from __future__ import annotations

from django.db import models

from approvals.encryption.fields import EncryptedJSONField


class Drift(models.Model):
    """The latest drift of one object. `strikes` counts how often in a row it was restored, for
    provisioner.cluster.drift.backoff.

    `fields` are FieldDrift of provisioner.cluster.drift.detection as JSON: path, change, manager, at, expected, found;
    of a Secret without values. `problem` says why an open one is not put back, `rival` who undid what was restored.
    """

    class State(models.TextChoices):
        OPEN = "open"
        CORRECTED = "corrected"
        OVER = "over"

    item = models.OneToOneField("approvals.InventoryItem", on_delete=models.CASCADE, related_name="drift")
    revision = models.ForeignKey("approvals.Revision", on_delete=models.CASCADE, related_name="+")
    state = models.CharField(max_length=10, choices=State.choices)
    kind = models.CharField(max_length=10)
    message = models.TextField(blank=True)
    fields = EncryptedJSONField(place="fields of drift", bound_to=["item_id"])
    problem = models.TextField(blank=True)
    # What the API server said of the problem: a value of the object (S27).
    server_words = models.TextField(blank=True)
    strikes = models.PositiveIntegerField(default=0)
    corrected_at = models.DateTimeField(null=True, blank=True)
    is_fight = models.BooleanField(default=False)
    rival = models.CharField(max_length=300, blank=True)
    found_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["-changed_at", "-pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=["open", "corrected", "over"]), name="drift_state_known"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"


class OptionalObject(models.Model):
    """An object that was approved to be created once its API appears (security-rules.md S17).

    `look_at`: when to try; null while its API is absent. `problem` says why it is not created, or not by itself.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        CREATED = "created"
        ASKED = "asked"

    revision = models.ForeignKey("approvals.Revision", on_delete=models.CASCADE, related_name="optional_objects")
    group = models.CharField(max_length=253, blank=True)
    version = models.CharField(max_length=63)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=253, blank=True)
    name = models.CharField(max_length=253)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    problem = models.TextField(blank=True)
    look_at = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["kind", "namespace", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["revision", "group", "kind", "namespace", "name"], name="optional_object_once_per_revision"
            ),
            models.CheckConstraint(
                condition=models.Q(state__in=["waiting", "created", "asked"]), name="optional_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Stray(models.Model):
    """An object that a write with this `nonce` may still create, although its worker is gone (security-rules.md S20).

    As long as the inventory knows the nonce, the object is the deployment's. Once it is dropped, what turns up with it
    is taken away. `look_at` is when that is looked for again, `begun_at` when the write was found not heard of.
    """

    deployment = models.ForeignKey("approvals.BundleDeployment", on_delete=models.CASCADE, related_name="strays")
    revision = models.ForeignKey("approvals.Revision", on_delete=models.SET_NULL, null=True, related_name="+")
    group = models.CharField(max_length=253, blank=True)
    version = models.CharField(max_length=63)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=253, blank=True)
    name = models.CharField(max_length=253)
    nonce = models.CharField(max_length=63, unique=True)
    begun_at = models.DateTimeField()
    look_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
