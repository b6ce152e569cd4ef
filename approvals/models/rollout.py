"""The order in which the members of a change set are applied (decision 0099)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from approvals.deciding.rings import OnFailure


class Rollout(models.Model):
    """The order of one set, until all its members are healthy or somebody ends it. `rings` are as they were given."""

    name = models.CharField(max_length=63)
    rings = models.JSONField()
    on_failure = models.CharField(max_length=10, choices=[(it, it) for it in OnFailure], default=OnFailure.STOP)
    made_by = models.CharField(max_length=253)
    made_at = models.DateTimeField()
    ended_by = models.CharField(max_length=253, blank=True, default="")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-made_at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["name"], condition=Q(ended_at__isnull=True), name="one_order_of_a_set"),
            models.CheckConstraint(condition=Q(on_failure__in=sorted(OnFailure)), name="rollout_on_failure_known"),
        ]

    def __str__(self) -> str:
        return f"order of set {self.name}"


class RolloutMember(models.Model):
    """A deployment of the set, from its request `from_number` on. `ring` is the position of its ring."""

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="members")
    deployment = models.ForeignKey("approvals.BundleDeployment", on_delete=models.CASCADE, related_name="+")
    ring = models.PositiveSmallIntegerField()
    from_number = models.PositiveIntegerField()
    put_back_number = models.PositiveIntegerField(
        null=True, blank=True, help_text="the request after which the revision before it was restored for the set"
    )
    kept_because = models.CharField(
        max_length=1000,
        blank=True,
        default="",
        help_text="why the revision before was not restored where another member failed",
    )

    class Meta:
        ordering = ["ring", "pk"]
        constraints = [models.UniqueConstraint(fields=["rollout", "deployment"], name="rollout_member_once")]

    def __str__(self) -> str:
        return f"{self.deployment_id} in {self.rollout_id}"


class RingApproval(models.Model):
    """That somebody approved what follows a ring. `seen` is what they saw of each member, by the deployment's uid, as
    `deciding.rings` has it: where that is something else since, this approval is over."""

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="ring_approvals")
    ring = models.PositiveSmallIntegerField()
    seen = models.JSONField(default=dict)
    user = models.ForeignKey("auth.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    username = models.CharField(max_length=253)
    channel = models.CharField(max_length=20)
    reason = models.CharField(max_length=1000, blank=True)
    given_at = models.DateTimeField()

    class Meta:
        ordering = ["given_at", "pk"]

    def __str__(self) -> str:
        return f"ring {self.ring} of {self.rollout_id} by {self.username}"
