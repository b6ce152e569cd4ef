"""Guards hold a request back (AND), grants approve one (OR).

A row is a policy of the service, or stands for an ApprovalPolicy of a cluster: what decides is the object then, and the
row is what reviews and evaluations refer to, with the words of the object as it was seen last (decision 0096).
"""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Policy(models.Model):
    class Kind(models.TextChoices):
        GUARD = "guard"
        GRANT = "grant"

    class Mode(models.TextChoices):
        ENFORCE = "enforce"
        DRY_RUN = "dry-run"

    name = models.SlugField(max_length=63)
    uid = models.CharField(max_length=63, blank=True, default="", db_default="", help_text="of the object; else empty")
    kind = models.CharField(max_length=5, choices=Kind.choices)
    mode = models.CharField(max_length=7, choices=Mode.choices, default=Mode.DRY_RUN)
    cluster = models.ForeignKey("approvals.Cluster", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    # Globs over the deployment's name, and labels that it must carry; empty: all.
    names = models.JSONField(default=list)
    labels = models.JSONField(default=dict)
    expression = models.TextField()
    message = models.TextField(blank=True)
    allows_known_powers = models.BooleanField(
        default=False,
        db_default=False,
        help_text="whether a grant approves power over Pratique that people have approved of the deployment",
    )
    version = models.PositiveIntegerField(default=1)
    is_active = models.BooleanField(default=True)
    # Of an object nobody: its authors are those of the DecidingObject.
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    editor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    # access.Person.record, as they were when they saved it.
    author_known_as = models.JSONField(default=dict, blank=True)
    editor_known_as = models.JSONField(default=dict, blank=True)
    writers = models.JSONField(default=list, blank=True, help_text="the same of everybody who ever saved it")
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]
        verbose_name_plural = "policies"
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(uid=""), name="policy_name_once_in_the_service"
            ),
            models.UniqueConstraint(
                fields=["cluster", "uid"], condition=~models.Q(uid=""), name="policy_uid_once_per_cluster"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class PolicyEvaluation(models.Model):
    """What one policy said about one round, in words."""

    class Result(models.TextChoices):
        APPROVES = "approves"
        PASSES = "passes"
        HOLDS = "holds"
        SILENT = "silent"
        NOT_SELECTED = "not-selected"
        ERROR = "error"

    request = models.ForeignKey("approvals.Request", on_delete=models.CASCADE, related_name="evaluations")
    round = models.PositiveIntegerField()
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="evaluations")
    policy_version = models.PositiveIntegerField()
    result = models.CharField(max_length=12, choices=Result.choices)
    words = models.TextField()
    at = models.DateTimeField()

    class Meta:
        ordering = ["policy__name", "-at"]
        constraints = [
            models.UniqueConstraint(
                fields=["request", "round", "policy", "policy_version"], name="one_evaluation_per_policy_version"
            )
        ]
        indexes = [models.Index(fields=["policy", "-at", "-id"], name="evaluation_lately")]

    def __str__(self) -> str:
        return f"{self.policy_id}: {self.result}"
