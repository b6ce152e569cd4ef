"""What the API shows and takes. Live values of a cluster are shown by `visible_report` only (security-rules.md S09)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals import services
from approvals.access import policy_identity
from approvals.access.sight import without_values
from approvals.audit import public_facts
from approvals.lifecycle import State
from approvals.models import (
    ApiToken,
    AuditEntry,
    BundleDeployment,
    Cluster,
    Dismissal,
    Drift,
    Outcome,
    Policy,
    Proof,
    Request,
    Review,
    Revision,
    VoidedRound,
)
from approvals.services.acknowledging import acknowledgements
from approvals.services.revisions import MAX_REASON
from approvals.services.waivers import MAX_WAIVER_REASON, MAX_WAIVERS


class ClusterSerializer(serializers.ModelSerializer[Cluster]):
    class Meta:
        model = Cluster
        fields = ["name", "uid", "version", "reached_at", "problem"]


class RevisionSerializer(serializers.ModelSerializer[Revision]):
    content_digest = serializers.CharField(source="content_id")
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


class DeploymentSerializer(serializers.ModelSerializer[BundleDeployment]):
    cluster = serializers.CharField(source="cluster.name")
    active_revision = RevisionSerializer(allow_null=True)

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
            "deletion_requested_at",
            "seen_at",
        ]


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


class DeploymentInput(serializers.Serializer[Any]):
    cluster = serializers.SlugField()
    name = serializers.CharField(max_length=52)
    labels = serializers.DictField(child=serializers.CharField(max_length=63), default=dict)
    spec = serializers.DictField()


class SpecInput(serializers.Serializer[Any]):
    generation = serializers.IntegerField(min_value=1)
    spec = serializers.DictField()


class ReportPart(serializers.Serializer[Any]):
    """Which part of a large report: from which finding, action and container on; or one finding."""

    findings_from = serializers.IntegerField(min_value=0, default=0)
    actions_from = serializers.IntegerField(min_value=0, default=0)
    containers_from = serializers.IntegerField(min_value=0, default=0)
    finding = serializers.CharField(max_length=80, default="")


class ChangesPart(serializers.Serializer[Any]):
    """From which line on the changes of an object are wanted."""

    lines_from = serializers.IntegerField(min_value=0, default=0)


class PauseInput(serializers.Serializer[Any]):
    is_paused = serializers.BooleanField()
    reason = serializers.CharField(max_length=900, allow_blank=True, default="")


class RollbackInput(serializers.Serializer[Any]):
    revision = serializers.IntegerField(min_value=1, max_value=999_999_999)


class ReinstateInput(RollbackInput):
    reason = serializers.CharField(max_length=MAX_REASON, allow_blank=True, default="")


class RevokeInput(RollbackInput):
    reason = serializers.CharField(max_length=MAX_REASON, help_text="why nobody should roll back to it")


ALLOWED = "Kubernetes allowed this reviewer to decide; the role is shown only to people who can get roles and bindings"


class DismissalSerializer(serializers.ModelSerializer[Dismissal]):
    class Meta:
        model = Dismissal
        fields = ["username", "reason", "channel", "given_at"]


class DismissInput(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=4000, help_text="why the request may go on without the changes")


class ReviewSerializer(serializers.ModelSerializer[Review]):
    access_reason = serializers.SerializerMethodField(
        help_text="why Kubernetes allowed it, with the roles if you can get roles and bindings"
    )

    is_replaced = serializers.BooleanField(
        read_only=True, help_text="whether a later review by the same reviewer replaces it"
    )

    dismissals = DismissalSerializer(many=True, help_text="who dismissed the changes that it requests, and why")

    class Meta:
        model = Review
        fields = [
            "id",
            "round",
            "is_replaced",
            "decision",
            "subject_digest",
            "reason",
            "channel",
            "username",
            "groups",
            "acknowledges",
            "waives",
            "access_reason",
            "dismissals",
            "given_at",
        ]

    def get_access_reason(self, review: Review) -> str:
        """The words of the authorizer name roles and bindings: values of those (S27)."""
        may_see = self.context.get("may_see_roles")
        return review.access_reason if may_see and may_see(review.request) else ALLOWED


class RequesterSerializer(serializers.Serializer[Any]):
    """The issuer's `sub` is not included."""

    username = serializers.CharField()
    uid = serializers.CharField(default="")
    groups = serializers.ListField(child=serializers.CharField(), default=list)
    groups_at = serializers.CharField(default="", help_text='when the groups were verified; "" if unknown')
    via = serializers.CharField(default="")
    user_id = serializers.IntegerField(allow_null=True, default=None)


class NextStepSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(source="label")
    url = serializers.CharField(help_text="the page, or where its form is sent")
    verb = serializers.CharField(help_text="what it takes on the BundleDeployment; empty if nothing")


