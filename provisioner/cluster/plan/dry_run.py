"""What apply would do to one object, asked of the API server itself by dry-run. Nothing is changed here.

What the server cannot be asked yet, because kind, namespace or role come along, is planned offline and says so. What
stands in the way of one object becomes part of the plan; only a server that does not answer is an error.

Whether applying an object again would change nothing is read from the live object alone: the API server writes down who
set which field. Where our entry names exactly the fields of the content, and each holds the content's value, an apply
has nothing to set, to take away, or to conflict with. What cannot be proved so is asked by dry-run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson

from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.annotations import NONCE, Tracking, is_left_by, keep_words
from provisioner.cluster.choices import as_sent
from provisioner.cluster.compare import cleaned, masked, share_texts, version_of
from provisioner.cluster.plan.adoption import (
    UNTRIED,
    Objection,
    is_supposed,
    objection_to_adoption,
    plan_foreign_object,
    plan_looked_at,
    plan_obstacle,
    plan_takeover,
)
from provisioner.cluster.plan.helm_releases import is_held_by, is_left_by_hook
from provisioner.cluster.plan.inputs import (
    PlanInputs,
    annotation_of,
    is_served_by_own,
    reviewed_action,
    unproved_action,
    untried_words,
    with_problem,
)
from provisioner.cluster.plan.trials import action_if_unchanged, conflict_of_secret, plan_by_dry_run, plan_replacement
from provisioner.errors import AlreadyExists, ClusterError, PreconditionFailed, TryLater, UnknownKind, Unreachable
from provisioner.json_values import uid_of
from provisioner.missing_kinds import Lack
from provisioner.retention import LOSES_NOTHING, SECRET, may_be_remade
from provisioner.schema.fields import is_same
from provisioner.values import Action, GroupKind, JsonObject, Manifest, PlannedAction

# These are there to run, and hold nothing.
_RUN = frozenset({GroupKind("batch", "Job"), GroupKind("", "Pod")})


def plan_hook(scene: PlanInputs, manifest: Manifest, live: dict[str, Any] | None) -> PlannedAction:
    """The run of a hook. What its own last run left is cleared without a word where nothing is lost with it.

    What holds data or other objects, and an object that stays and becomes a hook, is made anew as any other would be;
    anybody else's is met as any other is, but for what hooks of the release left that is taken over.
    """
    identity = manifest.ref.identity
    last, staying = scene.options.hooks.get(identity), scene.inventory.get(identity, "")
    if live is None:
        planned = plan_by_dry_run(scene, manifest, None)
        again = _rerun(scene, manifest)
        answered = ("warnings", "problem", "problem_code", "notes", "server_words")
        return replace(again, **{name: getattr(planned, name) for name in answered}) if last else planned
    is_left = last is not None and is_left_by(last, live) and uid_of(live) not in scene.options.others
    running = scene.before.get(identity)
    is_kept = any(map(keep_words, (manifest.body, running.body if running else None, live)))
    if is_left and uid_of(live) != staying and manifest.ref.group_kind not in _RUN and is_kept:
        # What the last run made, and is to be kept: it is not deleted to be made anew (S39).
        before, _ = masked(live, None)
        words = "an earlier run made it and an annotation says that it is to be kept: it stays as it is"
        return PlannedAction(manifest.ref, Action.NONE, uid_of(live), version_of(live), before, before, notes=(words,))
    if is_left and uid_of(live) != staying and manifest.ref.group_kind in LOSES_NOTHING:
        return plan_replacement(scene, manifest, _rerun(scene, manifest))
    if is_left or uid_of(live) == staying:
        return plan_replacement(scene, manifest, unproved_action(manifest, Action.REPLACE, live))
    is_of_release = is_left_by_hook(live, scene.options.helm_release) and uid_of(live) not in scene.options.others
    if not is_of_release and (objection := objection_to_adoption(live, scene.options)):
        return plan_foreign_object(manifest, live, objection)
    # What somebody else's object holds is not told (S09).
    return replace(plan_replacement(scene, manifest, unproved_action(manifest, Action.REPLACE, live)), before=None)


def _rerun(scene: PlanInputs, manifest: Manifest) -> PlannedAction:
    """Shown beside the hook of the running content, and bound to no object: what is there may go by itself."""
    running = scene.before.get(manifest.ref.identity)
    before, after = masked(running.body if running else None, manifest.body)
    return PlannedAction(manifest.ref, Action.RERUN, before=before, after=after, is_proved=False)


_FIELD, _ITEM, _VALUE, _SELF = "f:", "k:", "v:", "."


def is_applied(wished: JsonObject, live: JsonObject, *, field_manager: str) -> bool:
    """Whether `live` is what an apply of `wished` by `field_manager`, with the object's own tracking, would leave."""
    entries = [
        entry
        for entry in (live.get("metadata") or {}).get("managedFields") or []
        if entry.get("manager") == field_manager and entry.get("operation") == "Apply" and not entry.get("subresource")
    ]
    tracking = Tracking.on(live)
    is_ours = len(entries) == 1 and NONCE in tracking.annotations
    if not is_ours or entries[0].get("apiVersion") != wished.get("apiVersion"):
        return False
    # What of an apply becomes fields: all but what names the object.
    sent = as_sent(wished)
    meta = {key: value for key, value in (sent.get("metadata") or {}).items() if key not in {"name", "namespace"}}
    body = {key: value for key, value in sent.items() if key not in {"apiVersion", "kind", "metadata"}}
    return _holds({**body, "metadata": tracking.put_on(meta)}, live, entries[0].get("fieldsV1") or {})


