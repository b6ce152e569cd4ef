"""Quotas of the cluster that leave no room for what the change adds (QUO-03): pods and objects would be refused.

What counts is the difference: what a quota already counts for the objects as they are is in use, and stays or goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from provisioner.review.base.facts import Check, Facts, Listing, ReviewRule, StateFacts, mapping, maps, said
from provisioner.review.checks.governance.amounts import Amounts, amounts, texts
from provisioner.review.checks.governance.demand import demanded, reserved
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_FULL = ReviewRule("QUO-03", Section.AVAILABILITY, Severity.BREAKING)
_UNKNOWN = ReviewRule("QUO-03", Section.AVAILABILITY, Severity.UNKNOWN)
_STAYS = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.NONE, Action.RERUN})
_WRITES = _STAYS - {Action.NONE}
_NAMESPACE = GroupKind("", "Namespace")
_COMPUTE = ("cpu", "memory")


def _quotas(namespace: str) -> Listing:
    return Listing("", "v1", "ResourceQuota", namespace)


def _ranges(namespace: str) -> Listing:
    return Listing("", "v1", "LimitRange", namespace)


def _changes(facts: Facts) -> Iterator[Finding]:
    own = {one.ref.identity for one in facts.plan.actions}
    for namespace, added in _added(facts).items():
        listed = facts.around.lists.get(_quotas(namespace))
        if listed is None:
            continue
        ref = ObjectRef("", "v1", "Namespace", "", namespace)
        if not listed.is_whole:
            variant = "unknown" if listed.problem else "too-many"
            yield _UNKNOWN.finding(variant, ref, key=namespace, namespace=namespace, problem=listed.problem)
            continue
        for quota in listed.objects:
            if ObjectRef.of(quota).identity not in own and not _has_scopes(quota):
                yield from _of_quota(ref, quota, added)
                yield from _of_silent(ref, quota, facts)


def _of_quota(ref: ObjectRef, quota: JsonObject, added: Amounts) -> Iterator[Finding]:
    """What is used and what is added together, against what there may be."""
    hard, used = _hard(quota), amounts(mapping(quota.get("status")).get("used"))
    needed = {name: used[name] + added[name] for name in hard if name in used and added.get(name, 0) > 0}
    exceeded = sorted(name for name, amount in needed.items() if amount > hard[name])
    if exceeded:
        of = ObjectRef.of(quota)
        yield _FULL.finding(
            "no-room",
            ref,
            key=[said(of), exceeded],
            quota=of,
            exceeded=exceeded,
            hard=texts(hard),
            used=texts(used),
            added=texts(added),
        )


def _of_silent(ref: ObjectRef, quota: JsonObject, facts: Facts) -> Iterator[Finding]:
    """Pods that do not say what a quota counts, and get it from no limit range: none of them is let in."""
    hard = _hard(quota)
    counted = [(part, name) for part in ("requests", "limits") for name in _COMPUTE if f"{part}.{name}" in hard]
    counted += [("requests", name) for name in _COMPUTE if name in hard and ("requests", name) not in counted]
    given = _defaults(facts, ref.name) if counted else None
    if given is None:
        return
    written = {one.ref.identity for one in facts.plan.actions if one.action in _WRITES}
    lacking: dict[str, list[str]] = {}
    for pod in pod_specs(facts.state().objects):
        if pod.ref.identity in written and pod.ref.namespace == ref.name:
            missing = [f"{part}.{name}" for part, name in counted if _is_missing(pod, part, name, given)]
            lacking |= {said(pod.ref): missing} if missing else {}
    if lacking:
        of, stated = ObjectRef.of(quota), sorted({name for missing in lacking.values() for name in missing})
        lacking = dict(sorted(lacking.items()))
        yield _FULL.finding("not-stated", ref, key=[said(of), lacking], quota=of, stated=stated, missing=lacking)


def _is_missing(pod: PodSpec, part: str, name: str, given: frozenset[tuple[str, str]]) -> bool:
    """Whether a container neither states it nor is given it; a limit stands for a request that is not there."""
    if (part, name) in given or (part == "requests" and ("limits", name) in given):
        return False
    containers = [*maps(pod.body.get("containers")), *maps(pod.body.get("initContainers"))]
    return any(name not in dict(reserved(one, part)) for one in containers)


def _defaults(facts: Facts, namespace: str) -> frozenset[tuple[str, str]] | None:
    """What limit ranges of the cluster and of the bundle give containers that say nothing; None where nobody knows."""
    listed = facts.around.lists.get(_ranges(namespace))
    if listed is None or not listed.is_whole:
        return None
    own = [obj for ref, obj in facts.state().named if ref.kind == "LimitRange" and ref.namespace == namespace]
    found: set[tuple[str, str]] = set()
    for limits in (one for obj in (*listed.objects, *own) for one in maps(mapping(obj.get("spec")).get("limits"))):
        if limits.get("type") == "Container":
            # A maximum is a limit for who has none.
            found |= {("limits", str(name)) for key in ("default", "max") for name in mapping(limits.get(key))}
            found |= {("requests", str(name)) for key in ("defaultRequest", "min") for name in mapping(limits.get(key))}
    return frozenset(found)


def _added(facts: Facts) -> Mapping[str, dict[str, Decimal]]:
    """What each namespace that is there already has to have room for besides, in the words of quotas.

    Of what exists and is somebody else's nothing is known here that everybody may know: it is left out on both sides.
    """
    return facts.once("what quotas have to have room for", _find_added)


def _find_added(facts: Facts) -> dict[str, dict[str, Decimal]]:
    if facts.is_offline:
        return {}
    actions = facts.plan.actions
    created = {one.ref.name for one in actions if one.ref.group_kind == _NAMESPACE and one.action is Action.CREATE}
    after = _side(facts, (one.after for one in actions if one.action in _STAYS))
    before = _side(facts, (one.before for one in actions if one.action is not Action.ADOPT))
    found: dict[str, dict[str, Decimal]] = {}
    for namespace in sorted({ref.namespace for ref, _ in after.named if ref.namespace} - created):
        new, old = demanded(after, namespace), demanded(before, namespace)
        more = {name: amount - old.get(name, Decimal()) for name, amount in new.items()}
        found |= {namespace: more} if any(amount > 0 for amount in more.values()) else {}
    return found


def _side(facts: Facts, objects: Iterable[JsonObject | None]) -> StateFacts:
    return replace(facts.state(), objects=tuple(one for one in objects if one is not None))


def _hard(quota: JsonObject) -> Amounts:
    return amounts(mapping(quota.get("spec")).get("hard"))


def _has_scopes(quota: JsonObject) -> bool:
    """With scopes a quota counts a part of the pods: which is not told."""
    spec: Mapping[str, Any] = mapping(quota.get("spec"))
    return bool(spec.get("scopes") or spec.get("scopeSelector"))


def _lists(facts: Facts) -> Iterator[Listing]:
    for namespace in _added(facts):
        yield _quotas(namespace)
        yield _ranges(namespace)


CHECK = Check("full quotas", changes=_changes, lists=_lists)