class StatusSerializer(serializers.Serializer[Any]):
    """How the request stands, in words."""

    summary = serializers.CharField(source="label", help_text="one or two words")
    cause = serializers.CharField(help_text="one sentence")
    by = serializers.ListField(child=serializers.CharField(), help_text="the people and policies that it is of")
    since = serializers.DateTimeField()
    steps = NextStepSerializer(many=True, help_text="what to do next, the best first")


class RequestSerializer(serializers.ModelSerializer[Request]):
    cluster = serializers.CharField(source="deployment.cluster.name")
    deployment = serializers.CharField(source="deployment.name")
    content_digest = serializers.CharField(source="content_id", allow_null=True)
    verdict = serializers.SerializerMethodField()
    to_revision = serializers.IntegerField(source="to_revision.number", allow_null=True, default=None)
    worst = serializers.SerializerMethodField()
    headline = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField(help_text="the cause, by whom, since when, and the next step")
    requesters = RequesterSerializer(
        many=True, help_text="everyone who changed the spec since the running revision, or requested the change"
    )

    class Meta:
        model = Request
        fields = [
            "uid",
            "cluster",
            "deployment",
            "number",
            "purpose",
            "to_revision",
            "state",
            "round",
            "generation",
            "content_digest",
            "plan_digest",
            "subject_digest",
            "pins",
            "requesters",
            "is_requester_known",
            "is_unattended",
            "verdict",
            "worst",
            "headline",
            "problem_code",
            "problem",
            "remedy",
            "awaits",
            "phase",
            "look_again_at",
            "created_at",
            "changed_at",
            "expires_at",
            "settled_at",
            "cleared_at",
            "status",
        ]

    @extend_schema_field(StatusSerializer)
    def get_status(self, request: Request) -> dict[str, Any]:
        return dict(StatusSerializer(self.context["status_of"](request)).data)

    def get_verdict(self, request: Request) -> str:
        return next((it.verdict for it in request.verdicts.all() if it.round == request.round), "")

    def get_worst(self, request: Request) -> str:
        return next((it.worst for it in request.reports.all() if it.round == request.round), "")

    def get_headline(self, request: Request) -> list[str]:
        return next((it.headline for it in request.reports.all() if it.round == request.round), [])


class AcknowledgementSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="as `acknowledges` of an approval names it")
    words = serializers.CharField(help_text="what is deleted along with it; empty if nothing else is")


class FindingChangeSerializer(serializers.Serializer[Any]):
    change = serializers.CharField(help_text="new, worse or gone")
    severity = serializers.CharField()
    was = serializers.CharField(help_text="the severity before; empty if there was none")
    rule = serializers.CharField()
    message = serializers.CharField()
    fingerprint = serializers.CharField()


class ObjectChangeSerializer(serializers.Serializer[Any]):
    object = serializers.CharField()
    was = serializers.CharField(help_text="the planned action when you reviewed; empty if it was not in the plan")
    now = serializers.CharField(help_text="the planned action now; the same one where the content differs")
    position = serializers.IntegerField(allow_null=True, help_text="in the current plan")


class DifferencesSerializer(serializers.Serializer[Any]):
    findings = FindingChangeSerializer(many=True)
    objects = ObjectChangeSerializer(many=True)
    more_findings = serializers.IntegerField()
    more_objects = serializers.IntegerField()


class SinceReviewSerializer(serializers.Serializer[Any]):
    """Your last review, if it is of an earlier round or request, and what differs since; only what you can get."""

    decision = serializers.CharField()
    given_at = serializers.DateTimeField()
    request = serializers.UUIDField(source="request.uid")
    round = serializers.IntegerField()
    why = serializers.CharField(help_text="why it is not about the current round")
    is_blocking = serializers.BooleanField(help_text="whether it requests changes and holds the request back")
    differences = DifferencesSerializer()


class VoidedRoundSerializer(serializers.ModelSerializer[VoidedRound]):
    class Meta:
        model = VoidedRound
        fields = ["round", "was_approved", "code", "words", "objects_differing", "more_objects", "at"]


class RequestDetailSerializer(RequestSerializer):
    reviews = ReviewSerializer(many=True)
    voided_rounds = VoidedRoundSerializer(many=True, help_text="rounds whose reviews no longer count, with the reason")
    to_acknowledge = serializers.SerializerMethodField()
    server_words = serializers.SerializerMethodField(
        help_text="messages of the API server about the problem, for objects that you can get"
    )

    since_your_review = serializers.SerializerMethodField(
        help_text="what differs since your last review of an earlier round or request; null if there is none"
    )

    class Meta(RequestSerializer.Meta):
        fields = [
            *RequestSerializer.Meta.fields,
            "spec",
            "reviews",
            "voided_rounds",
            "since_your_review",
            "to_acknowledge",
            "server_words",
        ]

    @extend_schema_field(SinceReviewSerializer(allow_null=True))
    def get_since_your_review(self, request: Request) -> dict[str, Any] | None:
        found = self.context["since_review"](request)
        return dict(SinceReviewSerializer(found).data) if found else None

    def get_server_words(self, request: Request) -> list[str]:
        return list(self.context["said_of"](request))

    @extend_schema_field(AcknowledgementSerializer(many=True))
    def get_to_acknowledge(self, request: Request) -> list[dict[str, str]]:
        """What an approval must name at present; nothing where the request takes no decision."""
        asked = acknowledgements(request) if request.state == State.IN_REVIEW else []
        return [{"name": one.name, "words": one.words} for one in asked]


