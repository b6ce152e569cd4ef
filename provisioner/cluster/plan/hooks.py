"""The runs of hooks: what an earlier run left is cleared where nothing is lost with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from provisioner.cluster.compare import masked, uid_of, version_of
from provisioner.cluster.keep_policies import keep_words
from provisioner.cluster.plan.adopting import foreign, objection_to
from provisioner.cluster.plan.helm_releases import is_left_by_hook
from provisioner.cluster.plan.known import PlanInputs, offline
from provisioner.cluster.plan.proving import proved, replacement
from provisioner.cluster.tracking import is_left_by
from provisioner.retention import LOSES_NOTHING
from provisioner.values import Action, GroupKind, Manifest, PlannedAction

# These are there to run, and hold nothing.
_RUN = frozenset({GroupKind("batch", "Job"), GroupKind("", "Pod")})


def hook_on(scene: PlanInputs, manifest: Manifest, live: dict[str, Any] | None) -> PlannedAction:
    """The run of a hook. What its own last run left is cleared without a word where nothing is lost with it.

    What holds data or other objects, and an object that stays and becomes a hook, is made anew as any other would be;
    anybody else's is met as any other is, but for what hooks of the release left that is taken over.
    """
    identity = manifest.ref.identity
    last, staying = scene.options.hooks.get(identity), scene.inventory.get(identity, "")
    if live is None:
        planned = proved(scene, manifest, None)
        again = _rerun(scene, manifest)
        return replace(again, **_said(planned)) if last else planned
    is_left = last is not None and is_left_by(last, live) and uid_of(live) not in scene.options.others
    if is_left and uid_of(live) != staying and manifest.ref.group_kind not in _RUN and _is_kept(scene, manifest, live):
        return _left_as_it_is(manifest, live)
    if is_left and uid_of(live) != staying and manifest.ref.group_kind in LOSES_NOTHING:
        return replacement(scene, manifest, _rerun(scene, manifest))
    if is_left or uid_of(live) == staying:
        return replacement(scene, manifest, offline(manifest, Action.REPLACE, live))
    is_of_release = is_left_by_hook(live, scene.options.helm_release) and uid_of(live) not in scene.options.others
    if not is_of_release and (objection := objection_to(scene, live)):
        return foreign(manifest, live, objection)
    # What somebody else's object holds is not told (S09).
    return replace(replacement(scene, manifest, offline(manifest, Action.REPLACE, live)), before=None)


def _is_kept(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> bool:
    running = scene.before.get(manifest.ref.identity)
    return any(map(keep_words, (manifest.body, running.body if running else None, live)))


def _left_as_it_is(manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    """What the last run made, and is to be kept: it is not deleted to be made anew (S39)."""
    before, _ = masked(live, None)
    words = "an earlier run made it and an annotation says that it is to be kept: it stays as it is"
    return PlannedAction(manifest.ref, Action.NONE, uid_of(live), version_of(live), before, before, notes=(words,))


def _rerun(scene: PlanInputs, manifest: Manifest) -> PlannedAction:
    """Shown beside the hook of the running content, and bound to no object: what is there may go by itself."""
    running = scene.before.get(manifest.ref.identity)
    before, after = masked(running.body if running else None, manifest.body)
    return PlannedAction(manifest.ref, Action.RERUN, before=before, after=after, is_proved=False)


def _said(planned: PlannedAction) -> dict[str, Any]:
    """What the API server said of a creation."""
    return {name: getattr(planned, name) for name in ("warnings", "problem", "problem_code", "notes", "server_words")}
