"""Objects that are somebody else's: what stands in the way, and what is taken over, as far as it may be told (S09)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from provisioner.cluster.compare import hidden, masked, uid_of, version_of
from provisioner.cluster.plan.helm_releases import losers, without_marks
from provisioner.cluster.plan.known import PlanInputs, body_of, offline, stopped
from provisioner.cluster.plan.ownership import Objection, objection_to_adoption, present_owner
from provisioner.cluster.plan.proving import SECRET, left_words, tried, yielding_to_others
from provisioner.cluster.plan.supposed import supposed
from provisioner.cluster.tracking import LARGEST_TRACKING
from provisioner.errors import AlreadyExists, FieldConflict, TryLater
from provisioner.values import Action, Manifest, PlannedAction

# What is said of an object that may be adopted and was not tried (Options.may_try_foreign).
UNTRIED = "the requester is unknown, so the adoption was not tried: its result is known once it is written"
TAKEN_OVER = "it is taken over from its Helm release: Helm's part in the approved fields and its marks go"


def only_looked_at(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    """What would come of somebody else's object, with its owner, whatever the API server says."""
    planned = replace(offline(manifest, Action.UPDATE, live), owner=present_owner(live))
    return tried(scene, manifest, planned, lambda: supposed(scene, manifest, live))


def in_the_way(scene: PlanInputs, manifest: Manifest, live: dict[str, Any], objection: Objection) -> PlannedAction:
    """Someone else's object that is not to be adopted, with its owner and, where a report is made of it, what would
    come of it if it were.

    All of that is for who may get the object (S09). It is tried under the terms of any other object that is not ours:
    not for who is unknown, and never a Secret. Where the API server cannot say it now, the report does not wait for it.
    """
    met = foreign(manifest, live, objection)
    if not scene.options.tells_adoption:
        return met
    met = replace(met, owner=present_owner(live, scene.options.others))
    is_dying = bool((live.get("metadata") or {}).get("deletionTimestamp"))
    if manifest.ref.group_kind == SECRET or is_dying or not scene.options.may_try_foreign:
        return met
    planned = offline(manifest, Action.ADOPT, live)
    try:
        found = tried(scene, manifest, planned, lambda: supposed(scene, manifest, live))
    except TryLater:
        return met
    said = [met.server_words, f"if it were adopted: {found.problem}" if found.problem else "", found.server_words]
    return replace(
        met,
        before=found.before,
        after=found.after,
        is_proved=found.is_proved,
        warnings=found.warnings,
        notes=found.notes,
        server_words="; ".join(filter(None, said)),
    )


def taken_over(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    """The adoption of what a Helm release holds: the dry-run is forced, as the release's fields are handed over first.

    What another manager than the release's would lose by it is a conflict, as anywhere else. Of a Secret nothing is
    tried: that would tell whether its values are the same (S09).
    """
    if manifest.ref.group_kind == SECRET or not scene.options.may_try_foreign:
        untried = PlannedAction(manifest.ref, Action.ADOPT, uid_of(live), version_of(live), None, hidden(manifest.body))
        return replace(untried, is_proved=False, notes=(TAKEN_OVER,))
    planned = offline(manifest, Action.ADOPT, live)
    return tried(scene, manifest, planned, lambda: _without_helm(scene, manifest, live, planned))


def _without_helm(scene: PlanInputs, manifest: Manifest, live: dict[str, Any], planned: PlannedAction) -> PlannedAction:
    """What comes of what a release holds, or the conflict with others. Raises ClusterError where it is refused."""
    sent = yielding_to_others(scene, manifest, live)
    body = body_of(sent, tracking=LARGEST_TRACKING, uid=uid_of(live), resource_version=version_of(live))
    result = scene.cluster.apply(body, field_manager=scene.field_manager, dry_run=True, force=True).object
    if others := losers(live, result, scene.field_manager):
        words = f"{manifest.ref}: fields of it belong to other managers than Helm"
        return stopped(planned, FieldConflict(words, status=409, server_words=", ".join(others)))
    before, after = masked(live, without_marks(result, scene.field_manager))
    notes = (TAKEN_OVER, *left_words(manifest, sent))
    return replace(planned, before=before, after=after, is_proved=True, notes=notes)


def objection_to(scene: PlanInputs, live: dict[str, Any]) -> Objection | None:
    return objection_to_adoption(live, scene.options)


def foreign(manifest: Manifest, live: dict[str, Any], objection: Objection) -> PlannedAction:
    """Someone else's object. Its state is not part of the plan: who may see it is not ours to say (S09)."""
    return PlannedAction(
        manifest.ref,
        Action.ADOPT,
        uid_of(live),
        version_of(live),
        None,
        hidden(manifest.body),
        is_proved=False,
        problem=objection.words,
        problem_code=AlreadyExists.code,
        server_words=objection.server_words,
    )
