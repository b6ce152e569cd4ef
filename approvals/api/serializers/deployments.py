"""BundleDeployments, their clusters, revisions and drift."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals import refusals
from approvals.access.sight import without_values
from approvals.clock import database_now
from approvals.ledger.change_words import REASON_LENGTH, TICKET_FORM, TICKET_LENGTH, ChangeWords
from approvals.models import BundleDeployment, Cluster, Drift, KeptValue, Revision
from approvals.selectors.followed_sources import followed, offered
from approvals.services.revisions import MAX_REASON
from provisioner.values import MadeSort

SPEC = (
    "if you may not get the BundleDeployment in the cluster, values of `config` and credentials in other fields are "
    "`hidden`, and to send such a spec back is refused"
)


DIGEST = "keyed with a random value that is shown to nobody; empty for what earlier versions stored or settled"


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    problem = serializers.SerializerMethodField(help_text="as any process met it; empty for none")

    def get_problem(self, cluster: Cluster) -> str:
        return refusals.problem_of(cluster, database_now())

    class Meta:
        model = Cluster
        fields = ["name", "uid", "version", "reached_at", "problem", "labels"]


class RevisionSerializer(serializers.ModelSerializer[Revision]):
    content_digest = serializers.CharField(source="content.public_digest", help_text=DIGEST)
    request = serializers.UUIDField(source="request.uid")
    state = serializers.CharField(help_text=f"one of {', '.join(Revision.State.values)}")

    class Meta:
        model = Revision
        fields = [
            "number",
            "state",
            "message",
            "content_digest",
            "request",
            "started_at",
            "finished_at",
            "healthy_at",
            "overdue_at",
            "revoked_at",
            "revoked_by",
            "revoked_reason",
        ]


class FollowedReferenceSerializer(serializers.Serializer[Any]):
    """A source that may move: a branch, a tag, an image tag or a URL without a checksum."""

    position = serializers.IntegerField(help_text="its number in spec.sources, from 0")
    name = serializers.CharField()
    kind = serializers.CharField()
    interval_seconds = serializers.IntegerField(help_text="seconds between two checks; 0: it is not checked")
    looked_at = serializers.DateTimeField(allow_null=True, help_text="when it was last checked with success")
    next_look_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.CharField(help_text="why it cannot be checked; empty if it can")
    problem_code = serializers.CharField()
    problem_since = serializers.DateTimeField(allow_null=True)
    moved_at = serializers.DateTimeField(
        allow_null=True,
        help_text="since when it differs from what the open request is about; a new request is made when that is "
        "settled",
    )
    rests_until = serializers.DateTimeField(
        allow_null=True, help_text="it changed more often than the operator allows: when the next request is made"
    )


class OfferedUpgradeSerializer(serializers.Serializer[Any]):
    """What a catalog offers to a source that names a package of it."""

    position = serializers.IntegerField(help_text="its number in spec.sources, from 0")
    catalog = serializers.CharField()
    package = serializers.CharField()
    version = serializers.CharField(help_text="the version that would be taken; empty if none is newer")
    bundle = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True, help_text="since when it is available")
    reason = serializers.CharField(help_text="why it is not taken: Manual, Requested or Waiting")
    why_not = serializers.CharField()
    beyond = serializers.CharField(help_text="what is newer still, and why it is not offered")
    looked_at = serializers.DateTimeField(allow_null=True)
    problem = serializers.CharField(help_text="why nobody can tell what is offered; empty if one can")
    problem_since = serializers.DateTimeField(allow_null=True)
    source_problem_since = serializers.DateTimeField(
        allow_null=True, help_text="since when the source of the catalog could not be checked; null if it could"
    )


class DeploymentSerializer(serializers.ModelSerializer[BundleDeployment]):
    cluster = serializers.CharField(source="cluster.name")
    spec = serializers.SerializerMethodField(help_text=SPEC)
    active_revision = RevisionSerializer(allow_null=True)
    followed_references = serializers.SerializerMethodField()
    offered_upgrades = serializers.SerializerMethodField()

    class Meta:
        model = BundleDeployment
        fields = [
            "cluster",
            "name",
            "uid",
            "generation",
            "resource_version",
            "spec",
            "labels",
            "is_paused",
            "health",
            "health_message",
            "drift_problem",
            "active_revision",
            "followed_references",
            "offered_upgrades",
            "deletion_requested_at",
            "seen_at",
        ]

    @extend_schema_field(serializers.DictField())
    def get_spec(self, row: BundleDeployment) -> dict[str, Any]:
        return dict(self.context["shown_spec"](row, row.spec))

    @extend_schema_field(FollowedReferenceSerializer(many=True))
    def get_followed_references(self, row: BundleDeployment) -> list[dict[str, Any]]:
        return [asdict(source) for source in followed(deployment=row)]

    @extend_schema_field(OfferedUpgradeSerializer(many=True))
    def get_offered_upgrades(self, row: BundleDeployment) -> list[dict[str, Any]]:
        return [asdict(offer) for offer in offered(deployment=row)]


class KeptValueSerializer(serializers.ModelSerializer[KeptValue]):
    """A value that the chart made up and each later rendering is given again. The value itself is shown to nobody."""

    object = serializers.CharField(help_text="the object that holds it")
    path = serializers.CharField(help_text="where in the object")
    sort = serializers.CharField(help_text=f"one of {', '.join(MadeSort)}")
    origin = serializers.CharField(help_text=f"one of {', '.join(KeptValue.Origin.values)}")
    request = serializers.UUIDField(source="first_request.uid", help_text="the request that brought it")

    class Meta:
        model = KeptValue
        fields = ["object", "path", "sort", "generation", "origin", "request", "made_at", "expires_at"]


class DriftFieldSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    change = serializers.CharField(help_text="changed, removed or added")
    manager = serializers.CharField(help_text="the field manager that wrote it last")
    at = serializers.CharField(help_text="when, as recorded by the API server")
    expected = serializers.CharField(help_text="the approved value, shortened; empty if you are not allowed to see it")
    found = serializers.CharField()


class DriftSerializer(serializers.ModelSerializer[Drift]):
    """`changes` have values only if the caller is allowed to get the object, and never for a Secret."""

    object = serializers.CharField(source="item")
    revision = serializers.IntegerField(source="revision.number")
    kind = serializers.CharField(help_text="remade, gone, going, changed or added")
    state = serializers.CharField(help_text="open, corrected or over")
    is_hidden = serializers.SerializerMethodField()
    changes = serializers.SerializerMethodField()
    server_words = serializers.SerializerMethodField(help_text="the API server's message about the problem")

    class Meta:
        model = Drift
        fields = [
            "object",
            "revision",
            "kind",
            "state",
            "message",
            "problem",
            "server_words",
            "is_fight",
            "rival",
            "strikes",
            "corrected_at",
            "found_at",
            "changed_at",
            "is_hidden",
            "changes",
        ]

    def get_is_hidden(self, row: Drift) -> bool:
        return not self.context["may_see"](row)

    @extend_schema_field(DriftFieldSerializer(many=True))
    def get_changes(self, row: Drift) -> list[dict[str, Any]]:
        if not self.get_is_hidden(row):
            return list(row.fields)
        return [without_values(field) for field in row.fields]

    def get_server_words(self, row: Drift) -> str:
        return "" if self.get_is_hidden(row) else row.server_words


class OpeningSerializer(serializers.Serializer[Any]):
    begins_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(allow_null=True, help_text="null if it does not end within a year")


class NextOpeningsSerializer(serializers.Serializer[Any]):
    request = serializers.IntegerField(help_text="number of the latest request with a report: what is in it selects")
    is_open = serializers.BooleanField(help_text="whether it can be applied now, as far as change windows decide")
    why = serializers.CharField(help_text="what is against it now; empty if nothing is")
    openings = OpeningSerializer(many=True, help_text="the next five within a year; the first has begun if it is open")


class ChangeWordsInput(serializers.Serializer[Any]):
    """Why a change is made; kept with its request, and written into annotations of the BundleDeployment."""

    change_reason = serializers.CharField(max_length=REASON_LENGTH, allow_blank=True, default="")
    change_ticket = serializers.RegexField(
        rf"\A{TICKET_FORM}\Z", max_length=TICKET_LENGTH, allow_blank=True, default="", help_text="without an @"
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Both as one value, `words`."""
        attrs["words"] = ChangeWords.of_text(attrs.pop("change_reason"), attrs.pop("change_ticket"))
        return attrs


