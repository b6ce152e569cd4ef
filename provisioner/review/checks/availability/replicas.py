"""Workloads that stop, rollouts during which none of their pods answers, and volumes for which their pods wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.json_values import items, mapping, maps, value_at
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts
from provisioner.review.workloads.mounts import CLAIM
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.review.workloads.workload_changes import (
    DAEMON_SET,
    DEPLOYMENT,
    QUARTER,
    SCALED,
    SIZER,
    STATEFUL_SET,
    autoscalers_of,
    most_of,
    replicas_of,
    rolling,
    target_of,
)
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_STOPS = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.BREAKING)
_PAUSES = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.DANGEROUS)
_FEWER = ReviewRule("AVL-02", Section.AVAILABILITY, Severity.NOTABLE)
_NEW_GAP = ReviewRule("AVL-05", Section.AVAILABILITY, Severity.DANGEROUS)
_GAP = ReviewRule("AVL-05", Section.AVAILABILITY, Severity.NOTABLE)
_HANGS = ReviewRule("AVL-07", Section.AVAILABILITY, Severity.DANGEROUS)
_MAY_HANG = ReviewRule("AVL-07", Section.AVAILABILITY, Severity.NOTABLE)

_RECREATE = "Recreate"
_SUSPENDED = frozenset({GroupKind("batch", "CronJob"), GroupKind("batch", "Job")})
_ONE_POD = "ReadWriteOncePod"
_ONE_NODE = frozenset({"ReadWriteOnce", _ONE_POD})
_Modes = dict[ObjectRef, list[str]]


def compare_replicas(facts: Facts) -> Iterator[Finding]:
    bodies = {manifest.ref.identity: manifest.body for manifest in facts.content.manifests}
    for planned in facts.plan.actions:
        ref, before, after = planned.ref, planned.before, planned.after
        if planned.action is not Action.UPDATE or before is None or after is None:
            continue
        old, new = mapping(before.get("spec")), mapping(after.get("spec"))
        if ref.group_kind in SCALED:
            is_left_out = value_at(bodies.get(ref.identity, after), "spec", "replicas") is None
            yield from _compare_counts(ref, replicas_of(before), replicas_of(after), facts, is_left_out=is_left_out)
        elif ref.group_kind in _SUSPENDED and new.get("suspend") is True and old.get("suspend") is not True:
            yield _PAUSES.finding("suspended", ref, where=("spec", "suspend"))
        if ref.group_kind == DEPLOYMENT and new.get("paused") is True and not old.get("paused"):
            yield _FEWER.finding("paused", ref, where=("spec", "paused"))
        elif ref.group_kind in (STATEFUL_SET, DAEMON_SET):
            was, shall = (_find_holding_back(ref, side) for side in (before, after))
            if was != shall:
                variant = f"held-back-{shall['how']}" if shall else "no-longer-held-back"
                params = {"before": was, "after": shall, **shall}
                yield _FEWER.finding(variant, ref, where=("spec", "updateStrategy"), key=[was, shall], **params)
        yield from _compare_rollouts(ref, before, after)


def _compare_counts(ref: ObjectRef, before: int, after: int, facts: Facts, *, is_left_out: bool) -> Iterator[Finding]:
    evidence, where = {"before": before, "after": after}, ("spec", "replicas")
    if before > after == 1 and is_left_out:
        # What nobody writes any more becomes the server's default, also where an autoscaler takes over.
        scaler = next(map(ObjectRef.of, autoscalers_of(ref, facts.state().objects)), None)
        variant = "left-out-and-scaled" if scaler else "left-out"
        yield _PAUSES.finding(variant, ref, where=where, key=evidence, scaler=scaler, **evidence)
    elif before > after == 0:
        yield _STOPS.finding("stops", ref, where=where, key=evidence, **evidence)
    elif before > after:
        yield _FEWER.finding("one-left" if after == 1 else "fewer", ref, where=where, key=evidence, **evidence)
    elif after > before == 0:
        yield _FEWER.finding("starts", ref, where=where, key=evidence, **evidence)


def _find_holding_back(ref: ObjectRef, obj: JsonObject) -> dict[str, Any]:
    """Return how the strategy holds changes back, from all pods or from the lowest numbers; {} where it does not."""
    strategy = mapping(value_at(obj, "spec", "updateStrategy"))
    if strategy.get("type") == "OnDelete":
        return {"how": "on-delete"}
    partition, count = value_at(strategy, "rollingUpdate", "partition"), replicas_of(obj)
    if ref.group_kind != STATEFUL_SET or not isinstance(partition, int) or not partition:
        return {}
    how = "for-all" if partition >= count else "for-some"
    return {"how": how, "changed": max(count - partition, 0), "pods": count, "partition": partition}


def _compare_rollouts(ref: ObjectRef, before: JsonObject, after: JsonObject) -> Iterator[Finding]:
    """Find a rollout that leaves no pod: where it becomes so, and where the pods of this change are rolled out so.

    Where it was so that old pods end before new ones start, programs may rely on that.
    """
    where = ("spec", "strategy" if ref.group_kind == DEPLOYMENT else "updateStrategy")
    old, new = (value_at(side, "spec", "strategy", "type") for side in (before, after))
    if ref.group_kind == DEPLOYMENT and old == _RECREATE != new:
        yield _GAP.finding("together", ref, where=(*where, "type"))
    count = replicas_of(after)
    if why := _find_gap(ref, after, count):
        if not _find_gap(ref, before, count):
            yield _NEW_GAP.finding("new", ref, where=where, key=why, **why)
        elif value_at(before, "spec", "template") != value_at(after, "spec", "template"):
            yield _GAP.finding("in-this-rollout", ref, where=where, key=why, **why)


def _find_gap(ref: ObjectRef, obj: JsonObject, count: int) -> dict[str, Any]:
    """Return why all of `count` pods may be away during a rollout; {} where some stay."""
    kind, spec = ref.group_kind, mapping(obj.get("spec"))
    if kind == DEPLOYMENT and count:
        strategy = mapping(spec.get("strategy"))
        if strategy.get("type") == _RECREATE:
            return {"why": "recreate"}
        spread = rolling(strategy, count)
        stated = mapping(strategy.get("rollingUpdate")).get("maxUnavailable", QUARTER)
        is_gap = spread and spread.unavailable >= count
        return {"why": "max-unavailable", "max": stated, "pods": count} if is_gap else {}
    strategy = mapping(spec.get("updateStrategy"))
    stated = mapping(strategy.get("rollingUpdate"))
    if kind == STATEFUL_SET and count == 1:
        partition = stated.get("partition") or 0
        is_rolled = strategy.get("type") != "OnDelete" and isinstance(partition, int) and partition < count
        return {"why": "one-replica"} if is_rolled else {}
    if kind == DAEMON_SET and stated.get("maxUnavailable") == "100%":
        return {"why": "max-unavailable", "max": "100%"}
    return {}


def judge_replicas(state: StateFacts) -> Iterator[Finding]:
    """Find replicas that a workload writes down and an autoscaler sets."""
    scalers = [(ref, target) for ref, obj in state.named if (target := target_of(obj)) and ref.group_kind != SIZER]
    counts = {
        ref.identity: (ref, value_at(obj, "spec", "replicas")) for ref, obj in state.named if ref.group_kind in SCALED
    }
    for scaler, target in scalers:
        ref, count = counts.get(target.identity, (target, None))
        if count is not None:
            where = ("spec", "replicas")
            yield _FEWER.finding("set-by-two", ref, where=where, key="two", scaler=scaler, count=count)


def compare_volumes(facts: Facts) -> Iterator[Finding]:
    """Find rollouts that start a pod which may wait for the volume of one that goes only when the new one is ready."""
    for planned in facts.plan.actions:
        before, after = planned.before, planned.after
        if planned.ref.group_kind != DEPLOYMENT or planned.action is not Action.UPDATE or not before or not after:
            continue
        is_new = not _find_held_claims(before, facts.previous_state())
        held = _find_held_claims(after, facts.state())
        if held and (is_new or value_at(before, "spec", "template") != value_at(after, "spec", "template")):
            is_of_pod = any(_ONE_POD in modes for modes in held.values())
            variant, claims = "one-pod" if is_of_pod else "one-node", sorted(held)
            rule, where = _HANGS if is_new or is_of_pod else _MAY_HANG, ("spec", "strategy")
            yield rule.finding(variant, planned.ref, where=where, key=list(map(str, claims)), claims=claims)


def judge_volumes(state: StateFacts) -> Iterator[Finding]:
    """Find workloads of several pods that mount one claim."""
    for ref, obj in state.named:
        if ref.group_kind not in SCALED | {DAEMON_SET}:
            continue
        is_on_nodes = ref.group_kind == DAEMON_SET
        claims = sorted(_find_mounted_claims(obj, state))
        pods = most_of(obj, state.objects) if claims and not is_on_nodes else None
        if claims and (pods is None or pods > 1):
            variant, key = "shared-by-nodes" if is_on_nodes else "shared", ["shared", *map(str, claims)]
            yield _MAY_HANG.finding(variant, ref, where=("spec", "template"), key=key, claims=claims, pods=pods)


def _find_held_claims(deployment: JsonObject, state: StateFacts) -> _Modes:
    """Return the claims that old pods of a Deployment hold while a new one starts."""
    spread = rolling(mapping(value_at(deployment, "spec", "strategy")), replicas_of(deployment))
    if spread is None or not spread.surge or spread.unavailable >= replicas_of(deployment):
        return {}
    return _find_mounted_claims(deployment, state)


def _find_mounted_claims(workload: JsonObject, state: StateFacts) -> _Modes:
    """Return the claims of the bundle that pods mount and that no two nodes can mount at once, with their modes."""
    claims = state.once("claims of one node", _find_claims_of_one_node)
    volumes = [volume for pod in pod_specs((workload,)) for volume in maps(pod.body.get("volumes"))]
    names = {str(value_at(volume, "persistentVolumeClaim", "claimName") or "") for volume in volumes}
    namespace = ObjectRef.of(workload).namespace
    return {ref: modes for ref, modes in claims.items() if ref.namespace == namespace and ref.name in names}


def _find_claims_of_one_node(state: StateFacts) -> _Modes:
    claims = {
        ref: list(map(str, items(value_at(obj, "spec", "accessModes"))))
        for ref, obj in state.named
        if ref.group_kind == CLAIM
    }
    return {ref: modes for ref, modes in claims.items() if modes and _ONE_NODE.issuperset(modes)}


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

REPLICAS_CHECK = Check("replicas", claims=_CLAIMS, changes=compare_replicas, standing=judge_replicas)
VOLUMES_CHECK = Check("volumes of one node", changes=compare_volumes, standing=judge_volumes)
