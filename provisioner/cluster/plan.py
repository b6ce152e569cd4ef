"""What apply would do, object by object, asked of the API server itself by dry-run. Nothing is changed here.

What the server cannot be asked yet, because kind, namespace or role come along, is planned offline and says so. What
stands in the way of one object becomes part of the plan; only a server that does not answer is an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.cluster.api import MUST_NOT_EXIST, Cluster
from provisioner.cluster.compare import NONCE, cleaned, hidden, masked, nonce_of, uid_of, version_of
from provisioner.cluster.failures import is_immutable_field
from provisioner.cluster.inventory import ObjectIdentity
from provisioner.cluster.live import Live, read_many
from provisioner.cluster.order import created_namespaces, defined_kinds, deletion_phases, is_system_namespace, phases
from provisioner.cluster.ownership import objection_to_adoption
from provisioner.cluster.unchanged import is_applied
from provisioner.errors import (
    AlreadyExists,
    ClusterError,
    EmptyBundle,
    InvalidObject,
    PreconditionFailed,
    TryLater,
    UnknownKind,
)
from provisioner.values import (
    Action,
    CollisionProtection,
    Content,
    GroupKind,
    JsonObject,
    Manifest,
    ObjectRef,
    Plan,
    PlannedAction,
)

PARALLEL = 8
# An object that somebody changes between our read and our dry-run is looked at again, so often.
ATTEMPTS = 5

_NAMESPACE = GroupKind("", "Namespace")
_DEFINITION = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_RBAC = "rbac.authorization.k8s.io"
_ROLES = frozenset({GroupKind(_RBAC, "Role"), GroupKind(_RBAC, "ClusterRole")})
_BINDINGS = frozenset({GroupKind(_RBAC, "RoleBinding"), GroupKind(_RBAC, "ClusterRoleBinding")})
NOT_FOUND = 404
# An object that may be left out while its API is absent.
OPTIONAL, IS_OPTIONAL = "core.rukpak.io/optional", "true"
# An object that stays when its content has it no more.
PRUNE, KEEP = "core.rukpak.io/prune", "false"
# A webhook with side effects refuses dry-runs; that says nothing about the object.
NO_DRY_RUN = "does not support dry run"


@dataclass(frozen=True, slots=True)
class Options:
    """How to plan.

    `others` are the names of other deployments by the uid of each object that they hold. `is_removal`: everything is
    meant to go, so that a content without any object is no mistake. Objects of `optional_kinds` are left out while the
    cluster does not serve them, as are those that say so themselves.
    """

    collision_protection: CollisionProtection = CollisionProtection.PREVENT
    others: Mapping[str, str] = field(default_factory=dict)
    is_removal: bool = False
    optional_kinds: frozenset[GroupKind] = frozenset()


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
    roles = frozenset(one.ref.identity for one in content.manifests if one.ref.group_kind in _ROLES)
    before = {one.ref.identity: one for one in (previous.manifests if previous else ())}
    leaving = _leaving(inventory, content, before)
    known = read_many(cluster, [*(one.ref for one in content.manifests), *leaving])
    scene = _Scene(cluster, inventory, field_manager, options, known, before, roles=roles)
    first = [one for one in content.manifests if one.ref.group_kind in {_NAMESPACE, _DEFINITION}]
    actions = _in_parallel(scene, first)
    scene = _after(scene, first, actions)
    actions |= _in_parallel(scene, [one for one in content.manifests if one.ref.identity not in actions])
    ordered = [actions[one.ref.identity] for phase in phases(content.manifests) for one in phase.manifests]
    ordered += _deletions(scene, leaving)
    return Plan(tuple(ordered), plan_digest(ordered))


def plan_digest(actions: Iterable[PlannedAction]) -> str:
    """sha256 over what will be done to which object, not over values that the cluster moves by itself (S03)."""
    entries = sorted((str(one.action), *one.ref.identity, one.uid) for one in actions)
    digest = hashlib.sha256()
    for entry in entries:
        for part in entry:
            encoded = part.encode()
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return f"sha256:{digest.hexdigest()}"


def body_of(manifest: Manifest, *, nonce: str = "", uid: str = "", resource_version: str = "") -> dict[str, Any]:
    """The object to send: the content's, with its preconditions and, if given, our nonce."""
    meta = dict(manifest.body.get("metadata") or {})
    if nonce:
        meta["annotations"] = {**(meta.get("annotations") or {}), NONCE: nonce}
    if uid:
        meta["uid"] = uid
    if resource_version:
        meta["resourceVersion"] = resource_version
    return {**manifest.body, "metadata": meta}


