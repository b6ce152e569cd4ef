"""Requests: how they stand, and what may be known of them."""

from __future__ import annotations

from typing import Any

from django.utils.functional import cached_property
from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals import services
from approvals.api.serializers.deployments import DIGEST, SPEC
from approvals.api.serializers.policies import EvaluationSerializer
from approvals.lifecycle import State
from approvals.models import AFTERWARDS, BREAK_GLASS, Dismissal, Outcome, Request, Review, VoidedRound
from approvals.selectors import debts
from approvals.selectors.inbox_columns import REST_COLUMNS, Column
from approvals.services.approval_terms import acknowledgements
from approvals.services.waivers import MAX_WAIVER_REASON, MAX_WAIVERS
from provisioner.masking import masked_value

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

    subject_digest = serializers.SerializerMethodField(help_text="empty for what earlier versions settled")
    carries = serializers.PrimaryKeyRelatedField[Review](
        read_only=True,
        allow_null=True,
        help_text="the id of the approval that it carries over from an earlier round or request, else null",
    )
    dismissals = DismissalSerializer(many=True, help_text="who dismissed the changes that it requests, and why")

    class Meta:
        model = Review
        fields = [
            "id",
            "round",
            "is_replaced",
            "carries",
            "decision",
            "subject_digest",
            "reason",
            "incident",
            "channel",
            "username",
            "deputy_words",
            "groups",
            "acknowledges",
            "waives",
            "access_reason",
            "dismissals",
            "given_at",
        ]

    def get_subject_digest(self, review: Review) -> str:
        return review.subject_digest if review.request.public_subject_digest else ""

    def get_access_reason(self, review: Review) -> str:
        """The words of the authorizer name roles and bindings: values of those (S27)."""
        may_see = self.context.get("may_see_roles")
        return review.access_reason if may_see and may_see(review.request) else ALLOWED


class AcknowledgementSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="as `acknowledges` of an approval names it")
    words = serializers.CharField(help_text="what is deleted along with it; empty if nothing else is")


class WaiverInput(serializers.Serializer[Any]):
    fingerprint = serializers.CharField(max_length=80, help_text="of a finding of the current round's report")
    reason = serializers.CharField(max_length=MAX_WAIVER_REASON, help_text="why the finding is accepted")


class ReviewInput(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(
        choices=[*services.reviews.DECISIONS, BREAK_GLASS, *AFTERWARDS],
        help_text="RequestChanges needs a reason; it holds back every approval, in later rounds too, until its author "
        "reviews again or it is dismissed. BreakGlass needs a reason and an incident, Object a reason",
    )
    incident = serializers.CharField(
        max_length=200, allow_blank=True, default="", help_text="with BreakGlass: the number of the incident"
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
    apply_at = serializers.DateTimeField(
        allow_null=True, default=None, help_text="with an approval: the request is not applied before that time"
    )


class ApplyAtInput(serializers.Serializer[Any]):
    apply_at = serializers.DateTimeField(
        allow_null=True, help_text="the request is not applied before that time; null: as soon as possible"
    )


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


class ReportPart(serializers.Serializer[Any]):
    """Which part of a large report: from which finding, action, workload and container on; or one finding."""

    findings_from = serializers.IntegerField(min_value=0, default=0)
    actions_from = serializers.IntegerField(min_value=0, default=0)
    workloads_from = serializers.IntegerField(min_value=0, default=0)
    entries_from = serializers.IntegerField(min_value=0, default=0)
    containers_from = serializers.IntegerField(min_value=0, default=0)
    finding = serializers.CharField(max_length=80, default="")


class ChangesPart(serializers.Serializer[Any]):
    """From which line on the changes of an object are wanted."""

    lines_from = serializers.IntegerField(min_value=0, default=0)


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


class ColumnField(serializers.Field[Any, Any, Any, Any]):
    """What a column of the inbox says of a request, which its query has annotated."""

    def __init__(self, column: Column) -> None:
        self.column = column
        super().__init__(source="*", read_only=True)

    def to_representation(self, value: Any) -> Any:
        return self.column.rest_value(value)


class ColumnFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # its metaclass has no types
    target_class = ColumnField

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return dict(self.target.column.rest_schema)


class RuleNeedsSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="the name of the ApprovalRule")
    needed = serializers.ListField(child=serializers.CharField(), help_text="what is still needed; empty: nothing")
    problem = serializers.CharField(help_text="why it holds the request whatever people say, or empty")
    note = serializers.CharField(help_text="why it is taken to select the request although nobody can tell, or empty")
    escalated = serializers.ListField(
        child=serializers.CharField(),
        default=list,
        help_text="groups whose members count, because the request has waited",
    )


class EarlierApprovalSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="who approved")
    number = serializers.IntegerField(help_text="the number of the request that they approved")
    round = serializers.IntegerField()
    at = serializers.DateTimeField(help_text="when they approved")
    why_not = serializers.CharField(help_text="why it is not carried over; empty if it is")


class FindingExceptionSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="the name of the FindingException")
    reason = serializers.CharField()
    ticket = serializers.CharField()
    until = serializers.DateTimeField(help_text="it accepts nothing from then on")
    by = serializers.ListField(child=serializers.CharField(), help_text="the people who agreed to it")
    fingerprints = serializers.ListField(child=serializers.CharField(), help_text="the findings that it accepts")


class CheckResultSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="the name of the ExternalCheck")
    stage = serializers.CharField(help_text="AfterReport or BeforeApply; empty if it cannot be read")
    enforcement = serializers.CharField(help_text="Mandatory or Advisory; empty if it cannot be read")
    state = serializers.CharField(
        help_text="unreadable, no secret, not asked, waiting, pending, passed, failed or no answer (in time)"
    )
    words = serializers.CharField(help_text="the state in words, with the message of the check")
    link = serializers.CharField(help_text="an https URL that the check gave, or empty")
    holds = serializers.BooleanField(help_text="whether it holds the request, now or before the apply")
    since = serializers.DateTimeField(allow_null=True, help_text="when it answered, or was asked")
    due_at = serializers.DateTimeField(allow_null=True, help_text="until when an answer counts")


class RequestSerializer(serializers.ModelSerializer[Request]):
    cluster = serializers.CharField(source="deployment.cluster.name")
    deployment = serializers.CharField(source="deployment.name")
    content_digest = serializers.CharField(source="content.public_digest", allow_null=True, help_text=DIGEST)
    subject_digest = serializers.CharField(source="public_subject_digest", help_text=DIGEST)
    verdict = serializers.SerializerMethodField()
    to_revision = serializers.IntegerField(source="to_revision.number", allow_null=True, default=None)
    pins = serializers.SerializerMethodField()
    status = serializers.SerializerMethodField(help_text="the cause, by whom, since when, and the next step")
    rotation = serializers.ListField(
        child=serializers.CharField(),
        help_text="the values of the chart that are made anew: Secrets, SECRET/KEY, or `*` for all",
    )
    approval_rules = RuleNeedsSerializer(
        many=True, help_text="the ApprovalRules that select the request, as they were judged last"
    )
    earlier_approvals = EarlierApprovalSerializer(
        many=True,
        help_text="approvals of earlier rounds and requests, where approval rules carry over what brings nothing new",
    )
    finding_exceptions = FindingExceptionSerializer(
        many=True, help_text="the FindingExceptions that accept findings of this round, as they were judged last"
    )
    external_checks = CheckResultSerializer(
        many=True, help_text="the ExternalChecks that select the request, as they stood when it was looked at last"
    )
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
            "rotation",
            "state",
            "round",
            "generation",
            "content_digest",
            "plan_digest",
            "subject_digest",
            "pins",
            "bundles",
            "change_reason",
            "change_ticket",
            "requesters",
            "is_requester_known",
            "is_unattended",
            "is_for_people",
            "verdict",
            "approval_rules",
            "earlier_approvals",
            "finding_exceptions",
            "external_checks",
            *REST_COLUMNS,
            "problem_code",
            "problem",
            "remedy",
            "awaits",
            "phase",
            "look_again_at",
            "created_at",
            "changed_at",
            "expires_at",
            "apply_at",
            "apply_at_by",
            "settled_at",
            "cleared_at",
            "status",
        ]

    def build_field(self, field_name: str, *args: Any) -> Any:
        """Beside fields of the model those of columns of the inbox."""
        if column := REST_COLUMNS.get(field_name):
            return ColumnField, {"column": column}
        return super().build_field(field_name, *args)

    @cached_property
    def _standing(self) -> StatusSerializer:
        return StatusSerializer()

    @extend_schema_field(StatusSerializer)
    def get_status(self, request: Request) -> dict[str, Any]:
        # One for all rows: to make it costs as much as the rest of a row.
        return dict(self._standing.to_representation(self.context["status_of"](request)))

    # What selectors.inbox tells of the present round with each row; Any, because the model has no such fields.
    def get_verdict(self, request: Any) -> str:
        return str(request.verdict or "")

    @extend_schema_field({})
    def get_pins(self, request: Request) -> Any:
        """What looks like a key in the path of a URL is hidden."""
        return masked_value(request.pins)


class VoidedRoundSerializer(serializers.ModelSerializer[VoidedRound]):
    class Meta:
        model = VoidedRound
        fields = ["round", "was_approved", "code", "words", "objects_differing", "more_objects", "at"]


class PlaceSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField(help_text="empty where the chart made up the name")
    path = serializers.CharField(
        help_text="a JSON pointer; an entry of a list that has a name of its own is `[name=NAME]`"
    )
    number = serializers.IntegerField(help_text="which of several in this text, from 0")


