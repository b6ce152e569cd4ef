"""What stays in the cluster and calls a Service that goes: admission webhooks, API groups, and conversions of CRDs.

What is kept is read as the bundle had it: what only the live object says is a value of it (S09).
"""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping
from provisioner.review.checks.network.api_services import API_SERVICE, service_of
from provisioner.review.checks.network.webhooks import webhooks_of
from provisioner.review.crds.live_scene import CRD
from provisioner.review.workloads.pod_specs import pod_specs, pods_of_service
from provisioner.schema.definition.crd import Crd
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectIdentity, ObjectRef, Section, Severity

_STOPS = ReviewRule("DEL-05", Section.WEBHOOKS, Severity.BREAKING)
_LETS_PASS = ReviewRule("DEL-05", Section.WEBHOOKS, Severity.DANGEROUS)

_SERVICE = GroupKind("", "Service")


def _changes(facts: Facts) -> Iterator[Finding]:
    previous = {ref.identity: obj for ref, obj in facts.previous_state().named}
    kept = [one.ref for one in facts.plan.actions if one.action is Action.ORPHAN and one.ref.identity in previous]
    lost = _lost_services(facts, previous, kept)
    staying = [*facts.state().objects, *(previous[ref.identity] for ref in kept)] if lost else []
    for obj in staying:
        ref = ObjectRef.of(obj)
        for rule, variant, service, webhook in _calls(ref, obj):
            if service.identity in lost:
                key, why = [str(service), variant, webhook], lost[service.identity]
                yield rule.finding(variant, ref, key=key, webhook=webhook, service=service, why=why)


def _lost_services(
    facts: Facts, previous: dict[ObjectIdentity, JsonObject], kept: list[ObjectRef]
) -> dict[ObjectIdentity, str]:
    """The Services that nobody answers for afterwards, each with why: it goes, or it is kept and its pods go."""
    lost = {
        one.ref.identity: "deleted"
        for one in facts.plan.actions
        if one.action is Action.DELETE and one.ref.group_kind == _SERVICE
    }
    services = [previous[ref.identity] for ref in kept if ref.group_kind == _SERVICE]
    if services:
        staying = (*facts.state().objects, *(previous[ref.identity] for ref in kept))
        was, now = list(pod_specs(tuple(previous.values()))), list(pod_specs(staying))
        for service in services:
            if pods_of_service(service, was) and not pods_of_service(service, now):
                lost[ObjectRef.of(service).identity] = "without-pods"
    return lost


def _calls(ref: ObjectRef, obj: JsonObject) -> Iterator[tuple[ReviewRule, str, ObjectRef, str | None]]:
    """(rule, variant, Service, name of the webhook) of each call that the API server makes for this object."""
    for webhook in webhooks_of([obj]):
        if webhook.service is not None and webhook.fails_closed:
            yield _STOPS, "refuses-writes", webhook.service, webhook.name
        elif webhook.service is not None:
            variant = "changes-nothing" if webhook.is_mutating else "refuses-nothing"
            yield _LETS_PASS, variant, webhook.service, webhook.name
    if ref.group_kind == API_SERVICE and (service := service_of(obj)) is not None:
        yield _STOPS, "api-unusable", service, None
    if ref.group_kind == CRD and (crd := Crd(obj)).uses_webhook:
        called = mapping(mapping(crd.conversion.get("webhookClientConfig")).get("service"))
        if called:
            service = ObjectRef("", "v1", _SERVICE.kind, str(called.get("namespace") or ""), str(called.get("name")))
            yield _STOPS, "not-converted", service, None


CHECK = Check("callers", changes=_changes)
