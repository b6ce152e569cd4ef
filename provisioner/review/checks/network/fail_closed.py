"""What nobody can write while a webhook that fails closed is down, and whether that locks out itself or the system."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from provisioner.rbac import plural_of
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping, said
from provisioner.review.base.renames import renamed, renames
from provisioner.review.checks.network.webhook_reach import (
    SYSTEM,
    has_resource,
    namespace_labels,
    sees_namespace,
    sees_object,
)
from provisioner.review.checks.network.webhooks import Webhook, webhooks_of
from provisioner.review.rules import Phrase
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.values import Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_LOCKS_OUT = ReviewRule("WH-12", Section.WEBHOOKS, Severity.DANGEROUS)
_HOLDS_UP = ReviewRule("WH-12", Section.WEBHOOKS, Severity.NOTABLE)

_SERVICE = GroupKind("", "Service")
_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")
_IN_NO_NAMESPACE = frozenset({"namespaces", "nodes", "persistentvolumes", "componentstatuses"})
# What the system itself has in its namespaces is of these groups.
_BUILT_IN_GROUPS = frozenset({"", "apps", "batch", "policy", "autoscaling", "*"})


@dataclass(frozen=True, slots=True)
class _Held:
    """What one webhook holds up while it is down."""

    webhook: Webhook
    kinds: tuple[str, ...]
    operations: tuple[str, ...]
    sees_system: bool
    own: tuple[str, ...]

    @property
    def rule(self) -> ReviewRule:
        return _LOCKS_OUT if self.sees_system or self.own else _HOLDS_UP


def _changes(facts: Facts) -> Iterator[Finding]:
    """One finding per configuration and kind of harm, however many webhooks it has; new where more is held up."""
    # A renamed configuration holds up what it did under its old name.
    before = _by_configuration(renamed(facts, renames(facts)) or facts.previous_state())
    for place, held in _by_configuration(facts.state()).items():
        ref, is_harmful = place
        old = before.get((ref, True), []) + (before.get((ref, False), []) if not is_harmful else [])
        is_new = not _reach(held) <= _reach(old)
        yield replace(_of(held), is_new=is_new)


def _by_configuration(state: StateFacts) -> dict[tuple[ObjectRef, bool], list[_Held]]:
    found: dict[tuple[ObjectRef, bool], list[_Held]] = {}
    for webhook in webhooks_of(state.objects):
        if webhook.fails_closed and (held := _held(webhook, state)) is not None:
            found.setdefault((webhook.ref, held.rule is _LOCKS_OUT), []).append(held)
    return found


def _reach(held: list[_Held]) -> set[tuple[object, ...]]:
    """What is held up, in parts that can be compared."""
    writes = {(kind, operation) for one in held for kind, operation in product(one.kinds, one.operations)}
    return writes | {(one.sees_system,) for one in held} | {(name,) for one in held for name in one.own}


def _held(webhook: Webhook, state: StateFacts) -> _Held | None:
    kinds = _kinds(webhook)
    operations = _operations(webhook)
    if not kinds or not operations:
        return None
    is_of_system = any(map(_is_of_system, webhook.rules()))
    sees_system = is_of_system and sees_object(webhook.body, {}) and _sees_place(webhook, state, SYSTEM)
    return _Held(
        webhook,
        tuple(kinds),
        tuple(operations),
        sees_system,
        tuple(_own(webhook, state)),
    )


def _of(held: list[_Held]) -> Finding:
    first = held[0].webhook
    kinds = _united(one.kinds for one in held)
    operations = [one for one in _OPERATIONS if any(one in it.operations for it in held)]
    sees_system, own = any(one.sees_system for one in held), _united(one.own for one in held)
    bodies = [one.webhook.body for one in held]
    locked = ("both" if own else "system") if sees_system else "own" if own else None
    limits = [key for key in ("namespaceSelector", "objectSelector") if all(body.get(key) for body in bodies)]
    # Conditions are not evaluated here.
    has_conditions = any(body.get("matchConditions") for body in bodies)
    return held[0].rule.finding(
        "locks-out" if locked else "holds-up",
        first.ref,
        where=first.path if len(held) == 1 else first.path[:1],
        key=[kinds, operations, sees_system, own],
        webhooks=[one.webhook.name for one in held],
        who="one" if len(held) == 1 else "several",
        kinds=list(map(_shown, kinds)),
        operations=operations,
        limits=limits,
        seesSystem=sees_system,
        own=own,
        locked=locked,
        unless="conditions" if has_conditions else None,
    )


def _united(parts: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(one for part in parts for one in part))


def _kinds(webhook: Webhook) -> list[str]:
    """The resources of its rules, as `kubectl` names them; `*` for anything, `*.GROUP` for anything of a group."""
    found = [
        _kind(str(resource), str(group))
        for rule in webhook.rules()
        for group in items(rule.get("apiGroups"))
        for resource in items(rule.get("resources"))
    ]
    return list(dict.fromkeys(found))


def _kind(resource: str, group: str) -> str:
    if resource in {"*", "*/*"}:
        return "*" if group == "*" else f"*.{group}"
    return resource if group in {"", "*"} else f"{resource}.{group}"


def _shown(kind: str) -> str:
    if kind == "*":
        return Phrase.of(_HOLDS_UP.id, "kinds.anything")
    return Phrase.of(_HOLDS_UP.id, "kinds.of-group", group=kind[2:] or None) if kind.startswith("*.") else kind


def _operations(webhook: Webhook) -> list[str]:
    named = {str(one) for rule in webhook.rules() for one in items(rule.get("operations"))}
    return [one for one in _OPERATIONS if one in named or "*" in named]


def _is_of_system(rule: Mapping[str, Any]) -> bool:
    """Whether it is about built-in objects that the system has in its namespaces."""
    groups = set(map(str, items(rule.get("apiGroups"))))
    kinds = {str(one).partition("/")[0] for one in items(rule.get("resources"))}
    is_namespaced = str(rule.get("scope") or "*") != "Cluster" and bool(kinds - _IN_NO_NAMESPACE)
    return is_namespaced and bool(groups & _BUILT_IN_GROUPS)


def _sees_place(webhook: Webhook, state: StateFacts, namespace: str) -> bool:
    return sees_namespace(webhook.body, namespace_labels(state, namespace))


def _own(webhook: Webhook, state: StateFacts) -> Iterator[str]:
    """The workloads behind its Service of which it sees changes; that it sees their pods is WH-01."""
    service = webhook.service
    body: JsonObject = next((obj for ref, obj in state.named if service is not None and ref == service), {})
    selector = mapping(mapping(body.get("spec")).get("selector"))
    if service is None or not selector or not _sees_place(webhook, state, service.namespace):
        return
    bodies = {ref.identity: obj for ref, obj in state.named}
    for pod in pod_specs(state.objects):
        if pod.ref.namespace != service.namespace or not selector.items() <= pod.labels.items():
            continue
        labels = mapping(mapping(mapping(bodies.get(pod.ref.identity)).get("metadata")).get("labels"))
        if _sees_changes(webhook, pod.ref) and sees_object(webhook.body, labels):
            yield said(pod.ref)


def _sees_changes(webhook: Webhook, ref: ObjectRef) -> bool:
    plural = plural_of(ref.kind)
    return any(_is_of(rule, ref.group, plural) for rule in webhook.rules())


def _is_of(rule: Mapping[str, Any], group: str, plural: str) -> bool:
    named = set(map(str, items(rule.get("operations"))))
    groups = set(map(str, items(rule.get("apiGroups"))))
    return (
        bool(named & {"*", "UPDATE"})
        and bool(groups & {"*", group})
        and str(rule.get("scope") or "*") != "Cluster"
        and any(has_resource(str(one), plural) for one in items(rule.get("resources")))
    )


CHECK = Check("fail-closed webhooks", changes=_changes)
