"""What webhooks do to a running cluster: slow it, lock it out of itself, or leave what counted on them alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.review.base.facts import Check, Facts, Listing, ReviewRule, StateFacts, items, mapping, maps
from provisioner.review.checks.network.webhook_reach import (
    SYSTEM,
    has_resource,
    namespace_labels,
    sees_namespace,
    sees_object,
    sees_writes,
)
from provisioner.review.checks.network.webhooks import KINDS, Webhook, pod_labels, webhooks_of
from provisioner.schema.definition.crd import Crd
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_SLOW = ReviewRule("WH-07", Section.WEBHOOKS, Severity.NOTABLE)
_MANY = ReviewRule("WH-07", Section.WEBHOOKS, Severity.NOTABLE)
_SELF_LOCK = ReviewRule("WH-08", Section.WEBHOOKS, Severity.DANGEROUS)
_GONE = ReviewRule("WH-10", Section.WEBHOOKS, Severity.DANGEROUS)
_WRONG_PORT = ReviewRule("WH-03", Section.WEBHOOKS, Severity.BREAKING)
_NO_PODS = ReviewRule("WH-03", Section.WEBHOOKS, Severity.BREAKING)

_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_SERVICE = GroupKind("", "Service")
_LISTINGS = tuple(Listing(ADMISSION_GROUP, "", kind.kind) for kind in sorted(KINDS))
MAX_SECONDS = 10
MANY = 5
# What the control plane itself writes all the time: refused, nodes go NotReady and nothing is elected or signed in.
_VITAL_IN_NAMESPACES = {
    "": {"events", "endpoints", "serviceaccounts/token"},
    "coordination.k8s.io": {"leases"},
}
_VITAL_IN_CLUSTER = {
    "": {"nodes", "nodes/status"},
    "authentication.k8s.io": {"tokenreviews"},
    "authorization.k8s.io": {"subjectaccessreviews"},
    "certificates.k8s.io": {"certificatesigningrequests"},
}
_PLACES = (SYSTEM, "kube-node-lease")


def _standing(state: StateFacts) -> Iterator[Finding]:
    services = {(ref.namespace, ref.name): obj for ref, obj in state.named if ref.group_kind == _SERVICE}
    for webhook in webhooks_of(state.objects):
        seconds = webhook.body.get("timeoutSeconds", MAX_SECONDS)
        if isinstance(seconds, int) and seconds > MAX_SECONDS:
            where, key = (*webhook.path, "timeoutSeconds"), [webhook.name, seconds]
            yield _SLOW.finding("slow", webhook.ref, where=where, key=key, webhook=webhook.name, seconds=seconds)
        vital = _vital(webhook, state) if webhook.fails_closed else []
        if vital:
            yield _SELF_LOCK.finding(
                "locks-out",
                webhook.ref,
                where=webhook.path,
                key=[webhook.name, vital],
                webhook=webhook.name,
                resources=vital,
            )
        service = services.get((webhook.service.namespace, webhook.service.name)) if webhook.service else None
        if service is not None:
            yield from _of_service(webhook, service, state)


def _vital(webhook: Webhook, state: StateFacts) -> list[str]:
    """What it sees that the control plane needs. A namespaceSelector spares nothing that is in no namespace."""
    if not sees_object(webhook.body, {}):
        return []
    found = _seen(webhook, _VITAL_IN_CLUSTER, "Cluster")
    if any(sees_namespace(webhook.body, namespace_labels(state, place)) for place in _PLACES):
        found |= _seen(webhook, _VITAL_IN_NAMESPACES, "Namespaced")
    return sorted(found)


def _seen(webhook: Webhook, vital: Mapping[str, set[str]], scope: str) -> set[str]:
    """Which of these it sees the writes of; by `*` all that are no subresources, by `*/*` all."""
    found: set[str] = set()
    for rule in webhook.rules():
        groups, resources = items(rule.get("apiGroups")), set(map(str, items(rule.get("resources"))))
        if not sees_writes(rule) or str(rule.get("scope") or "*") not in {"*", scope}:
            continue
        for names in (vital[group] for group in vital if group in groups or "*" in groups):
            found |= {one for one in names if any(has_resource(wide, one) for wide in resources)}
    return found


def _of_service(webhook: Webhook, service: JsonObject, state: StateFacts) -> Iterator[Finding]:
    """A service of the bundle that does not listen where it is called, or that no pod of the bundle answers for."""
    spec, where = mapping(service.get("spec")), (*webhook.path, "clientConfig", "service")
    params = {"webhook": webhook.name, "service": ObjectRef.of(service)}
    port = mapping(webhook.client.get("service")).get("port") or 443
    offered = [one.get("port") for one in maps(spec.get("ports"))]
    if port not in offered:
        variant, key = "no-port" if offered else "no-ports", [webhook.name, port]
        yield _WRONG_PORT.finding(
            variant, webhook.ref, where=(*where, "port"), key=key, port=port, offered=offered, **params
        )
    selector = mapping(spec.get("selector"))
    selected = pod_labels(state, ObjectRef.of(service))
    if selector and not any(selector.items() <= labels.items() for labels in selected):
        params["selector"] = dict(selector)
        yield _NO_PODS.finding("no-pods", webhook.ref, where=where, key=webhook.name, **params)


def _changes(facts: Facts) -> Iterator[Finding]:
    yield from _of_gone(facts)
    yield from _of_many(facts)


def _of_gone(facts: Facts) -> Iterator[Finding]:
    """Webhooks that go while what they looked after stays."""
    kept = {Crd(one.body).group for one in facts.content.manifests if one.ref.group_kind == _CRD}
    before = {one.ref.identity: one.body for one in (facts.previous.manifests if facts.previous else ())}
    for planned in facts.plan.actions:
        if planned.action is Action.DELETE and planned.ref.group_kind in KINDS:
            body = planned.before or before.get(planned.ref.identity) or {}
            groups = {
                str(group)
                for one in webhooks_of([body])
                for rule in one.rules()
                for group in items(rule.get("apiGroups"))
            }
            left = sorted(groups & kept)
            yield _GONE.finding("deleted", planned.ref, key=left, groups=left)


def _of_many(facts: Facts) -> Iterator[Finding]:
    """Requests that wait for many webhooks one after the other."""
    others: list[Webhook] = []
    own = {one.ref.identity for one in facts.content.manifests}
    for listing in _LISTINGS:
        listed = facts.around.lists.get(listing)
        live = listed.objects if listed is not None else ()
        others += webhooks_of(one for one in live if ObjectRef.of(one).identity not in own)
    for webhook in webhooks_of(facts.state().objects):
        for resource in sorted(_named(webhook)):
            names = sorted(
                {one.name for one in others if one.is_mutating == webhook.is_mutating} & _seeing(others, resource)
            )
            if len(names) >= MANY:
                group, plural = resource
                what = f"{plural}.{group}" if group else plural
                yield _MANY.finding(
                    "many",
                    webhook.ref,
                    where=webhook.path,
                    key=[webhook.name, what],
                    webhook=webhook.name,
                    position=len(names) + 1,
                    resource=what,
                    others=names[:20],
                )


def _named(webhook: Webhook) -> set[tuple[str, str]]:
    return {
        (str(group), str(resource))
        for rule in webhook.rules()
        for group in items(rule.get("apiGroups"))
        for resource in items(rule.get("resources"))
    }


def _seeing(webhooks: list[Webhook], resource: tuple[str, str]) -> set[str]:
    return {one.name for one in webhooks if resource in _named(one)}


def _lists(facts: Facts) -> tuple[Listing, ...]:
    return _LISTINGS if any(one.ref.group_kind in KINDS for one in facts.content.manifests) else ()


CHECK = Check("webhook-effects", changes=_changes, standing=_standing, lists=_lists)
