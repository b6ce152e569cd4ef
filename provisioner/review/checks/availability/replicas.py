"""Workloads that stop, and rollouts during which none of their pods answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, mapping
from provisioner.review.workloads.workload_changes import (
    DAEMON_SET,
    DEPLOYMENT,
    QUARTER,
    SCALED,
    SIZER,
    STATEFUL_SET,
    autoscalers_of,
    replicas_of,
    rolling,
    target_of,
)
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_STOPS = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.BREAKING)
_PAUSES = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.DANGEROUS)
_LEFT_OUT = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.DANGEROUS)
_FEWER = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.NOTABLE)
_NEW_GAP = ReviewRule("AVL-05", Section.AVAILABILITY, Severity.DANGEROUS)
_GAP = ReviewRule("AVL-05", Section.AVAILABILITY, Severity.NOTABLE)
_RECREATE = "Recreate"

_SUSPENDED = frozenset({GroupKind("batch", "CronJob"), GroupKind("batch", "Job")})


def _changes(facts: Facts) -> Iterator[Finding]:
    bodies = {one.ref.identity: one.body for one in facts.content.manifests}
    for planned in facts.plan.actions:
        before, after = planned.before, planned.after
        if planned.action is not Action.UPDATE or before is None or after is None:
            continue
        ref = planned.ref
        if ref.group_kind in SCALED:
            is_left_out = _spec(bodies.get(ref.identity, after)).get("replicas") is None
            if is_left_out and replicas_of(before) > replicas_of(after) == 1:
                yield _of_default(ref, replicas_of(before), facts)
            else:
                yield from _of_replicas(ref, replicas_of(before), replicas_of(after))
        elif ref.group_kind in _SUSPENDED:
            yield from _of_suspension(ref, before, after)
        if ref.group_kind == DEPLOYMENT and _spec(after).get("paused") is True and not _spec(before).get("paused"):
            yield _FEWER.finding("paused", ref, where=("spec", "paused"))
        elif ref.group_kind in (STATEFUL_SET, DAEMON_SET):
            yield from _of_holding_back(ref, before, after)
        yield from _of_rollout(ref, before, after)


def _of_holding_back(ref: ObjectRef, before: JsonObject, after: JsonObject) -> Iterator[Finding]:
    """A strategy by which changes of the pods reach none of them, or only those of the highest numbers."""
    old, new = (_held_back(ref, one) for one in (before, after))
    if new != old:
        evidence = {"before": old, "after": new}
        variant = f"held-back-{new['how']}" if new else "no-longer-held-back"
        yield _FEWER.finding(variant, ref, where=("spec", "updateStrategy"), key=[old, new], **evidence, **new)


def _held_back(ref: ObjectRef, obj: JsonObject) -> dict[str, Any]:
    """How changes are held back, with the pods and the partition where that says it; nothing where all get them."""
    strategy = mapping(_spec(obj).get("updateStrategy"))
    if strategy.get("type") == "OnDelete":
        return {"how": "on-delete"}
    partition, count = mapping(strategy.get("rollingUpdate")).get("partition"), replicas_of(obj)
    if ref.group_kind != STATEFUL_SET or not isinstance(partition, int) or not partition:
        return {}
    how = "for-all" if partition >= count else "for-some"
    return {"how": how, "changed": max(count - partition, 0), "pods": count, "partition": partition}


def _of_replicas(ref: ObjectRef, before: int, after: int) -> Iterator[Finding]:
    evidence, where = {"before": before, "after": after}, ("spec", "replicas")
    if before > after == 0:
        yield _STOPS.finding("stops", ref, where=where, key=evidence, **evidence)
    elif before > after == 1:
        yield _FEWER.finding("one-left", ref, where=where, key=evidence, **evidence)
    elif before > after:
        yield _FEWER.finding("fewer", ref, where=where, key=evidence, **evidence)
    elif after > before == 0:
        yield _FEWER.finding("starts", ref, where=where, key=evidence, **evidence)


def _of_default(ref: ObjectRef, before: int, facts: Facts) -> Finding:
    """What nobody writes any more becomes the server's default, also where an autoscaler takes over."""
    scaler = next((ObjectRef.of(one) for one in autoscalers_of(ref, facts.state().objects)), None)
    evidence, variant = {"before": before, "after": 1}, "left-out-and-scaled" if scaler else "left-out"
    return _LEFT_OUT.finding(variant, ref, where=("spec", "replicas"), key=evidence, scaler=scaler, **evidence)


