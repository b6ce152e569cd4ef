"""What goes: objects of ours that the content has no more, and why some of them stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from provisioner.cluster.annotations import keep_words
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import masked, version_of
from provisioner.cluster.evidence import PARALLEL_READS
from provisioner.cluster.order import NAMESPACE, defined_kinds, deletion_phases, is_system_namespace
from provisioner.cluster.plan.inputs import PlanInputs, reviewed_action, untried_words, with_problem
from provisioner.cluster.plan.planned_actions import plan_release
from provisioner.errors import ClusterError, PreconditionFailed, TryLater, UnknownKind, Unreachable
from provisioner.json_values import uid_of
from provisioner.values import (
    Action,
    Content,
    DeletionPolicy,
    JsonObject,
    Manifest,
    ObjectIdentity,
    ObjectRef,
    PlannedAction,
)


def objects_leaving(
    inventory: Mapping[ObjectIdentity, str], content: Content, before: Mapping[ObjectIdentity, Manifest]
) -> list[ObjectRef]:
    """What is ours and not in the content."""
    wished = {manifest.ref.identity for manifest in content.manifests}
    return [
        ObjectRef(identity[0], before[identity].ref.version if identity in before else "", *identity[1:])
        for identity in inventory
        if identity not in wished
    ]


def plan_deletions(scene: PlanInputs, refs: Iterable[ObjectRef]) -> list[PlannedAction]:
    """In the order in which they go."""
    with ThreadPoolExecutor(max_workers=PARALLEL_READS) as pool:
        planned = _with_holders(scene, pool.map(lambda ref: _deletion(scene, ref), refs))
    ordered = deletion_phases((action.ref for action in planned.values()), bodies_of(planned.values()))
    return [planned[ref.identity] for phase in ordered for ref in phase.refs]


def bodies_of(actions: Iterable[PlannedAction]) -> dict[ObjectIdentity, JsonObject]:
    """The objects that the actions delete, as they were when that was planned."""
    return {action.ref.identity: action.before for action in actions if action.before}


def _with_holders(scene: PlanInputs, actions: Iterable[PlannedAction]) -> dict[ObjectIdentity, PlannedAction]:
    """The actions, where what would take an object that is kept along stays as well: its namespace, the definition of
    its kind, an owner of it, and what these are in. What the content still has may be to be kept, too."""
    planned = {action.ref.identity: action for action in actions}
    running = [
        manifest
        for identity, manifest in scene.before.items()
        if identity in scene.brought and keep_words(manifest.body)
    ]
    kept = [(action.ref, action.before) for action in planned.values() if action.action is Action.ORPHAN]
    kept += [(manifest.ref, None) for manifest in running]
    going = {action.ref.identity: action for action in planned.values() if action.action is Action.DELETE}
    kinds = {identity: defined_kinds([Manifest(action.before)]) for identity, action in going.items() if action.before}
    while kept and going:
        ref, live = kept.pop()
        owners = {str(owner.get("uid")) for owner in ((live or {}).get("metadata") or {}).get("ownerReferences") or ()}
        for identity, one in list(going.items()):
            is_namespace = one.ref.group_kind == NAMESPACE and one.ref.name == ref.namespace
            if is_namespace or one.uid in owners or ref.group_kind in kinds.get(identity, ()):
                planned[identity] = plan_release(one, f"{ref}, which is to be kept, would be deleted with it")
                kept.append((one.ref, going.pop(identity).before))
    return planned


def _deletion(scene: PlanInputs, ref: ObjectRef) -> PlannedAction:
    """The deletion of one object of ours. One that is gone is planned too: only the inventory still holds it.

    What says of itself that it is to be kept, as reviewed or as it is now, is only let go.
    """
    ours = scene.inventory[ref.identity]
    planned = PlannedAction(ref, Action.DELETE, ours)
    if scene.options.is_orphaning:
        return plan_release(planned, f"spec.deletionPolicy is {DeletionPolicy.ORPHAN}")
    if is_system_namespace(ref):
        return replace(
            planned, is_proved=False, problem=f"{ref} belongs to Kubernetes itself", problem_code="forbidden"
        )
    try:
        # In a version that is served, and still is when it goes: after the definitions of the bundle have come.
        served = in_served_version(scene.cluster, ref).version
        staying = scene.new_versions.get(ref.group_kind, frozenset())
        if staying and served not in staying:
            known = (version for version in sorted(staying) if scene.cluster.resource_of(ref.group, version, ref.kind))
            served = next(known, served)
        planned = replace(planned, ref=replace(ref, version=served))
        live = scene.live(planned.ref)
        return planned if live is None else _deletion_of(scene, planned, live)
    except UnknownKind:
        return planned  # with the kind its objects went
    except PreconditionFailed as exc:
        raise TryLater(f"{ref} changes faster than it can be planned") from exc
    except Unreachable as exc:
        if not (words := untried_words(exc, scene.webhooks)):
            raise
        return replace(planned, is_proved=False, notes=(words,), server_words=exc.server_words)
    except ClusterError as exc:
        return with_problem(planned, exc)


def _deletion_of(scene: PlanInputs, planned: PlannedAction, live: dict[str, Any]) -> PlannedAction:
    ref = planned.ref
    if uid_of(live) != planned.uid:
        return replace(planned, action=Action.NONE, notes=(f"{ref} was made again by somebody else and stays",))
    running, is_removal = scene.before.get(ref.identity), scene.options.is_removal
    before, _ = masked(live, None)
    if words := keep_words(running.body if running else None, is_removal=is_removal):
        return plan_release(replace(planned, before=before), f"it says {words}")
    if words := keep_words(live, is_removal=is_removal):
        # What the live object alone says is a value of it (S09).
        told = replace(planned, before=before, server_words=f"it says {words}")
        return plan_release(told, "an annotation of the object in the cluster says so")
    stands = reviewed_action(scene, ref, live)
    if stands and stands.action is Action.DELETE:
        return stands
    planned = replace(planned, resource_version=version_of(live), before=before, is_proved=True)
    try:
        scene.cluster.delete(ref, uid=planned.uid, dry_run=True)
    except Unreachable as exc:
        if words := untried_words(exc, scene.webhooks):
            return replace(planned, is_proved=False, notes=(words,))
        raise
    return planned


def in_served_version(cluster: ClusterClient, ref: ObjectRef) -> ObjectRef:
    """`ref` in its own version if that is still served, else in the preferred one."""
    found = cluster.resource_of(ref.group, ref.version, ref.kind) or cluster.resource_of(ref.group, "", ref.kind)
    return replace(ref, version=found.version) if found else ref