@dataclass(frozen=True, slots=True)
class _Scene:
    """What is known while planning: what was there at the beginning, what runs (`before`), and the kinds, namespaces
    and roles that this bundle is going to make or change."""

    cluster: Cluster
    inventory: Mapping[ObjectIdentity, str]
    field_manager: str
    options: Options
    known: Live
    before: Mapping[ObjectIdentity, Manifest]
    new_kinds: frozenset[GroupKind] = frozenset()
    new_namespaces: frozenset[str] = field(default_factory=frozenset)
    roles: frozenset[ObjectIdentity] = frozenset()

    def live(self, ref: ObjectRef, *, is_again: bool = False) -> dict[str, Any] | None:
        """The object, as it was listed if it was; `is_again`: that has proved out of date."""
        if not is_again and ref.identity in self.known:
            return self.known[ref.identity]
        return self.cluster.get(ref)


def _after(scene: _Scene, first: list[Manifest], actions: Mapping[ObjectIdentity, PlannedAction]) -> _Scene:
    changing = [one for one in first if actions[one.ref.identity].action is not Action.NONE]
    creating = [one for one in first if actions[one.ref.identity].action is Action.CREATE]
    return replace(scene, new_kinds=defined_kinds(changing), new_namespaces=created_namespaces(creating))


def _in_parallel(scene: _Scene, manifests: list[Manifest]) -> dict[ObjectIdentity, PlannedAction]:
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        found = pool.map(lambda one: _action(scene, one), manifests)
        return {manifest.ref.identity: action for manifest, action in zip(manifests, found, strict=True)}


def _action(scene: _Scene, manifest: Manifest) -> PlannedAction:
    """The planned action of one object, its obstacle included."""
    ref = manifest.ref
    if _is_optional(scene, manifest) and _is_absent(scene, ref):
        return _left_out(manifest)
    if ref.namespace and ref.namespace in scene.new_namespaces:
        return _offline(manifest, Action.CREATE)
    for attempt in range(ATTEMPTS):
        try:
            return _asked(scene, manifest, is_again=attempt > 0)
        except (PreconditionFailed, AlreadyExists):
            if attempt == ATTEMPTS - 1:
                raise TryLater(f"{ref} changes faster than it can be planned") from None
    raise AssertionError("unreachable")


def _left_out(manifest: Manifest) -> PlannedAction:
    ref = manifest.ref
    words = f"{ref} is left out: it is optional, and the cluster serves no {ref.kind} in {ref.api_version}"
    return replace(_offline(manifest, Action.SKIP), warnings=(words,))


def _is_optional(scene: _Scene, manifest: Manifest) -> bool:
    return _says(manifest.body, OPTIONAL) == IS_OPTIONAL or manifest.ref.group_kind in scene.options.optional_kinds


def _is_absent(scene: _Scene, ref: ObjectRef) -> bool:
    """Whether neither the cluster nor the bundle brings the kind in this version."""
    if ref.group_kind in scene.new_kinds:
        return False
    return scene.cluster.resource_of(ref.group, ref.version, ref.kind) is None


def _says(obj: JsonObject, annotation: str) -> str:
    return str(((obj.get("metadata") or {}).get("annotations") or {}).get(annotation) or "")


