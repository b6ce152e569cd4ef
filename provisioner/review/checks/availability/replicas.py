"""Workloads that stop, and rollouts during which none of their pods answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, mapping, said
from provisioner.review.checks.availability.scale import (
    DAEMON_SET,
    DEPLOYMENT,
    SCALED,
    STATEFUL_SET,
    part_of,
    replicas_of,
)
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_STOPS = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.BREAKING)
_PAUSES = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.DANGEROUS)
_FEWER = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.NOTABLE)
_NEW_GAP = ReviewRule("AVL-05", Section.AVAILABILITY, Severity.DANGEROUS)
_GAP = ReviewRule("AVL-05", Section.AVAILABILITY, Severity.NOTABLE)

_SUSPENDED = frozenset({GroupKind("batch", "CronJob"), GroupKind("batch", "Job")})
_QUARTER = "25%"


def _changes(facts: Facts) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        before, after = planned.before, planned.after
        if planned.action is not Action.UPDATE or before is None or after is None:
            continue
        ref = planned.ref
        if ref.group_kind in SCALED:
            yield from _of_replicas(ref, replicas_of(before), replicas_of(after))
        elif ref.group_kind in _SUSPENDED:
            yield from _of_suspension(ref, before, after)
        if ref.group_kind == DEPLOYMENT and _spec(after).get("paused") is True and not _spec(before).get("paused"):
            message = f"{said(ref)} is paused: changes of its pods do not take effect until somebody resumes it"
            yield _FEWER.at(ref, message, path=("spec", "paused"))
        elif ref.group_kind in (STATEFUL_SET, DAEMON_SET):
            yield from _of_holding_back(ref, before, after)
        yield from _of_rollout(ref, before, after)


def _of_holding_back(ref: ObjectRef, before: JsonObject, after: JsonObject) -> Iterator[Finding]:
    """A strategy by which changes of the pods reach none of them, or only those of the highest numbers."""
    old, new = (_held_back(ref, one) for one in (before, after))
    if new == old:
        return
    words = (
        f"holds changes of its pods back: {new}" if new else "no longer holds changes of its pods back: all get them"
    )
    evidence = {"before": old, "after": new}
    yield _FEWER.at(ref, f"{said(ref)} {words}", path=("spec", "updateStrategy"), evidence=evidence, key=[old, new])


def _held_back(ref: ObjectRef, obj: JsonObject) -> str:
    strategy = mapping(_spec(obj).get("updateStrategy"))
    if strategy.get("type") == "OnDelete":
        return "a pod changes only when somebody deletes it (OnDelete)"
    partition, count = mapping(strategy.get("rollingUpdate")).get("partition"), replicas_of(obj)
    if ref.group_kind != STATEFUL_SET or not isinstance(partition, int) or not partition:
        return ""
    kept = "none of its" if partition >= count else f"only {count - partition} of its"
    return f"{kept} {count} pods get them (partition {partition})"


def _of_replicas(ref: ObjectRef, before: int, after: int) -> Iterator[Finding]:
    evidence, path = {"before": before, "after": after}, ("spec", "replicas")
    if before > after == 0:
        message = f"{said(ref)} stops: its replicas go from {before} to 0"
        yield _STOPS.at(ref, message, path=path, evidence=evidence, key=evidence)
    elif before > after == 1:
        message = f"{said(ref)} keeps one pod of {before}: while that restarts, none answers"
        yield _FEWER.at(ref, message, path=path, evidence=evidence, key=evidence)
    elif before > after:
        message = f"{said(ref)} runs {after} pods instead of {before}"
        yield _FEWER.at(ref, message, path=path, evidence=evidence, key=evidence)


def _of_suspension(ref: ObjectRef, before: JsonObject, after: JsonObject) -> Iterator[Finding]:
    if _spec(after).get("suspend") is True and _spec(before).get("suspend") is not True:
        yield _PAUSES.at(ref, f"{said(ref)} is suspended: it starts no more pods", path=("spec", "suspend"))


def _of_rollout(ref: ObjectRef, before: JsonObject, after: JsonObject) -> Iterator[Finding]:
    """A rollout that leaves no pod: said where it becomes so, and where the pods of this change are rolled out so."""
    why = _gap_of(ref, after, replicas_of(after))
    if not why:
        return
    path = ("spec", "strategy" if ref.group_kind == DEPLOYMENT else "updateStrategy")
    if not _gap_of(ref, before, replicas_of(after)):
        message = f"{said(ref)} now stops all its pods at once when they change ({why})"
        yield _NEW_GAP.at(ref, message, path=path, evidence={"why": why}, key=why)
    elif _spec(before).get("template") != _spec(after).get("template"):
        message = f"{said(ref)} has no running pod while this change is rolled out ({why})"
        yield _GAP.at(ref, message, path=path, evidence={"why": why}, key=why)


def _gap_of(ref: ObjectRef, obj: JsonObject, count: int) -> str:
    """Why all of `count` pods may be away during a rollout; "" where some stay."""
    spec = _spec(obj)
    match ref.group_kind:
        case kind if kind == DEPLOYMENT and count:
            return _gap_of_deployment(mapping(spec.get("strategy")), count)
        case kind if kind == STATEFUL_SET and count == 1:
            strategy = mapping(spec.get("updateStrategy"))
            partition = mapping(strategy.get("rollingUpdate")).get("partition") or 0
            is_rolled = strategy.get("type") != "OnDelete" and isinstance(partition, int) and partition < count
            return "one replica, which is deleted before its successor is created" if is_rolled else ""
        case kind if kind == DAEMON_SET:
            rolling = mapping(mapping(spec.get("updateStrategy")).get("rollingUpdate"))
            return "maxUnavailable 100%" if rolling.get("maxUnavailable") == "100%" else ""
    return ""


def _gap_of_deployment(strategy: Mapping[str, Any], count: int) -> str:
    if strategy.get("type") == "Recreate":
        return "strategy Recreate"
    rolling = mapping(strategy.get("rollingUpdate"))
    unavailable = part_of(rolling.get("maxUnavailable", _QUARTER), count, up=False)
    surge = part_of(rolling.get("maxSurge", _QUARTER), count, up=True)
    if unavailable is None or surge is None:
        return ""
    if not unavailable and not surge:  # the server lets one go then
        unavailable = 1
    return f"maxUnavailable {rolling.get('maxUnavailable')} of {count}" if unavailable >= count else ""


def _spec(obj: JsonObject) -> Mapping[str, Any]:
    return mapping(obj.get("spec"))


_CLAIMS = (
    Claim("AVL-02", SCALED, ("spec.replicas",)),
    Claim(
        "AVL-02",
        frozenset({STATEFUL_SET, DAEMON_SET}),
        ("spec.updateStrategy.type", "spec.updateStrategy.rollingUpdate.partition"),
    ),
    Claim("AVL-05", frozenset({DEPLOYMENT}), ("spec.strategy",)),
)

CHECK = Check("replicas", claims=_CLAIMS, changes=_changes)
