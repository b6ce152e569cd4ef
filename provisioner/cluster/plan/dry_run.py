"""What apply would do, object by object, asked of the API server itself by dry-run. Nothing is changed here.

What the server cannot be asked yet, because kind, namespace or role come along, is planned offline and says so. What
stands in the way of one object becomes part of the plan; only a server that does not answer is an error.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import attrgetter
from typing import Any

from provisioner.cluster.bulk_read import PARALLEL, read_many
from provisioner.cluster.client.api import MUST_NOT_EXIST, Cluster
from provisioner.cluster.client.failures import is_immutable_field
from provisioner.cluster.compare import changes, cleaned, hidden, masked, share_texts, uid_of, version_of
from provisioner.cluster.drift import old_versions
from provisioner.cluster.drift.left_out import without_theirs
from provisioner.cluster.order import created_namespaces, defined_kinds, phases, served_versions
from provisioner.cluster.plan.expected_refusals import is_expected_refusal
from provisioner.cluster.plan.known import Options, Scene, offline, says, standing, stopped
from provisioner.cluster.plan.own_webhooks import is_served_by_own, names_of, untried_words
from provisioner.cluster.plan.ownership import Objection, objection_to_adoption
from provisioner.cluster.plan.pruning import deletions, leaving
from provisioner.cluster.plan.replacing import refusal, said_of
from provisioner.cluster.plan.unchanged import is_applied
from provisioner.cluster.tracking import LARGEST_TRACKING, NO_TRACKING, Tracking
from provisioner.errors import (
    AlreadyExists,
    ClusterError,
    EmptyBundle,
    FieldConflict,
    InvalidObject,
    PreconditionFailed,
    TryLater,
    UnknownKind,
    Unreachable,
)
from provisioner.schema.fields import is_same
from provisioner.values import (
    Action,
    Content,
    Difference,
    GroupKind,
    JsonObject,
    Manifest,
    ObjectIdentity,
    ObjectRef,
    Plan,
    PlannedAction,
)

# An object that somebody changes between our read and our dry-run is looked at again, so often, and each time later: a
# workload that is being rolled out has many writers for a moment.
ATTEMPTS = 5
PAUSE_SECONDS = 0.1

_NAMESPACE, _SECRET = GroupKind("", "Namespace"), GroupKind("", "Secret")
_DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
# An object that may be left out while its API is absent.
OPTIONAL, IS_OPTIONAL = "core.rukpak.io/optional", "true"
# What is said of an object that may be adopted and was not tried (Options.may_try_foreign).
UNTRIED = "nobody knows who asked, so the adoption was not tried: what comes of it is known once it is written"
# A webhook with side effects refuses dry-runs; that says nothing about the object.
NO_DRY_RUN = "does not support dry run"


def plan(  # noqa: PLR0913 -- each by its name
    cluster: Cluster,
    content: Content,
    *,
    inventory: Mapping[ObjectIdentity, str],
    previous: Content | None,
    field_manager: str,
    options: Options | None = None,
) -> Plan:
    """The plan for `content` as the identity of `cluster`: its objects in the order of apply, then the deletions.

    `inventory` is what is ours: the uid by `ref.identity`. What it holds and `content` has not is deleted; `previous`
    only tells in which version those objects were written. An object that exists and is not ours is an ADOPT, with a
    problem unless `options` let it be adopted. Raises TryLater where the server does not answer, DependencyCycle where
    no order of the objects is possible, EmptyBundle for no objects and no removal.
    """
    options = options or Options()
    if not content.manifests and not options.is_removal:
        raise EmptyBundle(
            f"the content has no object, and {len(inventory)} that are ours would go; nobody asked for it"
        )
    brought = frozenset(one.ref.identity for one in content.manifests)
    before = {one.ref.identity: one for one in (previous.manifests if previous else ())}
    going = leaving(inventory, content, before)
    known = read_many(cluster, [*(one.ref for one in content.manifests), *going])
    reviewed = {one.ref.identity: one for one in (options.reviewed.actions if options.reviewed else ())}
    webhooks = names_of((*content.manifests, *before.values()))
    scene = Scene(cluster, inventory, field_manager, options, known, before, reviewed, webhooks, brought=brought)
    first = [one for one in content.manifests if one.ref.group_kind in {_NAMESPACE, _DEFINITION}]
    actions = _in_parallel(scene, first)
    scene = _after(scene, first, actions)
    actions |= _in_parallel(scene, [one for one in content.manifests if one.ref.identity not in actions])
    ordered = [actions[identity] for identity in _order(content, reviewed)]
    ordered += deletions(scene, going)
    return Plan(tuple(ordered), plan_digest(ordered))


def _order(content: Content, reviewed: Iterable[ObjectIdentity]) -> list[ObjectIdentity]:
    """The order in which a plan is told: the reviewed one's, which found no circle in this content, else of apply."""
    wished = {one.ref.identity for one in content.manifests}
    known = [identity for identity in reviewed if identity in wished]
    if len(known) == len(wished):
        return known
    return [one.ref.identity for phase in phases(content.manifests) for one in phase.manifests]


