"""API groups answered by a Service of the bundle instead of the API server: taken over, unreachable, or left behind."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, mapping
from provisioner.values import Action, Finding, GroupKind, ObjectRef, Section, Severity

_SHADOWS = ReviewRule("AS-01", Section.WEBHOOKS, Severity.CRITICAL)
_NO_SERVICE = ReviewRule("AS-03", Section.WEBHOOKS, Severity.BREAKING)
_SERVICE_UNKNOWN = ReviewRule("AS-03", Section.WEBHOOKS, Severity.UNKNOWN)
_GONE = ReviewRule("AS-04", Section.WEBHOOKS, Severity.BREAKING)

API_SERVICE = GroupKind("apiregistration.k8s.io", "APIService")


def service_of(obj: object) -> ObjectRef | None:
    """The Service that answers for an APIService; None where the API server does itself."""
    service = mapping(mapping(mapping(obj).get("spec")).get("service"))
    if not service.get("name"):
        return None
    return ObjectRef("", "v1", "Service", str(service.get("namespace") or ""), str(service["name"]))


def _standing(state: StateFacts) -> Iterator[Finding]:
    brought = {ref.identity for ref, _ in state.named}
    for ref, obj in state.named:
        service = service_of(obj)
        if ref.group_kind != API_SERVICE or service is None or service.identity in brought or state.is_offline:
            continue
        exists = state.around.exists.get(service.identity)
        if not exists:
            rule, variant = (_SERVICE_UNKNOWN, "service-unknown") if exists is None else (_NO_SERVICE, "no-service")
            yield rule.finding(variant, ref, where=("spec", "service"), key=str(service), service=service)


def _changes(facts: Facts) -> Iterator[Finding]:
    """Groups that the cluster serves already, by somebody else; and groups that nobody answers for afterwards."""
    for planned in facts.plan.actions:
        if planned.ref.group_kind != API_SERVICE:
            continue
        spec = mapping((planned.after or planned.before or {}).get("spec"))
        group, version = str(spec.get("group") or ""), str(spec.get("version") or "")
        kinds = sorted({one.kind for one in facts.around.kinds or () if (one.group, one.version) == (group, version)})
        api = f"{group}/{version}"
        if planned.action is Action.CREATE and kinds and spec.get("service"):
            yield _SHADOWS.finding("takes-over", planned.ref, key=["shadows", group, version], api=api, kinds=kinds)
        elif planned.action is Action.DELETE:
            yield _GONE.finding("no-longer-served", planned.ref, key=[group, version], api=api, kinds=kinds)


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    brought = {one.ref.identity for one in facts.content.manifests}
    for manifest in facts.content.manifests:
        service = service_of(manifest.body) if manifest.ref.group_kind == API_SERVICE else None
        if service is not None and service.identity not in brought:
            yield service


CHECK = Check("api-services", changes=_changes, standing=_standing, mentions=_mentions)
