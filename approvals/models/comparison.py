"""What would change from one bundle of a catalog to another: asked for by people, and worked out by a worker."""

from __future__ import annotations

from django.db import models

from approvals.encryption.fields import EncryptedJSONField


class BundleComparison(models.Model):
    """One comparison, kept for a while for everybody who may know it.

    `key` is the digest of all that the result depends on. While it is under way it holds the `position` among those of
    the same person, of whom each has so many.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        DONE = "done"
        FAILED = "failed"

    key = models.CharField(max_length=80, unique=True)
    cluster = models.ForeignKey("approvals.Cluster", on_delete=models.CASCADE, related_name="+")
    wish = models.JSONField(help_text="what is compared, and how it is rendered")
    user = models.ForeignKey("auth.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    position = models.PositiveSmallIntegerField(null=True, blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    progress = models.CharField(max_length=300, blank=True, help_text="what is being done, in words")
    attempts = models.PositiveSmallIntegerField(default=0)
    asked_at = models.DateTimeField()
    look_again_at = models.DateTimeField(null=True, blank=True, help_text="not to be worked on before; null: at once")
    ended_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="until when the result is shown")
    problem_code = models.CharField(max_length=60, blank=True)
    problem = models.TextField(blank=True)
    result = EncryptedJSONField(place="result of comparison", bound_to=["key"], null=True, blank=True)
    lines = EncryptedJSONField(
        place="lines of comparison",
        bound_to=["key"],
        null=True,
        blank=True,
        help_text="what differs in each object, by its position in the plan of the result",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "position"], name="one_comparison_per_position"),
            models.CheckConstraint(
                condition=models.Q(state="waiting", ended_at__isnull=True)
                | models.Q(ended_at__isnull=False, expires_at__isnull=False, position__isnull=True),
                name="comparison_waits_or_ended",
            ),
        ]
        indexes = [
            models.Index(fields=["asked_at"], condition=models.Q(state="waiting"), name="comparison_waiting"),
            models.Index(fields=["expires_at"], name="comparison_expired"),
        ]

    def __str__(self) -> str:
        return self.key
