"""References that may move and packages of catalogs, who follows them, and how often hosts were asked."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from approvals.policy.source_changes import interval_of


class FloatingReference(models.Model):
    """A branch, tag, image tag or URL without a checksum: looked at once, however many deployments name it.

    `key` is over all that decides what a look sees: the reference itself and, where a Secret opens it, that Secret and
    its cluster. `seen` is what it was at the last look that succeeded, as pins have it.
    """

    key = models.CharField(max_length=80, unique=True)
    kind = models.CharField(max_length=60)
    host = models.CharField(max_length=300)
    seen = models.CharField(max_length=80, blank=True)
    etag = models.CharField(max_length=510, blank=True)
    looked_at = models.DateTimeField(null=True, blank=True, help_text="when the last look that succeeded began")
    tried_at = models.DateTimeField(null=True, blank=True)
    look_at = models.DateTimeField(null=True, blank=True, help_text="when to look again; null: nobody follows it")
    failures = models.PositiveIntegerField(default=0, help_text="looks that failed since the last one that succeeded")
    problem_code = models.CharField(max_length=60, blank=True)
    problem = models.TextField(blank=True)
    problem_since = models.DateTimeField(null=True, blank=True)
    rests_until = models.DateTimeField(
        null=True, blank=True, help_text="until when its server does not want to be asked (Retry-After)"
    )

    class Meta:
        indexes = [
            models.Index(fields=["look_at"], condition=models.Q(look_at__isnull=False), name="floating_reference_due")
        ]

    def __str__(self) -> str:
        return f"{self.kind} at {self.host}"


class ReferenceFollower(models.Model):
    """One source of a deployment, at `position` in its spec, that names a floating reference.

    `answered` is what the reference was when a request was last made because of it, or could not be prepared: it has no
    pin then. `answer_at` is when to ask whether the reference moved away from the deployment.
    """

    deployment = models.ForeignKey(
        "approvals.BundleDeployment", on_delete=models.CASCADE, related_name="followed_references"
    )
    reference = models.ForeignKey(FloatingReference, on_delete=models.CASCADE, related_name="followers")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=2300, help_text="the reference as people read it, without credentials")
    interval_seconds = models.PositiveIntegerField(
        null=True, blank=True, help_text="as spec.sources[].interval has it; null: the operator's default"
    )
    answered = models.CharField(max_length=80, blank=True)
    answer_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(
        blank=True, help_text="why a look is not for this deployment: its requesters may not read"
    )
    problem_since = models.DateTimeField(null=True, blank=True)
    moved_at = models.DateTimeField(
        null=True, blank=True, help_text="since when it differs from what the latest request is about"
    )
    rests_until = models.DateTimeField(
        null=True, blank=True, help_text="it moved too often: until when no further request is made because of it"
    )

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["deployment", "position"], name="one_follower_per_source")]
        indexes = [
            models.Index(
                fields=["answer_at"], condition=models.Q(answer_at__isnull=False), name="reference_follower_due"
            )
        ]

    @property
    def effective_seconds(self) -> int:
        """Seconds between two looks for this source, by its spec and the operator's limits; 0 for none."""
        operator = settings.PRATIQUE
        if not operator["SOURCE_POLLS_PER_HOST"]:
            return 0
        default, least = operator["SOURCE_POLL_SECONDS"], operator["SOURCE_POLL_MIN_SECONDS"]
        return interval_of(self.interval_seconds, default=default, least=least)

    def __str__(self) -> str:
        return self.name


class FollowedPackage(models.Model):
    """One source of a deployment, at `position` in its spec, that names a package of a catalog.

    Where it selects among catalogs (`is_selected`), `catalog` is the one that it took last, "" before. `digest` is the
    catalog as it was looked at last, or all that may be selected (followed_packages.shown_digest). `available` is the
    bundle that would be taken now and is not the one that runs, "" where there is none, and `why_not` says why it is
    not taken. `answer_at` is when to ask what follows from what the catalog offers; where the catalog is another one
    than `digest`, that is now.
    """

    deployment = models.ForeignKey(
        "approvals.BundleDeployment", on_delete=models.CASCADE, related_name="followed_packages"
    )
    position = models.PositiveIntegerField()
    catalog = models.CharField(max_length=253, blank=True)
    package = models.CharField(max_length=253)
    is_selected = models.BooleanField(default=False, db_default=False, help_text="whether it selects among catalogs")
    digest = models.CharField(max_length=80, blank=True)
    available = models.CharField(max_length=253, blank=True)
    available_version = models.CharField(max_length=500, blank=True)
    since = models.DateTimeField(null=True, blank=True, help_text="since when that is available")
    reason = models.CharField(max_length=20, blank=True, help_text="why_not as one word for programs")
    request = models.ForeignKey(
        "approvals.Request",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="the last one that was for it",
    )
    why_not = models.TextField(blank=True)
    beyond = models.TextField(blank=True, help_text="what is newer and cannot be taken, and why")
    answer_at = models.DateTimeField(null=True, blank=True)
    looked_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True, help_text="why nobody can tell what the catalog offers here")
    problem_since = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["deployment", "position"], name="one_package_per_source")]
        indexes = [
            models.Index(fields=["catalog"], name="followed_package_catalog"),
            models.Index(
                fields=["answer_at"], condition=models.Q(answer_at__isnull=False), name="followed_package_due"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.package} of catalog {self.catalog}" if self.catalog else f"{self.package} of selected catalogs"


class SourceHost(models.Model):
    """When a host was looked at within the last minute, as seconds since the epoch (PRATIQUE_SOURCE_POLLS_PER_HOST)."""

    host = models.CharField(max_length=300, unique=True)
    polls = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.host
