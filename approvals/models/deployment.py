"""Clusters, the wishes seen in them, and what runs."""

from __future__ import annotations

from django.db import models

from approvals.bundle_spec import BundleSpec, parse_spec
from approvals.encryption.fields import EncryptedTextField
from approvals.models.claims import Claimed


class RegisteredClusters(models.Manager["Cluster"]):
    """Without those that were removed."""

    def get_queryset(self) -> models.QuerySet[Cluster]:
        return super().get_queryset().filter(removed_at__isnull=True)


class Cluster(models.Model):
    """A Kubernetes API that we watch and apply to. Two are told apart by `uid`: that of the kube-system namespace.

    The row of one that was removed stays, without credentials: requests and audit name it, and no other gets its name.
    """

    name = models.SlugField(max_length=63, unique=True)
    uid = models.CharField(max_length=63, unique=True, null=True, blank=True)
    kubeconfig = EncryptedTextField(
        place="kubeconfig of cluster",
        bound_to=["name"],
        help_text="server, CA and inline credentials; empty: in-cluster",
    )
    version = models.CharField(max_length=60, blank=True)
    reached_at = models.DateTimeField(null=True, blank=True)
    problem = models.TextField(blank=True, help_text="as the watch knows it")
    refusal = models.TextField(blank=True, help_text="as any process met it (approvals.refusals); counts for minutes")
    refused_by = models.CharField(max_length=100, blank=True)
    refused_at = models.DateTimeField(null=True, blank=True)
    credentials_end = models.DateTimeField(null=True, blank=True, help_text="of those it is registered with")
    labels = models.JSONField(
        default=dict, db_default={}, blank=True, help_text="what operators say of it: rings go by these"
    )
    watched_by = models.CharField(max_length=100, blank=True)
    watched_until = models.DateTimeField(null=True, blank=True)
    watch_deaths = models.PositiveIntegerField(default=0, help_text="watchers that died since one saw everything")
    watch_at = models.CharField(max_length=400, blank=True, help_text="the object that a careful watcher looks at")
    watch_skips = models.JSONField(default=list, help_text="objects that killed their watchers, as they were then")
    created_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True, blank=True)

    objects = RegisteredClusters()
    every = models.Manager["Cluster"]()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class BundleDeployment(Claimed):
    """A copy of the last spec that was seen in the cluster; the cluster is the record of the wish (docs/architecture).

    Its claim is that of the worker who looks for drift and puts it back.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="deployments")
    uid = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    generation = models.PositiveBigIntegerField()
    resource_version = models.CharField(max_length=63)
    spec = models.JSONField()
    labels = models.JSONField(default=dict)
    options_digest = models.CharField(max_length=80)
    asked_again = models.CharField(max_length=100, blank=True, help_text="the annotation's value when it was last seen")
    asked_rollback = models.CharField(max_length=100, blank=True, help_text="as asked_again, of the rollback")
    asked_rotation = models.CharField(
        max_length=600, blank=True, default="", db_default="", help_text="as asked_again, of the rotation"
    )
    # {seen, next}: the annotations as they were last seen, and what the next request takes (ledger.change_words).
    change_words = models.JSONField(default=dict, db_default={}, blank=True)
    is_paused = models.BooleanField(default=False)
    paused_generation = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="the generation that paused it; its write says by whom"
    )
    pause_reason = models.CharField(max_length=1000, blank=True)
    problem = models.TextField(blank=True)
    health = models.CharField(max_length=20, blank=True)
    health_message = models.TextField(blank=True)
    healthy_since = models.DateTimeField(
        null=True, blank=True, help_text="when it last became healthy; counts while it is"
    )
    seen_at = models.DateTimeField()
    looked_after_at = models.DateTimeField(null=True, blank=True)
    # Counted by whoever watches (ledger.drifts); by number, because clocks differ. Health was read as of the second.
    event_count = models.PositiveBigIntegerField(default=0)
    events_observed = models.PositiveBigIntegerField(null=True, blank=True)
    observed_at = models.DateTimeField(null=True, blank=True)
    deletion_requested_at = models.DateTimeField(null=True, blank=True)
    gone_at = models.DateTimeField(null=True, blank=True)
    drift_problem = models.TextField(blank=True, help_text="why drift could not be checked")
    # What is asked for beyond a quota (ledger.quotas).
    waiting = models.JSONField(null=True, blank=True)
    waiting_since = models.DateTimeField(null=True, blank=True)
    waiting_words = models.TextField(blank=True, help_text="why no request was created yet, and what to do")
    active_revision = models.ForeignKey(
        "approvals.Revision", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "uid"], name="deployment_uid_once_per_cluster"),
            models.UniqueConstraint(
                fields=["cluster", "name"],
                condition=models.Q(gone_at__isnull=True),
                name="deployment_name_once_per_cluster",
            ),
        ]
        indexes = [
            models.Index(
                fields=["waiting_since"], condition=models.Q(waiting_since__isnull=False), name="deployment_waiting"
            ),
            models.Index(fields=["name", "id"], name="deployment_by_name"),
        ]

    @property
    def bundle_spec(self) -> BundleSpec:
        return parse_spec(self.spec)

    @property
    def needs_deletion(self) -> bool:
        """Whether something is left to do before it may go: objects to delete, or hooks of what runs.

        Both are over once a deletion is applied: then nothing runs.
        """
        running = self.active_revision
        has_hooks = running is not None and running.content.has_deletion_hooks
        return self.inventory.exists() or (has_hooks and not self.bundle_spec.is_orphaning)

    def __str__(self) -> str:
        return self.name


class SpecWrite(models.Model):
    """Who wrote one generation of a spec (security-rules.md S05). `username` is "" where nobody can tell."""

    deployment = models.ForeignKey(BundleDeployment, on_delete=models.CASCADE, related_name="writes")
    generation = models.PositiveBigIntegerField()
    user = models.ForeignKey("auth.User", on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    username = models.CharField(max_length=253, blank=True)
    uid = models.CharField(max_length=253, blank=True)
    groups = models.JSONField(default=list)
    groups_at = models.DateTimeField(null=True, blank=True, help_text="when the groups were verified; null: unknown")
    # Of the identity that proved it, "" where the cluster or its operator vouched: a name can be changed at an issuer.
    issuer = models.CharField(max_length=255, blank=True, default="")
    subject = models.CharField(max_length=255, blank=True, default="")
    via = models.CharField(max_length=20)
    proved_as = models.CharField(
        max_length=253,
        blank=True,
        default="",
        db_default="",
        help_text="the name that the API server has proved, where it says nothing about who asked: username is empty",
    )
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["deployment", "generation"], name="write_once_per_generation")]

    def __str__(self) -> str:
        return f"generation {self.generation} by {self.username or 'unknown'}"


class OwnWrite(models.Model):
    """A write of a wish through a door of ours, from before it starts until the row says whose it was.

    It proves nothing: it only tells the watch that the author of what it sees may be about to be recorded.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=253)
    started_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["cluster", "name"], name="own_write_of_name")]

    def __str__(self) -> str:
        return f"{self.name} since {self.started_at}"


