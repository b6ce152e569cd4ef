"""The audit: append-only and hash-chained; triggers of the database refuse any change (promise 7)."""

from __future__ import annotations

from django.db import models


class AuditEntry(models.Model):
    """`hash` covers every other column and the hash before it (see approvals.audit).

    `salt` is shown to nobody; None where it was written before entries had one.
    """

    number = models.PositiveBigIntegerField(unique=True)
    at = models.DateTimeField()
    verb = models.CharField(max_length=40)
    actor = models.CharField(max_length=300)
    via = models.CharField(max_length=20)
    cluster = models.CharField(max_length=63, blank=True)
    deployment = models.CharField(max_length=253, blank=True)
    deployment_uid = models.CharField(max_length=63, blank=True)
    request_uid = models.CharField(max_length=63, blank=True)
    facts = models.JSONField(default=dict)
    salt = models.BinaryField(null=True)
    previous_hash = models.CharField(max_length=64, blank=True)
    hash = models.CharField(max_length=64, unique=True)

    class Meta:
        ordering = ["-number"]
        indexes = [
            models.Index(fields=["deployment_uid", "-number"], name="audit_deployment"),
            models.Index(fields=["request_uid", "-number"], name="audit_request"),
            models.Index(fields=["cluster", "-number"], name="audit_cluster"),
            models.Index(fields=["actor", "-number"], name="audit_actor"),
            models.Index(fields=["deployment", "-number"], name="audit_name"),
            models.Index(fields=["via", "-number"], name="audit_via"),
            models.Index(fields=["verb", "-number"], name="audit_verb"),
            models.Index(fields=["at", "number"], name="audit_time"),
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.verb}"


class AuditCheck(models.Model):
    """The last walk along the whole chain: one row. `length` entries were whole, or the one at `broken_at` was not."""

    length = models.PositiveBigIntegerField()
    broken_at = models.PositiveBigIntegerField(null=True, blank=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.length} entries at {self.at}"