class OutcomeSerializer(serializers.ModelSerializer[Outcome]):
    """`warnings` and `server_words` are included if the caller is allowed to get the object."""

    class Meta:
        model = Outcome
        fields = ["position", "object", "action", "state", "message", "warnings", "server_words", "at"]

    def to_representation(self, instance: Outcome) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(self.context["show_words"](instance))
        return shown


class WaiverInput(serializers.Serializer[Any]):
    fingerprint = serializers.CharField(max_length=80, help_text="of a finding of the current round's report")
    reason = serializers.CharField(max_length=MAX_WAIVER_REASON, help_text="why the finding is accepted")


class ReviewInput(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(
        choices=services.reviews.DECISIONS,
        help_text="RequestChanges needs a reason; it holds back every approval, in later rounds too, until its author "
        "reviews again or it is dismissed",
    )
    subject_digest = serializers.CharField(max_length=80, help_text="the digest of what you reviewed")
    reason = serializers.CharField(max_length=4000, allow_blank=True, default="")
    acknowledges = serializers.ListField(
        child=serializers.CharField(max_length=700),
        max_length=5000,
        default=list,
        help_text="for an approval: every `name` of the request's `to_acknowledge`; its `words` say what goes with it",
    )
    waives = serializers.ListField(
        child=WaiverInput(),
        max_length=MAX_WAIVERS,
        default=list,
        help_text="findings that are accepted with the approval; needs `override` on the BundleDeployment",
    )


class WithdrawInput(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=4000, allow_blank=True, default="")


class ProofSerializer(serializers.ModelSerializer[Proof]):
    cluster = serializers.CharField(source="identity.cluster.name")
    username = serializers.CharField(source="identity.username")

    class Meta:
        model = Proof
        fields = ["cluster", "username", "groups", "proved_at"]


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    scopes = serializers.ListField(child=serializers.CharField(), help_text=f"of {', '.join(ApiToken.Scope.values)}")
    proofs = ProofSerializer(
        many=True,
        help_text="the identities of the token; each is valid for PRATIQUE_GROUPS_HOURS after it was verified",
    )

    class Meta:
        model = ApiToken
        fields = ["id", "name", "scopes", "proofs", "created_at", "expires_at", "last_used_at"]


class ProveInput(serializers.Serializer[Any]):
    cluster = serializers.CharField(max_length=63)
    token = serializers.CharField(max_length=20_000, write_only=True)


class CommandLineIssuerSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField()
    authorization_url = serializers.CharField(help_text="where a browser signs in (OAuth 2.0, PKCE with S256)")
    client_id = serializers.CharField()
    scopes = serializers.ListField(child=serializers.CharField())


class ExchangeInput(serializers.Serializer[Any]):
    issuer = serializers.CharField(max_length=63, help_text="its name, as GET /api/v1/sign-in/issuers gives it")
    code = serializers.CharField(max_length=4096, help_text="what the issuer sent the browser back with")
    redirect_uri = serializers.CharField(
        max_length=200, help_text="http://127.0.0.1:PORT/, where the browser came back"
    )
    verifier = serializers.CharField(min_length=43, max_length=128, help_text="the secret of PKCE (RFC 7636)")
    service = serializers.CharField(
        max_length=500,
        help_text="the URL of this service, as the command line knows it. The sign-in's nonce is "
        "BASE64URL(SHA256(service, a newline, verifier)), so that it counts at this service only",
    )
    name = serializers.CharField(max_length=100, help_text="what the account page shows the token as")


class NewTokenSerializer(serializers.Serializer[Any]):
    token = serializers.CharField(help_text="shown once")
    about = TokenSerializer()


class PolicySerializer(serializers.ModelSerializer[Policy]):
    cluster = serializers.CharField(source="cluster.name", allow_null=True)
    approves_as = serializers.SerializerMethodField(help_text="the user name that needs `approve` by RBAC")

    class Meta:
        model = Policy
        fields = [
            "name",
            "kind",
            "mode",
            "cluster",
            "names",
            "labels",
            "expression",
            "message",
            "version",
            "is_active",
            "approves_as",
        ]

    def get_approves_as(self, policy: Policy) -> str:
        return policy_identity(policy).username if policy.kind == Policy.Kind.GRANT else ""


class AuditSerializer(serializers.ModelSerializer[AuditEntry]):
    facts = serializers.SerializerMethodField()

    class Meta:
        model = AuditEntry
        fields = ["number", "at", "verb", "actor", "via", "cluster", "deployment", "request_uid", "facts", "hash"]

    @extend_schema_field(serializers.DictField())
    def get_facts(self, entry: AuditEntry) -> dict[str, Any]:
        return public_facts(entry.facts)
