"""Limit ranges that refuse pods or claims of the bundle, or that change what pods get that ask for nothing (QUO-02)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from provisioner.builtin import quantity
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, mapping, maps
from provisioner.review.checks.governance.demand import reserved
from provisioner.review.workloads.pod_specs import PodSpec, pod_specs
from provisioner.values import Action, Finding, GroupKind, JsonObject, PlannedAction, Section, Severity

_REFUSES = ReviewRule("QUO-02", Section.AVAILABILITY, Severity.BREAKING)
_CHANGED = ReviewRule("QUO-02", Section.AVAILABILITY, Severity.NOTABLE)
_RANGE = GroupKind("", "LimitRange")
_CLAIM = GroupKind("", "PersistentVolumeClaim")
_WRITES = frozenset({Action.CREATE, Action.UPDATE, Action.REPLACE, Action.ADOPT, Action.RERUN})
_PARTS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_Limits = Mapping[str, Any]
_Refused = tuple[tuple[str, Any], ...]


def _standing(state: StateFacts) -> Iterator[Finding]:
    for ref, obj in state.named:
        if ref.group_kind != _RANGE:
            continue
        for index, limits in enumerate(maps(mapping(obj.get("spec")).get("limits"))):
            refused = [dict(one) for one in dict.fromkeys(_refused(limits, state, ref.namespace))]
            if refused:
                where, of = ("spec", "limits", index), str(limits.get("type"))
                yield _REFUSES.finding("refuses", ref, where=where, key=[of, refused], type=of, refused=refused)


def _refused(limits: _Limits, state: StateFacts, namespace: str) -> Iterator[_Refused]:
    """What each object asks for beyond the limits, with the container that does."""
    if limits.get("type") == _CLAIM.kind:
        for ref, obj in state.named:
            if ref.group_kind == _CLAIM and ref.namespace == namespace:
                asked = dict(reserved(mapping(obj.get("spec")), "requests"))
                yield from _beyond((("of", ref),), limits, asked, asked)
    for pod in pod_specs(state.objects):
        if pod.ref.namespace == namespace:
            yield from _refused_of(pod, limits)


def _refused_of(pod: PodSpec, limits: _Limits) -> Iterator[_Refused]:
    if limits.get("type") == "Container":
        for one in pod.containers():
            of = (("of", pod.ref), ("container", one.name))
            yield from _beyond(of, limits, _most(one.body), dict(reserved(one.body, "requests")))
    elif limits.get("type") == "Pod":
        running = maps(pod.body.get("containers"))
        sums = (_sum(map(_most, running)), _sum(dict(reserved(one, "requests")) for one in running))
        yield from _beyond((("of", pod.ref),), limits, *sums)


def _most(container: Mapping[str, Any]) -> dict[str, Decimal]:
    """The limits of a container; a request stands for one that is not there, for it cannot be above it."""
    return dict(reserved(container, "requests")) | dict(reserved(container, "limits"))


def _sum(several: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    found: dict[str, Decimal] = defaultdict(Decimal)
    for amounts in several:
        for name, amount in amounts.items():
            found[name] += amount
    return dict(found)


def _beyond(
    of: _Refused, limits: _Limits, most: Mapping[str, Decimal], least: Mapping[str, Decimal]
) -> Iterator[_Refused]:
    for name, raw in mapping(limits.get("max")).items():
        allowed = quantity(raw)
        if allowed is not None and name in most and most[name] > allowed:
            yield (*of, ("resource", name), ("bound", "max"), ("amount", str(raw)))
    for name, raw in mapping(limits.get("min")).items():
        needed = quantity(raw)
        if needed is not None and name in least and least[name] < needed:
            yield (*of, ("resource", name), ("bound", "min"), ("amount", str(raw)))


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.ref.group_kind == _RANGE and planned.action in _WRITES and planned.after is not None:
            yield from _of_range(planned, planned.after)


def _of_range(planned: PlannedAction, after: JsonObject) -> Iterator[Finding]:
    ref, old, new = planned.ref, _values(planned.before or {}), _values(after)
    if old == new:
        return
    variant, evidence = "new" if planned.before is None else "changed", {"before": old, "after": new}
    differing = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    params = {"namespace": ref.namespace, "differing": differing, **evidence}
    yield _CHANGED.finding(variant, ref, where=("spec", "limits"), key=evidence, **params)


def _values(obj: JsonObject) -> dict[str, str]:
    """Each limit by its kind, part and resource: `Container max cpu`."""
    return {
        f"{limits.get('type')} {part} {name}": str(value)
        for limits in maps(mapping(obj.get("spec")).get("limits"))
        for part in _PARTS
        for name, value in mapping(limits.get(part)).items()
    }


CLAIMS = (Claim("QUO-02", frozenset({_RANGE}), ("spec.limits",)),)
CHECK = Check("limit ranges", claims=CLAIMS, changes=_changes, standing=_standing)
