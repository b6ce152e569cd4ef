"""Comparisons of bundles of a catalog: what is asked, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from approvals.models import BundleComparison
from approvals.services import AskedComparison, ComparisonQuestion
from provisioner.catalogs.values import CatalogBundle

MAX_NAME = 500


class ComparisonQuestionSerializer(serializers.Serializer[Any]):
    """Which bundles are compared, by name or version, and how they are rendered."""

    deployment = serializers.CharField(
        max_length=MAX_NAME, default="", allow_blank=True, help_text="a BundleDeployment: what runs is what it runs"
    )
    install_namespace = serializers.CharField(
        max_length=MAX_NAME, default="", allow_blank=True, help_text="empty: what the bundle suggests"
    )
    service_account = serializers.CharField(
        max_length=MAX_NAME, default="", allow_blank=True, help_text="who would install it; empty: PACKAGE-installer"
    )

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """With `from` and `to`, of which one is no name in Python."""
        first = {
            "from": serializers.CharField(
                max_length=MAX_NAME, default="", allow_blank=True, help_text="a bundle or version; empty: nothing runs"
            ),
            "to": serializers.CharField(max_length=MAX_NAME, help_text="a bundle or version"),
        }
        return {**first, **super().get_fields()}


class ComparisonPart(serializers.Serializer[Any]):
    """Which part of a large report: from which finding and action on."""

    findings_from = serializers.IntegerField(min_value=0, default=0)
    actions_from = serializers.IntegerField(min_value=0, default=0)


class ContentDigestsSerializer(serializers.Serializer[Any]):
    before = serializers.CharField()
    after = serializers.CharField()


class PinsSerializer(serializers.Serializer[Any]):
    before = serializers.ListField(child=serializers.CharField())
    after = serializers.ListField(child=serializers.CharField())


class RiskSerializer(serializers.Serializer[Any]):
    severity = serializers.CharField()
    sentence = serializers.CharField()


class AccountRightsSerializer(serializers.Serializer[Any]):
    account = serializers.CharField()
    sentence = serializers.CharField()
    gained = serializers.ListField(child=serializers.CharField(), help_text="rights in words; the first 200")
    gained_count = serializers.IntegerField(help_text="rules with rights that it gains")
    lost = serializers.ListField(child=serializers.CharField(), help_text="rights in words; the first 200")
    lost_count = serializers.IntegerField(help_text="rules with rights that it loses")
    risks = RiskSerializer(many=True, help_text="what is dangerous and new")


class RoleRightsSerializer(serializers.Serializer[Any]):
    role = serializers.CharField()
    sentence = serializers.CharField()


class RightsSerializer(serializers.Serializer[Any]):
    """Effective permissions, by the roles and bindings of the two bundles alone."""

    worst = serializers.CharField(help_text="the severity of the worst gain")
    accounts = AccountRightsSerializer(many=True)
    everybody = RoleRightsSerializer(many=True, help_text="what all gain and lose who have a role by other bindings")
    problems = serializers.ListField(child=serializers.CharField(), help_text="what could not be told")


class ImageSerializer(serializers.Serializer[Any]):
    ref = serializers.DictField(child=serializers.CharField(), help_text="the object that runs it")
    container = serializers.CharField()
    before = serializers.CharField(help_text="empty: there was none")
    after = serializers.CharField(help_text="empty: there is none any more")


class InstallerSerializer(serializers.Serializer[Any]):
    """The least rights with which an account can install the bundle where nothing of it is yet."""

    yaml = serializers.CharField(help_text="ServiceAccount, roles and bindings, to be applied")
    summary = serializers.CharField()
    is_complete = serializers.BooleanField(help_text="false: a rule may be missing; `obstacles` says why")
    obstacles = serializers.ListField(child=serializers.CharField(), help_text="what no rule clears; the first 100")
    obstacle_count = serializers.IntegerField()


class ComparedLineSerializer(serializers.Serializer[Any]):
    kind = serializers.CharField(help_text="+, - or a space")
    text = serializers.CharField()
    old = serializers.IntegerField(help_text="its number before; 0 where it was not there")
    new = serializers.IntegerField(help_text="its number after; 0 where it is gone")


class HunkSerializer(serializers.Serializer[Any]):
    place = serializers.CharField(help_text="the field where it begins; empty: the beginning of the object")
    lines = ComparedLineSerializer(many=True)


class ComparedLinesSerializer(serializers.Serializer[Any]):
    """What differs in one object of a comparison."""

    ref = serializers.DictField(child=serializers.CharField())
    is_hidden = serializers.BooleanField(help_text="true: you may not get this object, so no line is given")
    hunks = HunkSerializer(many=True)
    parts = serializers.DictField(help_text="of `lines`: total, from, count, and next, where the next part starts")
    left_out = serializers.IntegerField(help_text="lines that are not kept, as the object or all are large")


class ComparisonResultSerializer(serializers.Serializer[Any]):
    pins = PinsSerializer(help_text="the digests that were fetched")
    content_digests = ContentDigestsSerializer(
        help_text="of the rendered objects; empty for what runs, and with a Secret"
    )
    install_namespace = serializers.CharField()
    service_account = serializers.CharField()
    suggested_namespace = serializers.CharField(help_text="by the bundle; empty: it does not say")
    config = serializers.DictField(help_text="with which it was rendered, where a bundle needs one")
    report = serializers.DictField(
        help_text="as the report of a request (report.schema.json), without a cluster and without states of objects"
    )
    changed = serializers.DictField(
        child=serializers.ListField(child=serializers.IntegerField()),
        help_text="by the position of an object in the plan: how many lines come, and how many go",
    )
    permissions = RightsSerializer()
    images = ImageSerializer(many=True)
    installer = InstallerSerializer(allow_null=True, help_text="null where something runs already")
    hidden = serializers.ListField(child=serializers.CharField(), help_text="what is left out for you, in words")


class ComparisonSerializer(serializers.Serializer[Any]):
    """What would change. It is no request, and does not look at the live objects of the cluster."""

    after = serializers.CharField(help_text="the name of the bundle")
    before = serializers.CharField(help_text="the name of the bundle; empty: nothing, or what `deployment` runs")
    deployment = serializers.CharField()
    # A closed set here would rename that of another state in the description.
    state = serializers.CharField(help_text="waiting, done or failed")
    progress = serializers.CharField(help_text="what is being done, while it is waiting")
    asked_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True, help_text="until when the result is kept")
    problem = serializers.CharField(help_text="why it failed")
    problem_code = serializers.CharField()
    result = serializers.SerializerMethodField(help_text="null until state is done")

    @extend_schema_field(ComparisonResultSerializer(allow_null=True))
    def get_result(self, record: Mapping[str, Any]) -> Any:
        return record["result"]


def question_of(package: str, given: Mapping[str, str]) -> ComparisonQuestion:
    return ComparisonQuestion(
        package=package,
        after=given["to"],
        before=given["from"],
        deployment=given["deployment"],
        namespace=given["install_namespace"],
        account=given["service_account"],
    )


def comparison_record(
    asked: AskedComparison, row: BundleComparison, result: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What ComparisonSerializer shows."""
    return {
        "after": asked.after.name,
        "before": _bundle_name(asked.before),
        "deployment": asked.deployment.name if asked.deployment else "",
        "state": row.state,
        "progress": row.progress,
        "asked_at": row.asked_at,
        "ended_at": row.ended_at,
        "expires_at": row.expires_at,
        "problem": row.problem,
        "problem_code": row.problem_code,
        "result": result,
    }


def _bundle_name(bundle: CatalogBundle | None) -> str:
    return bundle.name if bundle else ""