def _asked(scene: _Scene, manifest: Manifest, *, is_again: bool) -> PlannedAction:
    ref, ours = manifest.ref, scene.inventory.get(manifest.ref.identity, "")
    try:
        live = scene.live(ref, is_again=is_again)
    except UnknownKind as exc:
        if ref.group_kind in scene.new_kinds:
            return _of_new_version(scene, manifest)
        if _is_optional(scene, manifest):
            return _left_out(manifest)
        return _stopped(_offline(manifest, Action.CREATE), exc)
    except ClusterError as exc:
        return _stopped(_offline(manifest, Action.UPDATE if ours else Action.CREATE), exc)
    if live is None:
        return _proved(scene, manifest, None)
    if uid_of(live) != ours and (words := _objection(scene, live)):
        return _foreign(manifest, live, words)
    if (live.get("metadata") or {}).get("deletionTimestamp"):
        words = f"{ref} is being deleted and waits for its finalizers"
        action = Action.UPDATE if uid_of(live) == ours else Action.ADOPT
        return replace(_offline(manifest, action, live), problem=words, problem_code=PreconditionFailed.code)
    return _unchanged(manifest, live) if _is_settled(scene, manifest, live) else _proved(scene, manifest, live)


def _is_settled(scene: _Scene, manifest: Manifest, live: dict[str, Any]) -> bool:
    """Whether an object of ours is as the running content has it, and so has this one: nothing would be written."""
    running = scene.before.get(manifest.ref.identity)
    if running is None or manifest.ref.group_kind in scene.new_kinds:
        return False
    is_same = uid_of(live) == scene.inventory.get(manifest.ref.identity) and running.body == manifest.body
    return is_same and is_applied(manifest.body, live, field_manager=scene.field_manager)


def _unchanged(manifest: Manifest, live: dict[str, Any]) -> PlannedAction:
    before, after = masked(live, live)
    return PlannedAction(manifest.ref, Action.NONE, uid_of(live), version_of(live), before, after)


def _of_new_version(scene: _Scene, manifest: Manifest) -> PlannedAction:
    """An object in a version that its CRD is about to serve; it may exist already in another one."""
    other = scene.cluster.resource_of(manifest.ref.group, "", manifest.ref.kind)
    live = scene.cluster.get(replace(manifest.ref, version=other.version)) if other else None
    if live is None:
        return _offline(manifest, Action.CREATE)
    if uid_of(live) == scene.inventory.get(manifest.ref.identity, ""):
        return _offline(manifest, Action.UPDATE, live)
    words = f"{manifest.ref} exists already and cannot be adopted before its new version is served"
    return _foreign(manifest, live, _objection(scene, live) or words)


def _proved(scene: _Scene, manifest: Manifest, live: dict[str, Any] | None) -> PlannedAction:
    """The action by a server-side dry-run; `live` is ours, or None for an object that does not exist."""
    uid, version, nonce = (uid_of(live), version_of(live), nonce_of(live)) if live else ("", MUST_NOT_EXIST, "")
    body = body_of(manifest, nonce=nonce, uid=uid, resource_version=version)
    is_provable = manifest.ref.group_kind not in scene.new_kinds
    is_ours = live is None or uid == scene.inventory.get(manifest.ref.identity, "")
    action = Action.CREATE if live is None else Action.UPDATE if is_ours else Action.ADOPT
    try:
        result = scene.cluster.apply(body, field_manager=scene.field_manager, dry_run=True)
    except (PreconditionFailed, AlreadyExists):
        raise
    except InvalidObject as exc:
        planned = _offline(manifest, action, live)
        if not is_provable or NO_DRY_RUN in str(exc):
            return planned
        is_replaceable = action is Action.UPDATE and is_immutable_field(exc)
        return replace(planned, action=Action.REPLACE) if is_replaceable else _stopped(planned, exc)
    except ClusterError as exc:
        planned = _offline(manifest, action, live)
        return planned if exc.status == NOT_FOUND and _role_of(manifest) in scene.roles else _stopped(planned, exc)
    if live and is_ours and cleaned(live) == cleaned(result.object):
        action = Action.NONE
    before, after = masked(live, result.object)
    return PlannedAction(
        manifest.ref,
        action,
        uid,
        version if live else "",
        before,
        after,
        is_provable,
        result.warnings,
    )


def _role_of(manifest: Manifest) -> ObjectIdentity | None:
    """The role that a binding names; the server looks for it before it lets anybody bind it. None for anything else."""
    role = manifest.body.get("roleRef")
    if manifest.ref.group_kind not in _BINDINGS or not isinstance(role, Mapping):
        return None
    kind = str(role.get("kind") or "")
    namespace = manifest.ref.namespace if kind == "Role" else ""
    return (_RBAC, kind, namespace, str(role.get("name") or ""))


