"""Volumes that the pods of one node at a time can mount, for workloads that need them on more than one."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping, maps
from provisioner.review.workloads.mounts import CLAIM
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.review.workloads.workload_changes import DAEMON_SET, DEPLOYMENT, SCALED, most_of, replicas_of, rolling
from provisioner.values import Action, Finding, JsonObject, ObjectRef, Section, Severity

_HANGS = ReviewRule("AVL-07", Section.AVAILABILITY, Severity.DANGEROUS)
_MAY_HANG = ReviewRule("AVL-07", Section.AVAILABILITY, Severity.NOTABLE)
_SHARED = ReviewRule("AVL-07", Section.AVAILABILITY, Severity.NOTABLE)
_ONE_POD = "ReadWriteOncePod"
_ONE_NODE = frozenset({"ReadWriteOnce", _ONE_POD})
_Claims = dict[ObjectRef, list[str]]


def _changes(facts: Facts) -> Iterator[Finding]:
    """Rollouts that start a pod which may wait for the volume of one that goes only when the new one is ready."""
    for planned in facts.plan.actions:
        before, after = planned.before, planned.after
        if planned.ref.group_kind != DEPLOYMENT or planned.action is not Action.UPDATE or not before or not after:
            continue
        is_new = not _held(before, facts.previous_state())
        held = _held(after, facts.state())
        is_rolled = mapping(before.get("spec")).get("template") != mapping(after.get("spec")).get("template")
        if held and (is_new or is_rolled):
            is_of_pod = any(_ONE_POD in modes for modes in held.values())
            variant, claims = "one-pod" if is_of_pod else "one-node", sorted(held)
            rule, where = _HANGS if is_new or is_of_pod else _MAY_HANG, ("spec", "strategy")
            yield rule.finding(variant, planned.ref, where=where, key=list(map(str, claims)), claims=claims)


def _standing(state: StateFacts) -> Iterator[Finding]:
    """Workloads of several pods that mount one claim."""
    for ref, obj in state.named:
        if ref.group_kind not in SCALED | {DAEMON_SET}:
            continue
        is_on_nodes = ref.group_kind == DAEMON_SET
        if (claims := sorted(_mounted(obj, state))) and (is_on_nodes or most_of(obj, state.objects) > 1):
            variant, key = "shared-by-nodes" if is_on_nodes else "shared", ["shared", *map(str, claims)]
            pods = None if is_on_nodes else most_of(obj, state.objects)
            yield _SHARED.finding(variant, ref, where=("spec", "template"), key=key, claims=claims, pods=pods)


def _held(deployment: JsonObject, state: StateFacts) -> _Claims:
    """The claims that its old pods hold while a new one starts."""
    spread = rolling(mapping(mapping(deployment.get("spec")).get("strategy")), replicas_of(deployment))
    if spread is None or not spread.surge or spread.unavailable >= replicas_of(deployment):
        return {}
    return _mounted(deployment, state)


def _mounted(workload: JsonObject, state: StateFacts) -> _Claims:
    """The claims of the bundle that its pods mount and that no two nodes can mount at once, with their modes."""
    claims = state.once("claims of one node", _of_one_node)
    volumes = [volume for pod in pod_specs((workload,)) for volume in maps(pod.body.get("volumes"))]
    named = {str(mapping(one.get("persistentVolumeClaim")).get("claimName") or "") for one in volumes}
    namespace = ObjectRef.of(workload).namespace
    return {ref: modes for ref, modes in claims.items() if ref.namespace == namespace and ref.name in named}


def _of_one_node(state: StateFacts) -> _Claims:
    claims = (
        (ref, items(mapping(obj.get("spec")).get("accessModes"))) for ref, obj in state.named if ref.group_kind == CLAIM
    )
    return {ref: list(map(str, modes)) for ref, modes in claims if modes and _ONE_NODE.issuperset(map(str, modes))}


CHECK = Check("volumes of one node", changes=_changes, standing=_standing)