class MadeValueSerializer(serializers.Serializer[Any]):
    place = PlaceSerializer()
    sort = serializers.CharField()
    generation = serializers.IntegerField(help_text="of the values that this place has had, from 1")
    is_new = serializers.BooleanField(source="isNew", help_text="whether this request brings it, and none was there")
    is_rotated = serializers.BooleanField(
        source="isRotated", default=False, help_text="whether this request brings it in place of another one"
    )
    copies = PlaceSerializer(many=True, help_text="the other places with this value")


class MadeChecksumSerializer(serializers.Serializer[Any]):
    place = PlaceSerializer()
    is_known = serializers.BooleanField(source="isKnown", help_text="whether it is computed as the chart computes it")


class MadeUpSerializer(serializers.Serializer[Any]):
    values = MadeValueSerializer(many=True)
    checksums = MadeChecksumSerializer(many=True)


class BreakGlassSerializer(serializers.Serializer[Any]):
    username = serializers.CharField(source="broken.username", help_text="who broke glass")
    incident = serializers.CharField(source="broken.incident")
    reason = serializers.CharField(source="broken.reason")
    given_at = serializers.DateTimeField(source="broken.given_at")
    due_at = serializers.DateTimeField(help_text="by when someone else must review it")
    is_owed = serializers.BooleanField(help_text="whether the request went by it, and nobody has reviewed it yet")


class RequestDetailSerializer(RequestSerializer):
    break_glass = serializers.SerializerMethodField(help_text="null if nobody broke glass in the current round")
    reviews = ReviewSerializer(many=True)
    voided_rounds = VoidedRoundSerializer(many=True, help_text="rounds whose reviews no longer count, with the reason")
    to_acknowledge = serializers.SerializerMethodField()
    spec = serializers.SerializerMethodField(help_text=SPEC)
    server_words = serializers.SerializerMethodField(
        help_text="messages of the API server or of Helm about the problem, for objects that you can get"
    )

    made_values = serializers.SerializerMethodField(
        help_text="`values` and `checksums` that the chart made up, by their places; the values are shown to nobody"
    )
    since_your_review = serializers.SerializerMethodField(
        help_text="what differs since your last review of an earlier round or request; null if there is none"
    )

    evaluations = serializers.SerializerMethodField(help_text="what each policy said of the current round, and why")

    class Meta(RequestSerializer.Meta):
        fields = [
            *RequestSerializer.Meta.fields,
            "spec",
            "reviews",
            "evaluations",
            "break_glass",
            "voided_rounds",
            "since_your_review",
            "to_acknowledge",
            "server_words",
            "made_values",
            "engine",
        ]

    @extend_schema_field(EvaluationSerializer(many=True))
    def get_evaluations(self, request: Request) -> list[dict[str, Any]]:
        evaluations, terms = self.context["evaluations_of"](request)
        return list(EvaluationSerializer(evaluations, many=True, context={"terms": terms}).data)

    @extend_schema_field(BreakGlassSerializer(allow_null=True))
    def get_break_glass(self, request: Request) -> dict[str, Any] | None:
        broken = debts.break_glass_of(request)
        return dict(BreakGlassSerializer(debts.glass_of(broken)).data) if broken else None

    @extend_schema_field(SinceReviewSerializer(allow_null=True))
    def get_since_your_review(self, request: Request) -> dict[str, Any] | None:
        found = self.context["since_review"](request)
        return dict(SinceReviewSerializer(found).data) if found else None

    @extend_schema_field(serializers.DictField())
    def get_spec(self, request: Request) -> dict[str, Any]:
        return dict(self.context["shown_spec"](request.deployment, request.spec))

    @extend_schema_field(MadeUpSerializer)
    def get_made_values(self, request: Request) -> dict[str, Any]:
        return dict(MadeUpSerializer({"values": [], "checksums": [], **request.made_values}).data)

    def get_server_words(self, request: Request) -> list[str]:
        return list(self.context["said_of"](request))

    @extend_schema_field(AcknowledgementSerializer(many=True))
    def get_to_acknowledge(self, request: Request) -> list[dict[str, str]]:
        """What an approval must name at present; nothing where the request takes no decision."""
        asked = acknowledgements(request) if request.state == State.IN_REVIEW else []
        return [{"name": acknowledgement.name, "words": acknowledgement.words} for acknowledgement in asked]


class OutcomeSerializer(serializers.ModelSerializer[Outcome]):
    """`warnings` and `server_words` are included if the caller is allowed to get the object."""

    class Meta:
        model = Outcome
        fields = ["position", "object", "action", "state", "message", "warnings", "server_words", "at"]

    def to_representation(self, instance: Outcome) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(self.context["show_words"](instance))
        return shown


class WithdrawInput(serializers.Serializer[Any]):
    reason = serializers.CharField(max_length=4000, allow_blank=True, default="")