def plan_digest(actions: Iterable[PlannedAction]) -> str:
    """sha256 over what will be done to which object, not over values that the cluster moves by itself (S03)."""
    entries = sorted((str(one.action), *one.ref.identity, one.uid) for one in actions)
    digest = hashlib.sha256()
    for entry in entries:
        for part in entry:
            encoded = part.encode()
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return f"sha256:{digest.hexdigest()}"


def is_within(now: Iterable[PlannedAction], reviewed: Iterable[PlannedAction]) -> bool:
    """Whether carrying out `reviewed` is, by now, at most what `now` says: the same on each object, or nothing any more
    where an object was to be updated (S04).

    Anything else is more, or something else: an object that is in one of the two plans only, an update of what was to
    stay as it is, another uid.
    """
    before = {one.ref.identity: (one.action, one.uid) for one in reviewed}
    after = {one.ref.identity: (one.action, one.uid) for one in now}
    moved = {identity for identity, did in after.items() if before.get(identity) != did}
    return before.keys() == after.keys() and all(
        after[one] == (Action.NONE, before[one][1]) and before[one][0] is Action.UPDATE for one in moved
    )


def differences(now: Iterable[PlannedAction], reviewed: Iterable[PlannedAction]) -> list[Difference]:
    """What is planned otherwise than it was reviewed, by object.

    Of an object that was deleted and made again under its name both may be the same action, and `now` says so.
    """
    before, after = ({one.ref.identity: one for one in actions} for actions in (reviewed, now))
    found = []
    for identity, either in {**before, **after}.items():
        was, will = before.get(identity), after.get(identity)
        if was and will and (was.action, was.uid) == (will.action, will.uid):
            continue
        words = str(will.action) if will else ""
        if was and will and was.action is will.action:
            words += ", of an object that was made again"
        found.append(Difference(str(either.ref), str(was.action) if was else "", words))
    return sorted(found, key=attrgetter("object"))


def body_of(
    manifest: Manifest, *, tracking: Tracking = NO_TRACKING, uid: str = "", resource_version: str = ""
) -> dict[str, Any]:
    """The object to send: the content's, with its preconditions and our tracking."""
    meta = tracking.suited_to(manifest.body).put_on(manifest.body.get("metadata") or {})
    if uid:
        meta["uid"] = uid
    if resource_version:
        meta["resourceVersion"] = resource_version
    return {**manifest.body, "metadata": meta}


def _after(scene: Scene, first: list[Manifest], actions: Mapping[ObjectIdentity, PlannedAction]) -> Scene:
    changing = [one for one in first if actions[one.ref.identity].action is not Action.NONE]
    creating = [one for one in first if actions[one.ref.identity].action is Action.CREATE]
    return replace(
        scene,
        new_kinds=defined_kinds(changing),
        new_versions=served_versions(changing),
        new_namespaces=created_namespaces(creating),
    )


def _in_parallel(scene: Scene, manifests: list[Manifest]) -> dict[ObjectIdentity, PlannedAction]:
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        found = pool.map(lambda one: _action(scene, one), manifests)
        return {manifest.ref.identity: action for manifest, action in zip(manifests, found, strict=True)}


def _action(scene: Scene, manifest: Manifest) -> PlannedAction:
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


def _is_optional(scene: Scene, manifest: Manifest) -> bool:
    return says(manifest.body, OPTIONAL) == IS_OPTIONAL or manifest.ref.group_kind in scene.options.optional_kinds


def _is_absent(scene: Scene, ref: ObjectRef) -> bool:
    """Whether neither the cluster nor the bundle brings the kind in this version."""
    if ref.group_kind in scene.new_kinds:
        return False
    return scene.cluster.resource_of(ref.group, ref.version, ref.kind) is None