def _standing(state: StateFacts) -> Iterator[Finding]:
    """Replicas that a workload writes down and an autoscaler sets."""
    scalers = [(ref, target) for ref, obj in state.named if (target := target_of(obj)) and ref.group_kind != SIZER]
    counts = {ref.identity: (ref, _spec(obj).get("replicas")) for ref, obj in state.named if ref.group_kind in SCALED}
    for scaler, target in scalers:
        ref, count = counts.get(target.identity, (target, None))
        if count is not None:
            told, where = {"scaler": scaler, "count": count}, ("spec", "replicas")
            yield _FEWER.finding("set-by-two", ref, where=where, key="two", **told)


def _of_suspension(ref: ObjectRef, before: JsonObject, after: JsonObject) -> Iterator[Finding]:
    if _spec(after).get("suspend") is True and _spec(before).get("suspend") is not True:
        yield _PAUSES.finding("suspended", ref, where=("spec", "suspend"))


def _of_rollout(ref: ObjectRef, before: JsonObject, after: JsonObject) -> Iterator[Finding]:
    """A rollout that leaves no pod: said where it becomes so, and where the pods of this change are rolled out so.

    Where it was so that old pods end before new ones start, programs may rely on that.
    """
    why = _gap_of(ref, after, replicas_of(after))
    where = ("spec", "strategy" if ref.group_kind == DEPLOYMENT else "updateStrategy")
    old, new = (mapping(_spec(one).get("strategy")).get("type") for one in (before, after))
    if ref.group_kind == DEPLOYMENT and old == _RECREATE != new:
        yield _GAP.finding("together", ref, where=(*where, "type"))
    if not why:
        return
    if not _gap_of(ref, before, replicas_of(after)):
        yield _NEW_GAP.finding("new", ref, where=where, key=why, **why)
    elif _spec(before).get("template") != _spec(after).get("template"):
        yield _GAP.finding("in-this-rollout", ref, where=where, key=why, **why)


def _gap_of(ref: ObjectRef, obj: JsonObject, count: int) -> dict[str, Any]:
    """Why all of `count` pods may be away during a rollout; nothing where some stay."""
    spec = _spec(obj)
    match ref.group_kind:
        case kind if kind == DEPLOYMENT and count:
            return _gap_of_deployment(mapping(spec.get("strategy")), count)
        case kind if kind == STATEFUL_SET and count == 1:
            strategy = mapping(spec.get("updateStrategy"))
            partition = mapping(strategy.get("rollingUpdate")).get("partition") or 0
            is_rolled = strategy.get("type") != "OnDelete" and isinstance(partition, int) and partition < count
            return {"why": "one-replica"} if is_rolled else {}
        case kind if kind == DAEMON_SET:
            stated = mapping(mapping(spec.get("updateStrategy")).get("rollingUpdate"))
            return {"why": "max-unavailable", "max": "100%"} if stated.get("maxUnavailable") == "100%" else {}
    return {}


def _gap_of_deployment(strategy: Mapping[str, Any], count: int) -> dict[str, Any]:
    if strategy.get("type") == _RECREATE:
        return {"why": "recreate"}
    spread = rolling(strategy, count)
    stated = mapping(strategy.get("rollingUpdate")).get("maxUnavailable", QUARTER)
    gap = {"why": "max-unavailable", "max": stated, "pods": count}
    return gap if spread and spread.unavailable >= count else {}


def _spec(obj: JsonObject) -> Mapping[str, Any]:
    return mapping(obj.get("spec"))


_CLAIMS = (
    Claim("AVL-02", SCALED, ("spec.replicas",), harmless="More pods of what runs already"),
    Claim(
        "AVL-02",
        frozenset({STATEFUL_SET, DAEMON_SET}),
        ("spec.updateStrategy.type", "spec.updateStrategy.rollingUpdate.partition"),
    ),
    Claim("AVL-05", frozenset({DEPLOYMENT}), ("spec.strategy.type",)),
    Claim(
        "AVL-05",
        frozenset({DEPLOYMENT}),
        ("spec.strategy.rollingUpdate.maxUnavailable",),
        harmless="As long as some pods stay during a rollout, it decides how fast the rollout goes",
    ),
)

CHECK = Check("replicas", claims=_CLAIMS, changes=_changes, standing=_standing)