class Revision(models.Model):
    """What was really applied, numbered per deployment from 1."""

    class State(models.TextChoices):
        APPLYING = "applying"
        ACTIVE = "active"
        FAILED = "failed"
        REPLACED = "replaced"
        REMOVED = "removed"

    deployment = models.ForeignKey(BundleDeployment, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    request = models.OneToOneField("approvals.Request", on_delete=models.PROTECT, related_name="revision")
    content = models.ForeignKey("approvals.Content", on_delete=models.PROTECT, related_name="revisions")
    state = models.CharField(max_length=10, choices=State.choices)
    message = models.TextField(blank=True)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)
    healthy_at = models.DateTimeField(null=True, blank=True, help_text="when it was first observed healthy")
    overdue_at = models.DateTimeField(null=True, blank=True, help_text="when it missed its deadline to become healthy")
    # Nobody goes back to a revoked revision, and the machine does not put it back (S16).
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_by = models.CharField(max_length=253, blank=True, help_text="user name on the cluster")
    revoked_reason = models.CharField(max_length=1000, blank=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["deployment", "number"], name="revision_number_once"),
            models.UniqueConstraint(
                fields=["deployment"], condition=models.Q(state="active"), name="one_active_revision"
            ),
            models.CheckConstraint(
                condition=models.Q(revoked_at=None, revoked_by="", revoked_reason="")
                | (models.Q(revoked_at__isnull=False) & ~models.Q(revoked_by="") & ~models.Q(revoked_reason="")),
                name="revoked_by_somebody_for_a_reason",
            ),
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"


class InventoryItem(models.Model):
    """An object that is this deployment's: `nonce` is written before the object is touched, `uid` after (S20)."""

    deployment = models.ForeignKey(BundleDeployment, on_delete=models.CASCADE, related_name="inventory")
    revision = models.ForeignKey(Revision, on_delete=models.SET_NULL, null=True, related_name="inventory")
    group = models.CharField(max_length=253, blank=True)
    version = models.CharField(max_length=63)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=253, blank=True)
    name = models.CharField(max_length=253)
    nonce = models.CharField(max_length=63)
    uid = models.CharField(max_length=63, blank=True)
    health = models.CharField(max_length=20, blank=True)
    health_message = models.TextField(blank=True)
    # What the object, its pods and its events say: values of it (S27); `health_message` is ours.
    health_words = models.TextField(blank=True)
    fingerprint = models.CharField(max_length=64, blank=True, help_text="as it was last compared: cluster.drift")
    look_at = models.DateTimeField(null=True, blank=True, help_text="when to compare it again; null: nothing happened")

    class Meta:
        ordering = ["kind", "namespace", "name"]
        indexes = [
            models.Index(fields=["look_at"], condition=models.Q(look_at__isnull=False), name="inventory_due"),
            models.Index(fields=["group", "kind"], name="inventory_kind"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["deployment", "group", "kind", "namespace", "name"], name="object_once_per_deployment"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class HookRun(models.Model):
    """The last run of a hook of this deployment: `nonce` is written before its object is, `uid` after (S20).

    What it left is no part of the inventory: it never drifts, is never restored, and stays when the deployment goes.
    """

    deployment = models.ForeignKey(BundleDeployment, on_delete=models.CASCADE, related_name="hook_runs")
    request = models.ForeignKey("approvals.Request", on_delete=models.SET_NULL, null=True, related_name="hook_runs")
    group = models.CharField(max_length=253, blank=True)
    version = models.CharField(max_length=63)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=253, blank=True)
    name = models.CharField(max_length=253)
    moment = models.CharField(max_length=20)
    nonce = models.CharField(max_length=63)
    uid = models.CharField(max_length=63, blank=True)
    has_succeeded = models.BooleanField(default=False)

    class Meta:
        ordering = ["kind", "namespace", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["deployment", "group", "kind", "namespace", "name"], name="hook_once_per_deployment"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
