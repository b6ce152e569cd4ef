"""What webhooks do to a running cluster: what nobody can write while one is down, whether that locks out itself or the
system, how long requests wait, and what one that goes leaves alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from provisioner.api_groups import ADMISSION_GROUP
from provisioner.json_values import items, mapping, maps, value_at
from provisioner.rbac import plural_of
from provisioner.review.base.facts import Check, Facts, Listing, ReviewRule, StateFacts, said
from provisioner.review.base.renames import renamed, renames
from provisioner.review.checks.network.webhooks import (
    KINDS,
    SYSTEM,
    Body,
    Webhook,
    find_namespace_labels,
    find_pod_labels,
    find_webhooks,
    has_resource,
    sees_namespace,
    sees_object,
    sees_writes,
)
from provisioner.review.rules import Phrase
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.schema.definition.crd import Crd
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_SLOW = ReviewRule("WH-07", Section.WEBHOOKS, Severity.NOTABLE)
_SELF_LOCK = ReviewRule("WH-08", Section.WEBHOOKS, Severity.DANGEROUS)
_GONE = ReviewRule("WH-10", Section.WEBHOOKS, Severity.DANGEROUS)
_NOT_ANSWERED = ReviewRule("WH-03", Section.WEBHOOKS, Severity.BREAKING)
_LOCKS_OUT = ReviewRule("WH-12", Section.WEBHOOKS, Severity.DANGEROUS)
_HOLDS_UP = ReviewRule("WH-12", Section.WEBHOOKS, Severity.NOTABLE)

_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_SERVICE = GroupKind("", "Service")
_LISTINGS = tuple(Listing(ADMISSION_GROUP, "", kind.kind) for kind in sorted(KINDS))
MAX_SECONDS = 10
MANY = 5
# What the control plane itself writes all the time: refused, nodes go NotReady and nothing is elected or signed in.
_VITAL_IN_NAMESPACES = {"": {"events", "endpoints", "serviceaccounts/token"}, "coordination.k8s.io": {"leases"}}
_VITAL_IN_CLUSTER = {
    "": {"nodes", "nodes/status"},
    "authentication.k8s.io": {"tokenreviews"},
    "authorization.k8s.io": {"subjectaccessreviews"},
    "certificates.k8s.io": {"certificatesigningrequests"},
}
_PLACES = (SYSTEM, "kube-node-lease")
_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_IN_NO_NAMESPACE = frozenset({"namespaces", "nodes", "persistentvolumes", "componentstatuses"})
# What the system itself has in its namespaces is of these groups.
_BUILT_IN_GROUPS = frozenset({"", "apps", "batch", "policy", "autoscaling", "*"})


@dataclass(frozen=True, slots=True)
class _HeldUp:
    """What one webhook holds up while it is down."""

    webhook: Webhook
    kinds: tuple[str, ...]
    operations: tuple[str, ...]
    sees_system: bool
    own: tuple[str, ...]

    @property
    def is_harmful(self) -> bool:
        return self.sees_system or bool(self.own)


def compare_held_up(facts: Facts) -> Iterator[Finding]:
    """Find what fails while webhooks are down, one finding per configuration and kind of harm; new where more does."""
    # A renamed configuration holds up what it did under its old name.
    before = _find_held_up(renamed(facts, renames(facts)) or facts.previous_state())
    for (ref, is_harmful), held in _find_held_up(facts.state()).items():
        old = before.get((ref, True), []) + (before.get((ref, False), []) if not is_harmful else [])
        yield replace(_say_held_up(held), is_new=not _find_parts(held) <= _find_parts(old))


def _find_held_up(state: StateFacts) -> dict[tuple[ObjectRef, bool], list[_HeldUp]]:
    """Return what webhooks that fail closed hold up, by configuration and whether that harms itself or the system."""
    found: dict[tuple[ObjectRef, bool], list[_HeldUp]] = {}
    for webhook in find_webhooks(state.objects):
        rules = webhook.rules()
        stated = {str(operation) for rule in rules for operation in items(rule.get("operations"))}
        operations = tuple(name for name in _OPERATIONS if name in stated or "*" in stated)
        kinds = [
            _name_kind(str(resource), str(group))
            for rule in rules
            for group in items(rule.get("apiGroups"))
            for resource in items(rule.get("resources"))
        ]
        if not webhook.fails_closed or not kinds or not operations:
            continue
        is_of_system = any(map(_is_of_system, rules)) and sees_object(webhook.body, {})
        sees_system = is_of_system and _sees_namespace_of(webhook, state, SYSTEM)
        own = tuple(_find_own_workloads(webhook, state))
        held = _HeldUp(webhook, tuple(dict.fromkeys(kinds)), operations, sees_system, own)
        found.setdefault((webhook.ref, held.is_harmful), []).append(held)
    return found


def _name_kind(resource: str, group: str) -> str:
    """Return a resource as `kubectl` names it; `*` for anything, `*.GROUP` for anything of a group."""
    if resource in {"*", "*/*"}:
        return "*" if group == "*" else f"*.{group}"
    return resource if group in {"", "*"} else f"{resource}.{group}"


def _is_of_system(rule: Body) -> bool:
    """Whether it is about built-in objects that the system has in its namespaces."""
    groups = set(map(str, items(rule.get("apiGroups"))))
    kinds = {str(resource).partition("/")[0] for resource in items(rule.get("resources"))}
    is_namespaced = str(rule.get("scope") or "*") != "Cluster" and bool(kinds - _IN_NO_NAMESPACE)
    return is_namespaced and bool(groups & _BUILT_IN_GROUPS)


def _sees_namespace_of(webhook: Webhook, state: StateFacts, namespace: str) -> bool:
    return sees_namespace(webhook.body, find_namespace_labels(state, namespace))


def _find_own_workloads(webhook: Webhook, state: StateFacts) -> Iterator[str]:
    """Yield the workloads behind its Service of which it sees changes; that it sees their pods is WH-01."""
    service = webhook.service
    body: JsonObject = next((obj for ref, obj in state.named if service is not None and ref == service), {})
    selector = mapping(value_at(body, "spec", "selector"))
    if service is None or not selector or not _sees_namespace_of(webhook, state, service.namespace):
        return
    bodies = {ref.identity: obj for ref, obj in state.named}
    for pod in pod_specs(state.objects):
        if pod.ref.namespace != service.namespace or not selector.items() <= pod.labels.items():
            continue
        labels = mapping(mapping(mapping(bodies.get(pod.ref.identity)).get("metadata")).get("labels"))
        plural = plural_of(pod.ref.kind)
        sees_changes = any(_sees_updates(rule, pod.ref.group, plural) for rule in webhook.rules())
        if sees_changes and sees_object(webhook.body, labels):
            yield said(pod.ref)


def _sees_updates(rule: Body, group: str, plural: str) -> bool:
    return (
        not {"*", "UPDATE"}.isdisjoint(map(str, items(rule.get("operations"))))
        and not {"*", group}.isdisjoint(map(str, items(rule.get("apiGroups"))))
        and str(rule.get("scope") or "*") != "Cluster"
        and any(has_resource(str(resource), plural) for resource in items(rule.get("resources")))
    )


def _find_parts(held: list[_HeldUp]) -> set[tuple[object, ...]]:
    """Return what is held up in parts that can be compared."""
    parts: set[tuple[object, ...]] = set()
    for each in held:
        parts |= {*product(each.kinds, each.operations), (each.sees_system,), *((name,) for name in each.own)}
    return parts


def _say_held_up(held: list[_HeldUp]) -> Finding:
    first, bodies = held[0].webhook, [each.webhook.body for each in held]
    kinds, own = _unite(each.kinds for each in held), _unite(each.own for each in held)
    stated = _unite(each.operations for each in held)
    operations = [name for name in _OPERATIONS if name in stated]
    sees_system = any(each.sees_system for each in held)
    locked = ("both" if own else "system") if sees_system else "own" if own else None
    # Conditions are not evaluated here.
    has_conditions = any(body.get("matchConditions") for body in bodies)
    return (_LOCKS_OUT if held[0].is_harmful else _HOLDS_UP).finding(
        "locks-out" if locked else "holds-up",
        first.ref,
        where=first.path if len(held) == 1 else first.path[:1],
        key=[kinds, operations, sees_system, own],
        webhooks=[each.webhook.name for each in held],
        who="one" if len(held) == 1 else "several",
        kinds=list(map(_phrase_kind, kinds)),
        operations=operations,
        limits=[key for key in ("namespaceSelector", "objectSelector") if all(body.get(key) for body in bodies)],
        seesSystem=sees_system,
        own=own,
        locked=locked,
        unless="conditions" if has_conditions else None,
    )


def _unite(parts: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part))


def _phrase_kind(kind: str) -> str:
    if kind == "*":
        return Phrase.of(_HOLDS_UP.id, "kinds.anything")
    return Phrase.of(_HOLDS_UP.id, "kinds.of-group", group=kind[2:] or None) if kind.startswith("*.") else kind


def judge_effects(state: StateFacts) -> Iterator[Finding]:
    """Find webhooks that are slow, lock out the control plane, or call a Service of the bundle that does not answer."""
    services = {(ref.namespace, ref.name): obj for ref, obj in state.named if ref.group_kind == _SERVICE}
    for webhook in find_webhooks(state.objects):
        ref, path, name = webhook.ref, webhook.path, webhook.name
        seconds = webhook.body.get("timeoutSeconds", MAX_SECONDS)
        if isinstance(seconds, int) and seconds > MAX_SECONDS:
            where, key = (*path, "timeoutSeconds"), [name, seconds]
            yield _SLOW.finding("slow", ref, where=where, key=key, webhook=name, seconds=seconds)
        if vital := _find_vital(webhook, state) if webhook.fails_closed else []:
            yield _SELF_LOCK.finding("locks-out", ref, where=path, key=[name, vital], webhook=name, resources=vital)
        service = services.get((webhook.service.namespace, webhook.service.name)) if webhook.service else None
        if service is None:
            continue
        spec, where = mapping(service.get("spec")), (*path, "clientConfig", "service")
        called = ObjectRef.of(service)
        port = value_at(webhook.client, "service", "port") or 443
        offered = [offer.get("port") for offer in maps(spec.get("ports"))]
        if port not in offered:
            variant, key = "no-port" if offered else "no-ports", [name, port]
            params = {"port": port, "offered": offered, "webhook": name, "service": called}
            yield _NOT_ANSWERED.finding(variant, ref, where=(*where, "port"), key=key, **params)
        selector = mapping(spec.get("selector"))
        if selector and not any(selector.items() <= labels.items() for labels in find_pod_labels(state, called)):
            params = {"webhook": name, "service": called, "selector": dict(selector)}
            yield _NOT_ANSWERED.finding("no-pods", ref, where=where, key=name, **params)


def _find_vital(webhook: Webhook, state: StateFacts) -> list[str]:
    """Return what it sees that the control plane needs: by `*` all that are no subresources, by `*/*` all.

    A namespaceSelector spares nothing that is in no namespace.
    """
    if not sees_object(webhook.body, {}):
        return []
    needed = [("Cluster", _VITAL_IN_CLUSTER)]
    if any(_sees_namespace_of(webhook, state, place) for place in _PLACES):
        needed.append(("Namespaced", _VITAL_IN_NAMESPACES))
    found: set[str] = set()
    for rule, (scope, vital) in product(webhook.rules(), needed):
        groups, resources = items(rule.get("apiGroups")), set(map(str, items(rule.get("resources"))))
        if sees_writes(rule) and str(rule.get("scope") or "*") in {"*", scope}:
            names = {name for group in vital if group in groups or "*" in groups for name in vital[group]}
            found |= {name for name in names if any(has_resource(wide, name) for wide in resources)}
    return sorted(found)


def compare_effects(facts: Facts) -> Iterator[Finding]:
    """Find webhooks that go while what they looked after stays, and requests that wait for many one after the other."""
    manifests = facts.content.manifests
    kept = {Crd(manifest.body).group for manifest in manifests if manifest.ref.group_kind == _CRD}
    before = {manifest.ref.identity: manifest.body for manifest in (facts.previous.manifests if facts.previous else ())}
    for planned in facts.plan.actions:
        if planned.action is Action.DELETE and planned.ref.group_kind in KINDS:
            body = planned.before or before.get(planned.ref.identity) or {}
            rules = [rule for webhook in find_webhooks([body]) for rule in webhook.rules()]
            left = sorted({str(group) for rule in rules for group in items(rule.get("apiGroups"))} & kept)
            yield _GONE.finding("deleted", planned.ref, key=left, groups=left)
    others: list[Webhook] = []
    own = {manifest.ref.identity for manifest in manifests}
    for listing in _LISTINGS:
        listed = facts.around.lists.get(listing)
        live = listed.objects if listed is not None else ()
        others += find_webhooks(obj for obj in live if ObjectRef.of(obj).identity not in own)
    resources = [(other, _find_resources(other)) for other in others]
    for webhook in find_webhooks(facts.state().objects):
        for group, plural in sorted(_find_resources(webhook)):
            asked = {other.name for other, asked in resources if (group, plural) in asked}
            names = sorted({other.name for other in others if other.is_mutating == webhook.is_mutating} & asked)
            if len(names) >= MANY:
                what = f"{plural}.{group}" if group else plural
                yield _SLOW.finding(
                    "many",
                    webhook.ref,
                    where=webhook.path,
                    key=[webhook.name, what],
                    webhook=webhook.name,
                    position=len(names) + 1,
                    resource=what,
                    others=names[:20],
                )


def _find_resources(webhook: Webhook) -> set[tuple[str, str]]:
    """Return (group, resource) of all that its rules name."""
    found: set[tuple[str, str]] = set()
    for rule in webhook.rules():
        groups, resources = map(str, items(rule.get("apiGroups"))), map(str, items(rule.get("resources")))
        found.update(product(groups, resources))
    return found


def list_webhooks(facts: Facts) -> tuple[Listing, ...]:
    has_webhooks = any(manifest.ref.group_kind in KINDS for manifest in facts.content.manifests)
    return _LISTINGS if has_webhooks else ()


FAIL_CLOSED_CHECK = Check("fail-closed webhooks", changes=compare_held_up)
EFFECTS_CHECK = Check("webhook-effects", changes=compare_effects, standing=judge_effects, lists=list_webhooks)
