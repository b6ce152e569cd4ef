"""What a reader of a request has looked at."""

from __future__ import annotations

from django.db import models

from approvals.models.request import OBJECT_LENGTH


class ViewedObject(models.Model):
    """One object of a request that a person has ticked as viewed, in the round that `subject_digest` stands for.

    It is a person's own note: nobody else is shown it, and nothing is decided by it, so the audit does not have it.
    """

    user = models.ForeignKey("auth.User", on_delete=models.CASCADE, related_name="+")
    request = models.ForeignKey("approvals.Request", on_delete=models.CASCADE, related_name="+")
    subject_digest = models.CharField(max_length=80)
    object = models.CharField(max_length=OBJECT_LENGTH)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "request", "subject_digest", "object"], name="object_viewed_once_a_round"
            )
        ]

    def __str__(self) -> str:
        return self.object