def _holds(wished: object, live: object, owned: Mapping[str, Any]) -> bool:
    """Whether `live` has the value, and our entry this value's fields and no others."""
    inner = {key: node for key, node in owned.items() if key != _SELF}
    if not inner or all(key.startswith(_VALUE) for key in inner):
        # A leaf, a map or list that is owned as a whole, or a set.
        return _bytes(wished) == _bytes(live) and (
            not inner or (isinstance(wished, list) and len(inner) == len(wished))
        )
    if isinstance(wished, Mapping) and isinstance(live, Mapping):
        names = {f"{_FIELD}{key}" for key in wished}
        return names == inner.keys() and all(
            key in live and _holds(value, live[key], inner[f"{_FIELD}{key}"]) for key, value in wished.items()
        )
    if isinstance(wished, list) and isinstance(live, list) and len(wished) == len(live) == len(inner):
        return all(_holds_item(wish, other, inner) for wish, other in zip(wished, live, strict=True))
    return False


def _holds_item(wished: object, live: object, owned: Mapping[str, Any]) -> bool:
    """Of a list whose items have keys; a key that the content leaves out has been defaulted by the server."""
    if not isinstance(wished, Mapping) or not isinstance(live, Mapping):
        return False
    nodes = []
    for key, node in owned.items():
        try:
            stated = orjson.loads(key.removeprefix(_ITEM)) if key.startswith(_ITEM) else None
        except orjson.JSONDecodeError:
            continue
        if isinstance(stated, dict) and all(
            _bytes(live.get(name)) == _bytes(value) == _bytes(wished.get(name, value)) for name, value in stated.items()
        ):
            nodes.append(node)
    return len(nodes) == 1 and _holds(wished, live, nodes[0])