def _asked(scene: Scene, manifest: Manifest, *, is_again: bool) -> PlannedAction:
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
    stands = standing(scene, ref, live)
    if stands and stands.action is Action.REPLACE:
        return _replacement(scene, manifest, stands)
    return stands or _planned_on(scene, manifest, live)


def _is_of_new_scope(scene: Scene, ref: ObjectRef) -> bool:
    """Whether its CRD is made anew because its objects have a namespace by then, or have none any more."""
    served = scene.cluster.resource_of(ref.group, ref.version, ref.kind)
    is_other = served is not None and served.is_namespaced != bool(ref.namespace)
    return is_other and ref.group_kind in scene.new_kinds


def _planned_on(scene: Scene, manifest: Manifest, live: dict[str, Any] | None) -> PlannedAction:
    """The action on an object in the state `live`."""
    ref, ours = manifest.ref, scene.inventory.get(manifest.ref.identity, "")
    if live is None:
        return _proved(scene, manifest, None)
    if uid_of(live) != ours and (objection := _objection(scene, live)):
        return _foreign(manifest, live, objection)
    if (live.get("metadata") or {}).get("deletionTimestamp"):
        words = f"{ref} is being deleted and waits for its finalizers"
        action = Action.UPDATE if uid_of(live) == ours else Action.ADOPT
        return replace(offline(manifest, action, live), problem=words, problem_code=PreconditionFailed.code)
    if uid_of(live) != ours and not scene.options.may_try_foreign:
        return replace(offline(manifest, Action.ADOPT, live), notes=(UNTRIED,))
    return _unchanged(scene, manifest, live) if _is_settled(scene, manifest, live) else _proved(scene, manifest, live)


def _is_settled(scene: Scene, manifest: Manifest, live: dict[str, Any]) -> bool:
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


def _unchanged(scene: Scene, manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    warnings = scene.options.warned.get(str(manifest.ref), ())
    shown, _ = masked(live, live) if manifest.ref.group_kind == _SECRET else (cleaned(live), None)
    if shown is not None:
        share_texts(shown, manifest.body)
    return PlannedAction(manifest.ref, Action.NONE, uid_of(live), version_of(live), shown, shown, warnings=warnings)


def _of_new_version(scene: Scene, manifest: Manifest) -> PlannedAction:
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
    scene: Scene, manifest: Manifest, live: dict[str, Any] | None, sent: Manifest | None = None
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


def _refused(scene: Scene, manifest: Manifest, planned: PlannedAction, error: ClusterError) -> PlannedAction:
    """What is planned although the server refuses to try it, or the problem."""
    if not isinstance(error, InvalidObject):
        return planned if is_expected_refusal(manifest, error, scene.brought) else stopped(planned, error)
    if old_versions.is_of_old_version(error):
        return replace(planned, notes=(old_versions.WORDS,))
    if manifest.ref.group_kind in scene.new_kinds or NO_DRY_RUN in error.server_words:
        return planned
    is_replaceable = planned.action is Action.UPDATE and is_immutable_field(error)
    return _replacement(scene, manifest, planned) if is_replaceable else stopped(planned, error)


def _replacement(scene: Scene, manifest: Manifest, planned: PlannedAction) -> PlannedAction:
    """An object to be deleted and made anew; a problem where only the first of that would be done.

    It is tried each time: nothing on the old object tells that the new one is refused by now.
    """
    planned = replace(planned, action=Action.REPLACE)
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


def _yielding(scene: Scene, manifest: Manifest, live: dict[str, Any]) -> Manifest:
    return without_theirs(scene.cluster, manifest, live, manager=scene.field_manager)


def _left_words(manifest: Manifest, sent: Manifest) -> list[str]:
    left = sorted(".".join(path) for path in changes(sent.body, manifest.body))
    return [f"{', '.join(left)} stays as it is: another controller writes it"] if left else []


def _share(scene: Scene, manifest: Manifest, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
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


def _objection(scene: Scene, live: dict[str, Any]) -> Objection | None:
    return objection_to_adoption(live, scene.options.collision_protection, scene.options.others)


def _foreign(manifest: Manifest, live: dict[str, Any], objection: Objection) -> PlannedAction:
    """Somebody else's object. Its state is not part of the plan: who may see it is not ours to say (S09)."""
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