class DeploymentInput(ChangeWordsInput):
    cluster = serializers.SlugField()
    name = serializers.CharField(max_length=52)
    labels = serializers.DictField(child=serializers.CharField(max_length=63), default=dict)
    spec = serializers.DictField()


class SpecInput(ChangeWordsInput):
    generation = serializers.IntegerField(min_value=1)
    spec = serializers.DictField()


class AskAgainInput(serializers.Serializer[Any]):
    generation = serializers.IntegerField(min_value=1)


class PauseInput(serializers.Serializer[Any]):
    is_paused = serializers.BooleanField()
    reason = serializers.CharField(max_length=900, allow_blank=True, default="")


class RevisionInput(serializers.Serializer[Any]):
    revision = serializers.IntegerField(min_value=1, max_value=999_999_999)


class RollbackInput(RevisionInput, ChangeWordsInput):
    pass


class RotateInput(ChangeWordsInput):
    target = serializers.CharField(
        max_length=520, help_text="a Secret, SECRET/KEY, or `*` for all values but names of objects"
    )


class ReinstateInput(RevisionInput):
    reason = serializers.CharField(max_length=MAX_REASON, allow_blank=True, default="")


class RevokeInput(RevisionInput):
    reason = serializers.CharField(max_length=MAX_REASON, help_text="why nobody should roll back to it")
