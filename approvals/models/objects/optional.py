"""What a revision left out because the cluster did not serve its API."""

from __future__ import annotations

from django.db import models


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
