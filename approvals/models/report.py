"""What was found: the report of each round of a request."""

from __future__ import annotations

from django.db import models

from approvals.encryption.fields import EncryptedJSONField
from approvals.models.request import Request


class Report(models.Model):
    """The report of one round. `body` is the library's record of it (provisioner.review.base.record).

    `worst` is the severity of the worst finding that the running revision does not have already.
    """

    request = models.ForeignKey(Request, on_delete=models.CASCADE, related_name="reports")
    round = models.PositiveIntegerField()
    worst = models.CharField(max_length=10)
    headline = models.JSONField(default=list)
    severities = models.JSONField(default=dict)
    actions = models.JSONField(default=dict)
    body = EncryptedJSONField(place="report of request", bound_to=["request_id", "round"])
    computed_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["request", "round"], name="one_report_per_round")]

    def __str__(self) -> str:
        return f"{self.request_id} round {self.round}"


class Finding(models.Model):
    """One finding, for filters and policies; its evidence stays in the report's body under `fingerprint`."""

    report = models.ForeignKey(Report, on_delete=models.CASCADE, related_name="findings")
    position = models.PositiveIntegerField()
    rule = models.CharField(max_length=20)
    section = models.CharField(max_length=20)
    severity = models.CharField(max_length=10)
    message = models.TextField()
    object = models.CharField(max_length=600, blank=True)
    fingerprint = models.CharField(max_length=80)
    is_new = models.BooleanField(default=True)

    class Meta:
        ordering = ["position"]
        indexes = [models.Index(fields=["rule", "severity"], name="finding_rule")]

    def __str__(self) -> str:
        return f"{self.rule} {self.message}"
