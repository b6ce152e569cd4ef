"""What apply would do to one object, asked of the API server itself by dry-run. Nothing is changed here.

What the server cannot be asked yet, because kind, namespace or role come along, is planned offline and says so. What
stands in the way of one object becomes part of the plan; only a server that does not answer is an error.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.api import MUST_NOT_EXIST
from provisioner.cluster.client.failures import is_immutable_field
from provisioner.cluster.compare import changes, cleaned, hidden, masked, share_texts, uid_of, version_of
from provisioner.cluster.drift import old_versions
from provisioner.cluster.drift.left_out import without_theirs
from provisioner.cluster.plan.expected_refusals import is_expected_refusal
from provisioner.cluster.plan.helm_releases import is_held_by, is_left_by_hook, losers, without_marks
from provisioner.cluster.plan.known import NO_DRY_RUN, PlanInputs, body_of, offline, reviewed_action, says, stopped
from provisioner.cluster.plan.own_webhooks import is_served_by_own, untried_words
from provisioner.cluster.plan.ownership import Objection, objection_to_adoption, present_owner
from provisioner.cluster.plan.replacing import refusal, said_of
from provisioner.cluster.plan.supposed import is_supposed, supposed
from provisioner.cluster.plan.unchanged import is_applied
from provisioner.cluster.tracking import LARGEST_TRACKING, Tracking, is_left_by
from provisioner.errors import (
    AlreadyExists,
    ClusterError,
    FieldConflict,
    InvalidObject,
    PreconditionFailed,
    TryLater,
    UnknownKind,
    Unreachable,
)
from provisioner.retention import LOSES_NOTHING
from provisioner.schema.fields import is_same
from provisioner.values import (
    Action,
    GroupKind,
    JsonObject,
    Manifest,
    ObjectRef,
    PlannedAction,
)

# An object that somebody changes between our read and our dry-run is looked at again, so often, and each time later: a
# workload that is being rolled out has many writers for a moment.
ATTEMPTS = 5
PAUSE_SECONDS = 0.1

_SECRET = GroupKind("", "Secret")
# An object that may be left out while its API is absent.
OPTIONAL, IS_OPTIONAL = f"{OWN_GROUP}/optional", "true"
# What is said of an object that may be adopted and was not tried (Options.may_try_foreign).
UNTRIED = "the requester is unknown, so the adoption was not tried: its result is known once it is written"
TAKEN_OVER = "it is taken over from its Helm release: Helm's part in the approved fields and its marks go"


def action_on(scene: PlanInputs, manifest: Manifest) -> PlannedAction:
    """The planned action of one object, its obstacle included."""
    ref = manifest.ref
    if _is_optional(scene, manifest) and _is_absent(scene, ref):
        return _left_out(manifest)
    if ref.namespace and ref.namespace in scene.new_namespaces:
        return offline(manifest, Action.CREATE)
    for attempt in range(ATTEMPTS):
        try:
            return _asked(scene, manifest, is_again=attempt > 0)
        except (PreconditionFailed, AlreadyExists):
            if attempt == ATTEMPTS - 1:
                raise TryLater(f"{ref} changes faster than it can be planned") from None
            time.sleep(PAUSE_SECONDS * (attempt + 1))
    raise AssertionError("unreachable")


def _left_out(manifest: Manifest) -> PlannedAction:
    ref = manifest.ref
    words = (
        f"{ref} is left out: it is optional, and the cluster serves no {ref.kind} in {ref.api_version}. It will be "
        f"created once API {ref.api_version} {ref.kind} appears while this approval lives, if exactly this comes of it"
    )
    return replace(offline(manifest, Action.SKIP), notes=(words,))


def _is_optional(scene: PlanInputs, manifest: Manifest) -> bool:
    """A hook never is: it runs once, so that there is no later at which it could still come."""
    is_said = says(manifest.body, OPTIONAL) == IS_OPTIONAL or manifest.ref.group_kind in scene.options.optional_kinds
    return is_said and manifest.hook is None


def _is_absent(scene: PlanInputs, ref: ObjectRef) -> bool:
    """Whether neither the cluster nor the bundle brings the kind in this version."""
    if ref.group_kind in scene.new_kinds:
        return False
    return scene.cluster.resource_of(ref.group, ref.version, ref.kind) is None


def _asked(scene: PlanInputs, manifest: Manifest, *, is_again: bool) -> PlannedAction:
    ref, ours = manifest.ref, scene.inventory.get(manifest.ref.identity, "")
    try:
        live = scene.live(ref, is_again=is_again)
    except UnknownKind as exc:
        if ref.group_kind in scene.new_kinds:
            return _of_new_version(scene, manifest)
        if _is_optional(scene, manifest):
            return _left_out(manifest)
        planned = offline(manifest, Action.CREATE)
        return planned if is_served_by_own(ref, scene.brought) else stopped(planned, exc)
    except ClusterError as exc:
        planned = offline(manifest, Action.UPDATE if ours else Action.CREATE)
        return planned if _is_of_new_scope(scene, ref) else stopped(planned, exc)
    except Unreachable as exc:
        if not (words := untried_words(exc, scene.webhooks)):
            raise
        planned = offline(manifest, Action.UPDATE if ours else Action.CREATE)
        return replace(planned, uid=ours, notes=(words,), server_words=exc.server_words)
    stands = reviewed_action(scene, ref, live)
    if stands and stands.action is Action.REPLACE:
        return _replacement(scene, manifest, stands)
    return stands or _planned_on(scene, manifest, live)


def _is_of_new_scope(scene: PlanInputs, ref: ObjectRef) -> bool:
    """Whether its CRD is made anew because its objects have a namespace by then, or have none any more."""
    served = scene.cluster.resource_of(ref.group, ref.version, ref.kind)
    is_other = served is not None and served.is_namespaced != bool(ref.namespace)
    return is_other and ref.group_kind in scene.new_kinds


def _planned_on(scene: PlanInputs, manifest: Manifest, live: dict[str, Any] | None) -> PlannedAction:
    """The action on an object in the state `live`."""
    ref, ours = manifest.ref, scene.inventory.get(manifest.ref.identity, "")
    if manifest.hook:
        return _hook_on(scene, manifest, live)
    if live is None:
        return _proved(scene, manifest, None)
    is_only_looked_at = is_supposed(scene, live, ours)
    if uid_of(live) != ours and not is_only_looked_at and (objection := _objection(scene, live)):
        return _in_the_way(scene, manifest, live, objection)
    if (live.get("metadata") or {}).get("deletionTimestamp"):
        words = f"{ref} is being deleted and waits for its finalizers"
        action = Action.UPDATE if uid_of(live) == ours else Action.ADOPT
        return replace(offline(manifest, action, live), problem=words, problem_code=PreconditionFailed.code)
    if is_only_looked_at:
        return _supposed(scene, manifest, live)
    if uid_of(live) != ours and is_held_by(live, scene.options.helm_release):
        return _taken_over(scene, manifest, live)
    if uid_of(live) != ours and not scene.options.may_try_foreign:
        return replace(offline(manifest, Action.ADOPT, live), notes=(UNTRIED,))
    return _unchanged(scene, manifest, live) if _is_settled(scene, manifest, live) else _proved(scene, manifest, live)


def _supposed(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    """What would come of somebody else's object, with its owner, whatever the API server says."""
    planned = replace(offline(manifest, Action.UPDATE, live), owner=present_owner(live))
    return _tried(scene, manifest, planned, lambda: supposed(scene, manifest, live))


