"""What is written with kubectl: reviews until their status says what became of them, and what proves who wrote."""

from __future__ import annotations

from django.db import models


class PoliciesSeen(models.Model):
    """Since when shipped admission policies have been seen in force on a cluster, without a change.

    `facts` are uid and generation of each policy and binding; "" while something is missing, and `problem` says what.
    """

    facts = models.TextField(blank=True)
    since = models.DateTimeField(null=True, blank=True)
    looked_at = models.DateTimeField()
    problem = models.TextField(blank=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.problem or f"in force since {self.since}"


class ReviewAdmission(PoliciesSeen):
    """Of the policies that prove who made a review."""

    cluster = models.OneToOneField("approvals.Cluster", on_delete=models.CASCADE, related_name="review_admission")


class AuthorAdmission(PoliciesSeen):
    """Of the policies that prove who wrote a BundleDeployment."""

    cluster = models.OneToOneField("approvals.Cluster", on_delete=models.CASCADE, related_name="author_admission")
    sure_from = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="resourceVersion after which every write met the policies; null: not yet"
    )


class KubectlReview(models.Model):
    """One BundleDeploymentReview of a cluster. It proves nothing: the object is read again before it is counted."""

    cluster = models.ForeignKey("approvals.Cluster", on_delete=models.CASCADE, related_name="kubectl_reviews")
    uid = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    created_at = models.DateTimeField(help_text="creationTimestamp of the object")
    seen_at = models.DateTimeField()
    username = models.CharField(max_length=253, blank=True)
    reviewer = models.CharField(
        max_length=253,
        blank=True,
        help_text="who made it, as the object says, for turns alone; empty: unread",
    )
    settled_at = models.DateTimeField(null=True, blank=True)
    review = models.ForeignKey(
        "approvals.Review", on_delete=models.PROTECT, null=True, blank=True, related_name="kubectl_reviews"
    )
    # Why it did not count: a code of ours, and words for the reviewer.
    code = models.CharField(max_length=60, blank=True)
    words = models.TextField(blank=True)
    finished_at = models.DateTimeField(null=True, blank=True, help_text="when its status was written")

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [models.UniqueConstraint(fields=["cluster", "uid"], name="kubectl_review_once_per_cluster")]
        indexes = [
            models.Index(
                fields=["cluster", "created_at"],
                condition=models.Q(finished_at__isnull=True),
                name="kubectl_review_due",
            ),
            models.Index(fields=["cluster", "username", "created_at"], name="kubectl_review_by_person"),
        ]

    def __str__(self) -> str:
        return self.name