def _bytes(value: object) -> bytes:
    """One text for one value: 1, "1", 1.0 and true are four."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


# An object that somebody changes between our read and our dry-run is looked at again, so often, and each time later: a
# workload that is being rolled out has many writers for a moment.
ATTEMPTS = 5
PAUSE_SECONDS = 0.1
# An object that may be left out while its API is absent.
OPTIONAL, IS_OPTIONAL = f"{OWN_GROUP}/optional", "true"


def plan_object(scene: PlanInputs, manifest: Manifest) -> PlannedAction:
    """The planned action of one object, its obstacle included."""
    ref = manifest.ref
    may_be_absent = _is_optional(scene, manifest) and ref.group_kind not in scene.new_kinds
    if may_be_absent and scene.cluster.resource_of(ref.group, ref.version, ref.kind) is None:
        return _left_out(scene, manifest)
    if ref.namespace and ref.namespace in scene.new_namespaces:
        return unproved_action(manifest, Action.CREATE)
    for attempt in range(ATTEMPTS):
        try:
            return _asked(scene, manifest, is_again=attempt > 0)
        except (PreconditionFailed, AlreadyExists):
            if attempt == ATTEMPTS - 1:
                raise TryLater(f"{ref} changes faster than it can be planned") from None
            time.sleep(PAUSE_SECONDS * (attempt + 1))
    raise AssertionError("unreachable")


def _left_out(scene: PlanInputs, manifest: Manifest) -> PlannedAction:
    ref = manifest.ref
    absence = scene.cluster.served().absence_of(ref.group, ref.version, ref.kind)
    words = f"{ref} is left out: it is optional, and {absence.words}"
    if absence.lack is not Lack.REMOVED:
        words += (
            f". It will be created once API {ref.api_version} {ref.kind} appears while this approval lives, if exactly "
            "this comes of it"
        )
    return replace(unproved_action(manifest, Action.SKIP), notes=(words,))


def _is_optional(scene: PlanInputs, manifest: Manifest) -> bool:
    """A hook never is: it runs once, so that there is no later at which it could still come."""
    is_said = (
        annotation_of(manifest.body, OPTIONAL) == IS_OPTIONAL or manifest.ref.group_kind in scene.options.optional_kinds
    )
    return is_said and manifest.hook is None


def _asked(scene: PlanInputs, manifest: Manifest, *, is_again: bool) -> PlannedAction:
    ref, ours = manifest.ref, scene.inventory.get(manifest.ref.identity, "")
    # Where nobody has said anything of such an object, and trying it is allowed whosever it is (S09), one call proves
    # the action and says that there is no such object; where that fails, the object is read.
    is_known = any(ref.identity in known for known in (scene.known, scene.inventory, scene.reviewed, scene.before))
    is_plain = manifest.hook is None and not _is_optional(scene, manifest)
    if not is_again and not is_known and is_plain and scene.options.may_try_foreign:
        with suppress(PreconditionFailed, AlreadyExists, UnknownKind):
            planned = plan_by_dry_run(scene, manifest, None)
            if planned.is_proved and not planned.problem:
                return planned
    try:
        live = scene.live(ref, is_again=is_again)
    except UnknownKind as exc:
        if ref.group_kind in scene.new_kinds:
            return _of_new_version(scene, manifest)
        if _is_optional(scene, manifest):
            return _left_out(scene, manifest)
        planned = unproved_action(manifest, Action.CREATE)
        return planned if is_served_by_own(ref, scene.brought) else with_problem(planned, exc)
    except ClusterError as exc:
        planned = unproved_action(manifest, Action.UPDATE if ours else Action.CREATE)
        # A CRD is made anew where its objects have a namespace by then, or have none any more.
        served = scene.cluster.resource_of(ref.group, ref.version, ref.kind)
        is_of_other_scope = served is not None and served.is_namespaced != bool(ref.namespace)
        return planned if is_of_other_scope and ref.group_kind in scene.new_kinds else with_problem(planned, exc)
    except Unreachable as exc:
        if not (words := untried_words(exc, scene.webhooks)):
            raise
        planned = unproved_action(manifest, Action.UPDATE if ours else Action.CREATE)
        return replace(planned, uid=ours, notes=(words,), server_words=exc.server_words)
    stands = reviewed_action(scene, ref, live)
    if stands and (stands.action is Action.REPLACE or may_be_remade(stands)):
        return plan_replacement(scene, manifest, stands)
    return stands or _planned_on(scene, manifest, live)


def _planned_on(scene: PlanInputs, manifest: Manifest, live: dict[str, Any] | None) -> PlannedAction:
    """The action on an object in the state `live`."""
    ref, ours = manifest.ref, scene.inventory.get(manifest.ref.identity, "")
    if manifest.hook:
        return plan_hook(scene, manifest, live)
    if live is None:
        return plan_by_dry_run(scene, manifest, None)
    is_only_looked_at = is_supposed(scene, live, ours)
    objection = objection_to_adoption(live, scene.options) if uid_of(live) != ours else None
    if objection and not is_only_looked_at:
        return plan_obstacle(scene, manifest, live, objection)
    if (live.get("metadata") or {}).get("deletionTimestamp"):
        words = f"{ref} is being deleted and waits for its finalizers"
        action = Action.UPDATE if uid_of(live) == ours else Action.ADOPT
        return replace(unproved_action(manifest, action, live), problem=words, problem_code=PreconditionFailed.code)
    if is_only_looked_at:
        return plan_looked_at(scene, manifest, live)
    if uid_of(live) != ours and is_held_by(live, scene.options.helm_release):
        return plan_takeover(scene, manifest, live)
    if uid_of(live) != ours and not scene.options.may_try_foreign:
        return replace(unproved_action(manifest, Action.ADOPT, live), notes=(UNTRIED,))
    return _written_on(scene, manifest, live)


def _written_on(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    """The action on an object that is ours, or may be tried as if it were."""
    if manifest.ref.group_kind == SECRET and (conflict := conflict_of_secret(scene, manifest, live)):
        return with_problem(unproved_action(manifest, Action.UPDATE, live), conflict)
    # An object of ours that is as the running content has it, and so has this one: nothing would be written.
    running = scene.before.get(manifest.ref.identity)
    if (
        running is not None
        and manifest.ref.group_kind not in scene.new_kinds
        and uid_of(live) == scene.inventory.get(manifest.ref.identity)
        and is_same(running.body, manifest.body)
        and is_applied(manifest.body, live, field_manager=scene.field_manager)
    ):
        warnings = scene.options.warned.get(str(manifest.ref), ())
        shown, _ = masked(live, live) if manifest.ref.group_kind == SECRET else (cleaned(live), None)
        if shown is not None:
            share_texts(shown, manifest.body)
        action = action_if_unchanged(scene, manifest.ref)
        planned = PlannedAction(manifest.ref, action, uid_of(live), version_of(live), shown, shown, warnings=warnings)
    else:
        planned = plan_by_dry_run(scene, manifest, live)
    return plan_replacement(scene, manifest, planned) if may_be_remade(planned) and not planned.problem else planned


def _of_new_version(scene: PlanInputs, manifest: Manifest) -> PlannedAction:
    """An object in a version that its CRD is about to serve; it may exist already in another one."""
    other = scene.cluster.resource_of(manifest.ref.group, "", manifest.ref.kind)
    live = scene.cluster.get(replace(manifest.ref, version=other.version)) if other else None
    if live is None:
        return unproved_action(manifest, Action.CREATE)
    if uid_of(live) == scene.inventory.get(manifest.ref.identity, ""):
        return unproved_action(manifest, Action.UPDATE, live)
    words = f"{manifest.ref} exists already and cannot be adopted before its new version is served"
    return plan_foreign_object(manifest, live, objection_to_adoption(live, scene.options) or Objection(words))
