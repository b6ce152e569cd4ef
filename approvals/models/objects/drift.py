"""What was found to differ from what was approved, one row an object."""

from __future__ import annotations

from django.db import models

from approvals.encryption.fields import EncryptedJSONField


class Drift(models.Model):
    """The latest drift of one object. `strikes` counts how often in a row it was restored, for
    provisioner.cluster.drift.

    `fields` are FieldDrift of provisioner.cluster.drift as JSON: path, change, manager, at, expected, found;
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
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"