def _in_the_way(scene: PlanInputs, manifest: Manifest, live: dict[str, Any], objection: Objection) -> PlannedAction:
    """Someone else's object that is not to be adopted, with its owner and, where a report is made of it, what would
    come of it if it were.

    All of that is for who may get the object (S09). It is tried under the terms of any other object that is not ours:
    not for who is unknown, and never a Secret. Where the API server cannot say it now, the report does not wait for it.
    """
    met = _foreign(manifest, live, objection)
    if not scene.options.tells_adoption:
        return met
    met = replace(met, owner=present_owner(live, scene.options.others))
    is_dying = bool((live.get("metadata") or {}).get("deletionTimestamp"))
    if manifest.ref.group_kind == _SECRET or is_dying or not scene.options.may_try_foreign:
        return met
    planned = offline(manifest, Action.ADOPT, live)
    try:
        found = _tried(scene, manifest, planned, lambda: supposed(scene, manifest, live))
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


def _tried(
    scene: PlanInputs, manifest: Manifest, planned: PlannedAction, ask: Callable[[], PlannedAction]
) -> PlannedAction:
    """What `ask` finds out from the API server of an object that is not ours, or `planned` with why nobody knows."""
    try:
        return ask()
    except (PreconditionFailed, AlreadyExists):
        raise
    except Unreachable as exc:
        if not (words := untried_words(exc, scene.webhooks)):
            raise
        return replace(planned, notes=(words,), server_words=exc.server_words)
    except ClusterError as exc:
        return _refused(scene, manifest, planned, exc)