def _offline(manifest: Manifest, action: Action, live: dict[str, Any] | None = None) -> PlannedAction:
    """A planned action with the content's own words as the result, because the server could not be asked."""
    before, after = masked(live, manifest.body)
    uid, version = (uid_of(live), version_of(live)) if live else ("", "")
    return PlannedAction(manifest.ref, action, uid, version, before, after, is_proved=False)


def _stopped(planned: PlannedAction, error: ClusterError) -> PlannedAction:
    return replace(planned, is_proved=False, problem=str(error), problem_code=error.code)


def _objection(scene: _Scene, live: dict[str, Any]) -> str:
    return objection_to_adoption(live, scene.options.collision_protection, scene.options.others)


def _foreign(manifest: Manifest, live: dict[str, Any], words: str) -> PlannedAction:
    """Somebody else's object. Its state is not part of the plan: who may see it is not ours to say (S09)."""
    return PlannedAction(
        manifest.ref,
        Action.ADOPT,
        uid_of(live),
        version_of(live),
        None,
        hidden(manifest.body),
        is_proved=False,
        problem=words,
        problem_code=AlreadyExists.code,
    )


def _leaving(
    inventory: Mapping[ObjectIdentity, str], content: Content, before: Mapping[ObjectIdentity, Manifest]
) -> list[ObjectRef]:
    """What is ours and not in the content, in the order in which it goes."""
    wished = {one.ref.identity for one in content.manifests}
    refs = [
        ObjectRef(identity[0], before[identity].ref.version if identity in before else "", *identity[1:])
        for identity in inventory
        if identity not in wished
    ]
    return [ref for phase in deletion_phases(refs) for ref in phase.refs]


def _deletions(scene: _Scene, leaving: list[ObjectRef]) -> list[PlannedAction]:
    with ThreadPoolExecutor(max_workers=PARALLEL) as pool:
        return list(pool.map(lambda ref: _deletion(scene, ref), leaving))


def _deletion(scene: _Scene, ref: ObjectRef) -> PlannedAction:
    """The deletion of one object of ours. One that is gone is planned too: only the inventory still holds it.

    What says of itself that it is to be kept, as reviewed or as it is now, is only let go.
    """
    ours = scene.inventory[ref.identity]
    planned = PlannedAction(ref, Action.DELETE, ours)
    if is_system_namespace(ref):
        return replace(
            planned, is_proved=False, problem=f"{ref} belongs to Kubernetes itself", problem_code="forbidden"
        )
    try:
        ref = _in_served_version(scene.cluster, ref)
        planned = replace(planned, ref=ref)
        live = scene.live(ref)
        if live is None:
            return planned
        if uid_of(live) != ours:
            return _let_go(planned, f"{ref} was made again by somebody else and stays")
        running = scene.before.get(ref.identity)
        if _is_kept(live) or (running and _is_kept(running.body)):
            return _let_go(planned, f"{ref} stays, because it says {PRUNE}: {KEEP}; from now on nobody looks after it")
        scene.cluster.delete(ref, uid=ours, dry_run=True)
    except UnknownKind:
        return planned  # with the kind its objects went
    except PreconditionFailed as exc:
        raise TryLater(f"{ref} changes faster than it can be planned") from exc
    except ClusterError as exc:
        return _stopped(planned, exc)
    before, _ = masked(live, None)
    return replace(planned, resource_version=version_of(live), before=before)


def _let_go(planned: PlannedAction, words: str) -> PlannedAction:
    return replace(planned, action=Action.NONE, warnings=(words,))


def _is_kept(obj: JsonObject) -> bool:
    return _says(obj, PRUNE) == KEEP


def _in_served_version(cluster: Cluster, ref: ObjectRef) -> ObjectRef:
    """`ref` in its own version if that is still served, else in the preferred one."""
    found = cluster.resource_of(ref.group, ref.version, ref.kind) or cluster.resource_of(ref.group, "", ref.kind)
    return replace(ref, version=found.version) if found else ref
