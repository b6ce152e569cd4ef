"""What lists filter requests by, in rows of their own: nobody opens the body of a report for a list.

Written with the report of each round, and of requesters whenever these change (ledger.listing). Whatever stands here
may be known to everybody who may read the cluster: nothing of findings that are hidden from some of them.
"""

from __future__ import annotations

from django.db import models

from approvals.models.request import OBJECT_LENGTH

QUERY_LENGTH = 1_000
VIEW_NAME_LENGTH = 60


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


class SavedView(models.Model):
    """A filtered inbox under a name; `query` is what follows the `?` of its address. Nobody else is shown it."""

    user = models.ForeignKey("auth.User", on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=VIEW_NAME_LENGTH)
    query = models.CharField(max_length=QUERY_LENGTH, blank=True)
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="one_saved_view_of_a_name")]

    def __str__(self) -> str:
        return self.name


class NewsRead(models.Model):
    """Up to which entry of the audit a person has read what happened to their requests and reviews."""

    user = models.OneToOneField("auth.User", on_delete=models.CASCADE, related_name="+")
    number = models.PositiveBigIntegerField(default=0)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.user_id} up to {self.number}"
