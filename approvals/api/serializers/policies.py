"""What is written of policies, what they said of a request, and what a draft would have said of past ones."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals.models import Policy, PolicyEvaluation
from approvals.policy.explanation import TermValue
from approvals.policy.expression import MAX_EXPRESSION
from approvals.policy.replay import ReplayResult
from approvals.services.policies.replays import DAYS, MAX_DAYS


class PolicyInput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=Policy.Kind.choices)
    mode = serializers.ChoiceField(choices=Policy.Mode.choices, default=Policy.Mode.DRY_RUN)
    cluster = serializers.CharField(max_length=63)
    names = serializers.ListField(
        child=serializers.CharField(max_length=253),
        max_length=100,
        default=list,
        help_text="names or globs; empty: all",
    )
    labels = serializers.DictField(child=serializers.CharField(max_length=63, allow_blank=True), default=dict)
    expression = serializers.CharField(max_length=MAX_EXPRESSION)
    message = serializers.CharField(max_length=1000, allow_blank=True, default="")
    allows_known_powers = serializers.BooleanField(default=False)
    is_active = serializers.BooleanField(default=True)


class NewPolicyInput(PolicyInput):
    name = serializers.CharField(max_length=63)


class TermSerializer(serializers.Serializer[TermValue]):
    text = serializers.CharField(help_text="a part of the expression that is joined by `&&` or `||`")
    before = serializers.CharField(help_text="how it is joined to the part before, such as `or not (`")
    after = serializers.CharField(help_text="the parentheses that it closes")
    value = serializers.BooleanField(allow_null=True, help_text="null where it has none; `words` says why")
    words = serializers.CharField()
    facts = serializers.SerializerMethodField(help_text="the facts that it reads, shortened, by name")

    @extend_schema_field(serializers.DictField(child=serializers.CharField()))
    def get_facts(self, term: TermValue) -> dict[str, str]:
        return dict(term.facts)


class EvaluationSerializer(serializers.ModelSerializer[PolicyEvaluation]):
    """What a policy said of the present round. `terms` hold what you may know of the report."""

    policy = serializers.CharField(source="policy.name")
    kind = serializers.CharField(source="policy.kind")
    mode = serializers.CharField(source="policy.mode")
    terms = serializers.SerializerMethodField()

    class Meta:
        model = PolicyEvaluation
        fields = ["policy", "kind", "mode", "policy_version", "result", "words", "at", "terms"]

    @extend_schema_field(TermSerializer(many=True))
    def get_terms(self, evaluation: PolicyEvaluation) -> list[dict[str, Any]]:
        return list(TermSerializer(self.context["terms"].get(evaluation.pk, ()), many=True).data)


class PolicyTestInput(serializers.Serializer[Any]):
    policy = serializers.DictField(help_text="an ApprovalPolicy, as a JSON object")
    days = serializers.IntegerField(min_value=1, max_value=MAX_DAYS, default=DAYS, help_text="how far to look back")


class TestedRequestSerializer(serializers.Serializer[Any]):
    uid = serializers.CharField(source="request.uid")
    cluster = serializers.CharField(source="request.deployment.cluster.name")
    deployment = serializers.CharField(source="request.deployment.name")
    number = serializers.IntegerField(source="request.number")
    created_at = serializers.DateTimeField(source="request.created_at")
    state = serializers.CharField(source="request.state", help_text="what really became of it")
    verdict = serializers.CharField(help_text="the verdict that it really got; empty if none")
    result = serializers.ChoiceField(source="replayed.result", choices=[str(result) for result in ReplayResult])
    words = serializers.CharField(
        source="replayed.words", help_text="why it was not selected, is unknown or would not have been approved"
    )
    terms = TermSerializer(source="replayed.terms", many=True)


class PolicyTestSerializer(serializers.Serializer[Any]):
    policy = serializers.CharField(source="replay.document.name")
    effect = serializers.CharField(source="replay.document.effect")
    days = serializers.IntegerField(source="replay.days")
    counts = serializers.DictField(
        source="replay.counts", child=serializers.IntegerField(), help_text="how many requests had each result"
    )
    left_out = serializers.IntegerField(source="replay.left_out", help_text="older requests that were not looked at")
    why_left_out = serializers.CharField(source="replay.why_left_out")
    could_not_ask = serializers.ListField(
        child=serializers.CharField(), help_text="clusters that could not be asked what you may read: none of theirs"
    )
    requests = TestedRequestSerializer(source="replay.rows", many=True, help_text="the latest first")
