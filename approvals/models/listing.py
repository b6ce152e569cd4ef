"""What lists filter requests by, in rows of their own: nobody opens the body of a report for a list.

Written with the report of each round, and of requesters whenever these change (ledger.listing). Whatever stands here
may be known to everybody who may read the cluster: nothing of findings that are hidden from some of them.
"""

from __future__ import annotations

from django.db import models


class RequestText(models.Model):
    """What a search looks through: the deployment's name and the headline of the present report, casefolded."""

    request = models.OneToOneField(
        "approvals.Request", on_delete=models.CASCADE, primary_key=True, related_name="searched"
    )
    text = models.TextField()

    def __str__(self) -> str:
        return self.text


class RequestRule(models.Model):
    """A rule that the present report of a request has findings of; `weight` is that of the worst of them."""

    request = models.ForeignKey("approvals.Request", on_delete=models.CASCADE, related_name="rules")
    rule = models.CharField(max_length=20)
    weight = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["request", "rule"], name="one_row_per_request_and_rule")]
        indexes = [models.Index(fields=["rule", "request"], name="rule_requests")]

    def __str__(self) -> str:
        return f"{self.request_id} {self.rule}"


class RequestAsker(models.Model):
    """A user name among the requesters of a request."""

    request = models.ForeignKey("approvals.Request", on_delete=models.CASCADE, related_name="askers")
    username = models.CharField(max_length=253)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["request", "username"], name="one_row_per_request_and_asker")]
        indexes = [models.Index(fields=["username", "request"], name="asker_requests")]

    def __str__(self) -> str:
        return self.username
