"""What goes: objects of ours that the content has no more, and why some of them stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.bulk_read import PARALLEL
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import masked, uid_of, version_of
from provisioner.cluster.order import deletion_phases, is_system_namespace
from provisioner.cluster.plan.known import PlanInputs, reviewed_action, says, stopped
from provisioner.cluster.plan.own_webhooks import untried_words
from provisioner.errors import ClusterError, PreconditionFailed, TryLater, UnknownKind, Unreachable
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

# An object that stays when its content has it no more.
PRUNE, KEEP = f"{OWN_GROUP}/prune", "false"


def leaving(
    inventory: Mapping[ObjectIdentity, str], content: Content, before: Mapping[ObjectIdentity, Manifest]
) -> list[ObjectRef]:
    """What is ours and not in the content."""
    wished = {one.ref.identity for one in content.manifests}
    return [
        ObjectRef(identity[0], before[identity].ref.version if identity in before else "", *identity[1:])
        for identity in inventory
        if identity not in wished
    ]


def deletions(scene: PlanInputs, refs: Iterable[ObjectRef]) -> list[PlannedAction]:
    """In the order in which they go."""
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        planned = {one.ref.identity: one for one in pool.map(lambda ref: _deletion(scene, ref), refs)}
    ordered = deletion_phases((one.ref for one in planned.values()), bodies_of(planned.values()))
    return [planned[ref.identity] for phase in ordered for ref in phase.refs]


def bodies_of(actions: Iterable[PlannedAction]) -> dict[ObjectIdentity, JsonObject]:
    """The objects that the actions delete, as they were when that was planned."""
    return {one.ref.identity: one.before for one in actions if one.before}


def _deletion(scene: PlanInputs, ref: ObjectRef) -> PlannedAction:
    """The deletion of one object of ours. One that is gone is planned too: only the inventory still holds it.

    What says of itself that it is to be kept, as reviewed or as it is now, is only let go.
    """
    ours = scene.inventory[ref.identity]
    planned = PlannedAction(ref, Action.DELETE, ours)
    if scene.options.is_orphaning:
        words = f"{ref} stays as it is, because spec.deletionPolicy is {DeletionPolicy.ORPHAN}"
        return _let_go(planned, f"{words}; from now on nobody looks after it")
    if is_system_namespace(ref):
        return replace(
            planned, is_proved=False, problem=f"{ref} belongs to Kubernetes itself", problem_code="forbidden"
        )
    try:
        planned = replace(planned, ref=_in_staying_version(scene, ref))
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
        return stopped(planned, exc)


def _deletion_of(scene: PlanInputs, planned: PlannedAction, live: dict[str, Any]) -> PlannedAction:
    ref = planned.ref
    if uid_of(live) != planned.uid:
        return _let_go(planned, f"{ref} was made again by somebody else and stays")
    running = scene.before.get(ref.identity)
    if _is_kept(live) or (running and _is_kept(running.body)):
        return _let_go(planned, f"{ref} stays, because it says {PRUNE}: {KEEP}; from now on nobody looks after it")
    stands = reviewed_action(scene, ref, live)
    if stands and stands.action is Action.DELETE:
        return stands
    untried = _untried_words(scene, planned)
    before, _ = masked(live, None)
    return replace(
        planned,
        resource_version=version_of(live),
        before=before,
        is_proved=not untried,
        notes=(untried,) if untried else (),
    )


def _untried_words(scene: PlanInputs, planned: PlannedAction) -> str:
    """ "" where the server would delete it now; else why it could not be asked. Raises what it answers otherwise."""
    try:
        scene.cluster.delete(planned.ref, uid=planned.uid, dry_run=True)
    except Unreachable as exc:
        if words := untried_words(exc, scene.webhooks):
            return words
        raise
    return ""


def _let_go(planned: PlannedAction, words: str) -> PlannedAction:
    return replace(planned, action=Action.NONE, notes=(words,))


def _is_kept(obj: JsonObject) -> bool:
    return says(obj, PRUNE) == KEEP


def in_served_version(cluster: ClusterClient, ref: ObjectRef) -> ObjectRef:
    """`ref` in its own version if that is still served, else in the preferred one."""
    found = cluster.resource_of(ref.group, ref.version, ref.kind) or cluster.resource_of(ref.group, "", ref.kind)
    return replace(ref, version=found.version) if found else ref


def _in_staying_version(scene: PlanInputs, ref: ObjectRef) -> ObjectRef:
    """`ref` in a version that is served, and still is when it goes: after the definitions of the bundle have come.

    In its own if possible, else the preferred one.
    """
    served = in_served_version(scene.cluster, ref).version
    staying = scene.new_versions.get(ref.group_kind, frozenset())
    if not staying or served in staying:
        return replace(ref, version=served)
    known = [one for one in sorted(staying) if scene.cluster.resource_of(ref.group, one, ref.kind)]
    return replace(ref, version=(known or [served])[0])
