"""Objects of Kubernetes that say how requests are decided, each as it was last seen (decision 0090)."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class DecidingObject(models.Model):
    """A copy of an ApprovalRule, a ChangeWindow or another of their kinds (approvals.deciding.kinds).

    `earlier_specs` are [{spec, until}], the oldest first: what it said before, as long as a request is open that was
    made then. `until` is when it ended by the database's clock, in ISO 8601. One that is gone stays so long as well.
    """

    cluster = models.ForeignKey("approvals.Cluster", on_delete=models.CASCADE, related_name="deciding_objects")
    kind = models.CharField(max_length=63)
    uid = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    generation = models.PositiveBigIntegerField()
    resource_version = models.CharField(max_length=63)
    spec = models.JSONField()
    labels = models.JSONField(default=dict)
    writers = models.JSONField(
        default=list, help_text="who wrote it here, as persons are recorded; whoever used kubectl is not known"
    )
    authors = models.JSONField(
        default=list,
        db_default=[],
        help_text="everybody who ever wrote it, the last one last, where the kind asks; an empty one is unknown",
    )
    status = models.JSONField(default=dict, help_text="what the cluster was told last")
    problem = models.TextField(blank=True, help_text="why it cannot be read; it holds what it might select")
    seen_at = models.DateTimeField()
    changed_at = models.DateTimeField(help_text="since when its spec is as it is")
    earlier_specs = models.JSONField(default=list)
    show_at = models.DateTimeField(
        null=True, blank=True, help_text="since when the cluster is to be told; null: it was"
    )
    gone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "uid"], name="deciding_uid_once_per_cluster"),
            models.UniqueConstraint(
                fields=["cluster", "kind", "name"],
                condition=models.Q(gone_at__isnull=True),
                name="deciding_name_once_per_cluster",
            ),
        ]
        indexes = [models.Index(fields=["show_at"], condition=models.Q(show_at__isnull=False), name="deciding_to_show")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def version(self) -> str:
        """What a writer has to have read: a status that is written does not change it, another spec does."""
        return f"{self.uid}.{self.generation}"


class Confirmation(models.Model):
    """That a person stands behind an object whose spec has this digest (decision 0097). Another spec needs another
    one."""

    object = models.ForeignKey(DecidingObject, on_delete=models.CASCADE, related_name="confirmations")
    digest = models.CharField(max_length=80)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    person = models.JSONField(help_text="access.Person.record, as they were known on the cluster")
    access_reason = models.TextField(help_text="in what words Kubernetes allowed it")
    given_at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["object", "digest", "user"], name="one_confirmation_per_person")]

    def __str__(self) -> str:
        return f"{self.person.get('username')} confirmed {self.object_id}"