def _taken_over(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    """The adoption of what a Helm release holds: the dry-run is forced, as the release's fields are handed over first.

    What another manager than the release's would lose by it is a conflict, as anywhere else. Of a Secret nothing is
    tried: that would tell whether its values are the same (S09).
    """
    if manifest.ref.group_kind == _SECRET or not scene.options.may_try_foreign:
        untried = PlannedAction(manifest.ref, Action.ADOPT, uid_of(live), version_of(live), None, hidden(manifest.body))
        return replace(untried, is_proved=False, notes=(TAKEN_OVER,))
    planned = offline(manifest, Action.ADOPT, live)
    return _tried(scene, manifest, planned, lambda: _without_helm(scene, manifest, live, planned))


def _without_helm(scene: PlanInputs, manifest: Manifest, live: dict[str, Any], planned: PlannedAction) -> PlannedAction:
    """What comes of what a release holds, or the conflict with others. Raises ClusterError where it is refused."""
    sent = _yielding(scene, manifest, live)
    body = body_of(sent, tracking=LARGEST_TRACKING, uid=uid_of(live), resource_version=version_of(live))
    result = scene.cluster.apply(body, field_manager=scene.field_manager, dry_run=True, force=True).object
    if others := losers(live, result, scene.field_manager):
        words = f"{manifest.ref}: fields of it belong to other managers than Helm"
        return stopped(planned, FieldConflict(words, status=409, server_words=", ".join(others)))
    before, after = masked(live, without_marks(result, scene.field_manager))
    notes = (TAKEN_OVER, *_left_words(manifest, sent))
    return replace(planned, before=before, after=after, is_proved=True, notes=notes)


def _hook_on(scene: PlanInputs, manifest: Manifest, live: dict[str, Any] | None) -> PlannedAction:
    """The run of a hook. What its own last run left is cleared without a word where nothing is lost with it.

    What holds data or other objects, and an object that stays and becomes a hook, is made anew as any other would be;
    anybody else's is met as any other is, but for what hooks of the release left that is taken over.
    """
    identity = manifest.ref.identity
    last, staying = scene.options.hooks.get(identity), scene.inventory.get(identity, "")
    if live is None:
        planned = _proved(scene, manifest, None)
        again = _rerun(scene, manifest)
        return replace(again, **_said(planned)) if last else planned
    is_left = last is not None and is_left_by(last, live) and uid_of(live) not in scene.options.others
    if is_left and uid_of(live) != staying and manifest.ref.group_kind in LOSES_NOTHING:
        return _replacement(scene, manifest, _rerun(scene, manifest))
    if is_left or uid_of(live) == staying:
        return _replacement(scene, manifest, offline(manifest, Action.REPLACE, live))
    is_of_release = is_left_by_hook(live, scene.options.helm_release) and uid_of(live) not in scene.options.others
    if not is_of_release and (objection := _objection(scene, live)):
        return _foreign(manifest, live, objection)
    # What somebody else's object holds is not told (S09).
    return _replacement(scene, manifest, replace(offline(manifest, Action.REPLACE, live), before=None))


def _rerun(scene: PlanInputs, manifest: Manifest) -> PlannedAction:
    """Shown beside the hook of the running content, and bound to no object: what is there may go by itself."""
    running = scene.before.get(manifest.ref.identity)
    before, after = masked(running.body if running else None, manifest.body)
    return PlannedAction(manifest.ref, Action.RERUN, before=before, after=after, is_proved=False)


def _said(planned: PlannedAction) -> dict[str, Any]:
    """What the API server said of a creation."""
    return {name: getattr(planned, name) for name in ("warnings", "problem", "problem_code", "notes", "server_words")}


def _is_settled(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> bool:
    """Whether an object of ours is as the running content has it, and so has this one: nothing would be written."""
    running = scene.before.get(manifest.ref.identity)
    if running is None or manifest.ref.group_kind in scene.new_kinds:
        return False
    is_ours = uid_of(live) == scene.inventory.get(manifest.ref.identity)
    return (
        is_ours
        and is_same(running.body, manifest.body)
        and is_applied(manifest.body, live, field_manager=scene.field_manager)
    )


def _unchanged(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    warnings = scene.options.warned.get(str(manifest.ref), ())
    shown, _ = masked(live, live) if manifest.ref.group_kind == _SECRET else (cleaned(live), None)
    if shown is not None:
        share_texts(shown, manifest.body)
    return PlannedAction(manifest.ref, Action.NONE, uid_of(live), version_of(live), shown, shown, warnings=warnings)


def _of_new_version(scene: PlanInputs, manifest: Manifest) -> PlannedAction:
    """An object in a version that its CRD is about to serve; it may exist already in another one."""
    other = scene.cluster.resource_of(manifest.ref.group, "", manifest.ref.kind)
    live = scene.cluster.get(replace(manifest.ref, version=other.version)) if other else None
    if live is None:
        return offline(manifest, Action.CREATE)
    if uid_of(live) == scene.inventory.get(manifest.ref.identity, ""):
        return offline(manifest, Action.UPDATE, live)
    words = f"{manifest.ref} exists already and cannot be adopted before its new version is served"
    return _foreign(manifest, live, _objection(scene, live) or Objection(words))


def _proved(
    scene: PlanInputs, manifest: Manifest, live: dict[str, Any] | None, sent: Manifest | None = None
) -> PlannedAction:
    """The action by a server-side dry-run; `live` is ours, or None for an object that does not exist.

    It is asked with tracking, as it is written with some: annotations are limited in size. `sent` is the part of the
    manifest to ask with, where another part is others' to write.
    """
    uid, version = (uid_of(live), version_of(live)) if live else ("", MUST_NOT_EXIST)
    tracking = Tracking.on(live or {})
    tracking = tracking if tracking.annotations else LARGEST_TRACKING
    body = body_of(sent or manifest, tracking=tracking, uid=uid, resource_version=version)
    is_provable = manifest.ref.group_kind not in scene.new_kinds
    is_ours = live is None or uid == scene.inventory.get(manifest.ref.identity, "")
    action = Action.CREATE if live is None else Action.UPDATE if is_ours else Action.ADOPT
    try:
        result = scene.cluster.apply(body, field_manager=scene.field_manager, dry_run=True)
    except (PreconditionFailed, AlreadyExists):
        raise
    except FieldConflict as exc:
        yielding = _yielding(scene, manifest, live) if live and sent is None else manifest
        if yielding.body == manifest.body:
            return stopped(offline(manifest, action, live), exc)
        return _proved(scene, manifest, live, yielding)
    except Unreachable as exc:
        if not (words := untried_words(exc, scene.webhooks)):
            raise
        return replace(offline(manifest, action, live), notes=(words,), server_words=exc.server_words)
    except ClusterError as exc:
        return _refused(scene, manifest, offline(manifest, action, live), exc)
    before, after = masked(live, result.object)
    if live and is_ours and _is_same(live, result.object, shown=(before, after)):
        action, after = Action.NONE, before
    _share(scene, manifest, before, after)
    return PlannedAction(
        manifest.ref,
        action,
        uid,
        version if live else "",
        before,
        after,
        is_provable,
        result.warnings,
        notes=tuple(_left_words(manifest, sent or manifest)),
    )


def _refused(scene: PlanInputs, manifest: Manifest, planned: PlannedAction, error: ClusterError) -> PlannedAction:
    """What is planned although the server refuses to try it, or the problem."""
    if not isinstance(error, InvalidObject):
        return planned if is_expected_refusal(manifest, error, scene.brought) else stopped(planned, error)
    if old_versions.is_of_old_version(error):
        return replace(planned, notes=(old_versions.WORDS,))
    if manifest.ref.group_kind in scene.new_kinds or NO_DRY_RUN in error.server_words:
        return planned
    is_replaceable = planned.action is Action.UPDATE and is_immutable_field(error)
    anew = replace(planned, action=Action.REPLACE)
    return _replacement(scene, manifest, anew) if is_replaceable else stopped(planned, error)


def _replacement(scene: PlanInputs, manifest: Manifest, planned: PlannedAction) -> PlannedAction:
    """An object to be deleted and made anew; a problem where only the first of that would be done.

    It is tried each time: nothing on the old object tells that the new one is refused now.
    """
    try:
        found = refusal(scene.cluster, manifest, field_manager=scene.field_manager)
    except Unreachable as exc:
        if not (words := untried_words(exc, scene.webhooks)):
            raise
        return replace(planned, notes=(words,), server_words=exc.server_words)
    if found is None or is_expected_refusal(manifest, found, scene.brought):
        return planned
    words = said_of(manifest.ref, found)
    return replace(planned, problem=words, problem_code=found.code, server_words=found.server_words)


def _yielding(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> Manifest:
    return without_theirs(scene.cluster, manifest, live, manager=scene.field_manager)


def _left_words(manifest: Manifest, sent: Manifest) -> list[str]:
    left = sorted(".".join(path) for path in changes(sent.body, manifest.body))
    return [f"{', '.join(left)} stays as it is: another controller writes it"] if left else []


def _share(scene: PlanInputs, manifest: Manifest, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
    running = scene.before.get(manifest.ref.identity)
    if before is not None and running is not None:
        share_texts(before, running.body)
    if after is not None and after is not before:
        share_texts(after, manifest.body)


def _is_same(live: JsonObject, result: JsonObject, *, shown: tuple[JsonObject | None, JsonObject | None]) -> bool:
    """Whether nothing changes; what is shown of anything but a Secret is all that could."""
    if ObjectRef.of(live).group_kind == _SECRET:
        return is_same(cleaned(live), cleaned(result))
    return is_same(shown[0], shown[1])


def _objection(scene: PlanInputs, live: dict[str, Any]) -> Objection | None:
    return objection_to_adoption(live, scene.options)


def _foreign(manifest: Manifest, live: dict[str, Any], objection: Objection) -> PlannedAction:
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
