"""One object put to the API server by dry-run: what comes of it, or what is planned although it cannot say so.

An update that is refused for a field that cannot change says nothing about a creation: admission policies and webhooks
are asked only about what passed validation, and of a creation other rights are needed. So an object that has to be made
anew is tried beside the old one, under another name, and what is refused is a problem while the old one is still there.
What only the trial could meet proves nothing: that its name is another (rights by name, names that mean something or
that the object itself repeats), and that the old object is still there (its share of a quota, its addresses and ports).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.cluster import field_owners
from provisioner.cluster.annotations import LARGEST_TRACKING, Tracking, keep_words
from provisioner.cluster.client.api import MUST_NOT_EXIST, ClusterClient
from provisioner.cluster.client.failures import is_immutable_field, is_immutable_value
from provisioner.cluster.compare import changes, cleaned, masked, share_texts, version_of
from provisioner.cluster.drift import without_theirs
from provisioner.cluster.order import defined_kinds
from provisioner.cluster.plan.inputs import (
    NO_DRY_RUN,
    PlanInputs,
    body_of,
    unproved_action,
    untried_words,
    with_problem,
)
from provisioner.errors import (
    AlreadyExists,
    ClusterError,
    FieldConflict,
    Forbidden,
    InvalidObject,
    PreconditionFailed,
    UnknownKind,
    Unreachable,
)
from provisioner.json_values import mapping, uid_of
from provisioner.retention import SECRET, may_be_remade
from provisioner.schema.fields import is_same
from provisioner.values import Action, GroupKind, Manifest, ObjectIdentity, ObjectRef, PlannedAction

# Their names say what they are, so that under another name they are something else.
_NAMED_BY_CONTENT = frozenset(
    {
        GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),
        GroupKind("apiregistration.k8s.io", "APIService"),
        GroupKind("", "Namespace"),
        GroupKind("", "Node"),
    }
)
# Somebody's server answers so for the object that is still there (seen on 1.36.3).
_OF_THE_OLD_ONE = re.compile(
    r"exceeded quota|already allocated|is already in use|only one PriorityClass can be marked as|globalDefault"
    r"|does not support dry run"
)
# A rule of a CRD or a policy that says so is about the name: "config is a singleton, .metadata.name must be 'cluster'".
_OF_THE_NAME = re.compile(r"metadata\.name\b")
# A right to create cannot be narrowed to names; any other can.
_BY_NAME = re.compile(r"cannot (?!create )[a-z]+ resource")
_TAIL = 8
_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def creation_refusal(cluster: ClusterClient, manifest: Manifest, *, field_manager: str) -> ClusterError | None:
    """Why the API server would not create the object as the identity of `cluster`; None where it would, or where nobody
    can tell while the old one is there. Raises Unreachable where it, or a webhook, does not answer.
    """
    if manifest.ref.group_kind in _NAMED_BY_CONTENT:
        return None
    try:
        meta = dict(manifest.body.get("metadata") or {})
        cluster.apply(
            {
                **manifest.body,
                "metadata": {**meta, "name": other_name(manifest.ref.name), "resourceVersion": MUST_NOT_EXIST},
            },
            field_manager=field_manager,
            dry_run=True,
        )
    except ClusterError as exc:
        return None if _is_of_the_trial(manifest.ref, exc) else exc
    return None


def other_name(name: str) -> str:
    """Another name as long as `name`, with the same beginning where it is long enough: any that is valid stays so."""
    length = min(len(name), _TAIL)
    letters = hashlib.sha256(name.encode()).hexdigest().translate(_LETTERS)
    tails = (letters[start : start + length] for start in range(len(letters) - length))
    return name[: len(name) - length] + next(tail for tail in tails if tail != name[len(name) - length :])


def refusal_words(ref: ObjectRef, error: ClusterError) -> str:
    """The problem in words."""
    return (
        f"{ref} has to be deleted to be made anew, and would then be refused; it was tried as {other_name(ref.name)}: "
        f"{error}. If that is only so because the old one is there, or because of that name, delete it yourself first"
    )


def _is_of_the_trial(ref: ObjectRef, error: ClusterError) -> bool:
    if isinstance(error, AlreadyExists | PreconditionFailed | FieldConflict | UnknownKind):
        return True
    if _OF_THE_OLD_ONE.search(error.server_words) or _OF_THE_NAME.search(error.server_words):
        return True
    if isinstance(error, Forbidden):
        # Of a Secret the server's words are not kept, but for its authorizer's.
        is_unsaid = ref.group_kind == SECRET and " cannot " not in str(error)
        return is_unsaid or bool(_BY_NAME.search(error.in_full))
    # A field may be refused for what the object is called here, such as a label of a Job that repeats its name.
    # Policies and webhooks name no field; their words may hold the name for any reason.
    quoted = re.compile(rf"[\"']{re.escape(other_name(ref.name))}[\"']")
    causes = error.details.get("causes")
    for cause in causes if isinstance(causes, list) else []:
        field = str(cause.get("field") or "") if isinstance(cause, dict) else ""
        if field.startswith("metadata.name") or (field and quoted.search(str(cause.get("message") or ""))):
            return True
    return False


NOT_FOUND = 404
POD = GroupKind("", "Pod")

_BINDINGS = frozenset({GroupKind(RBAC_GROUP, "RoleBinding"), GroupKind(RBAC_GROUP, "ClusterRoleBinding")})


def is_expected_refusal(manifest: Manifest, error: ClusterError, brought: Collection[ObjectIdentity]) -> bool:
    """Whether `error` only misses one of `brought`: the role of a binding; the account or a class of a pod."""
    ref = manifest.ref
    if ref.group_kind in _BINDINGS:  # the server looks for the role before it lets anybody bind it
        role = mapping(manifest.body.get("roleRef"))
        kind = str(role.get("kind") or "")
        named = (RBAC_GROUP, kind, ref.namespace if kind == "Role" else "", str(role.get("name") or ""))
        return error.status == NOT_FOUND and named in brought
    if ref.group_kind != POD or not isinstance(error, Forbidden):
        return False
    # What admission looks for, with its words where it does not find it (seen on 1.36.3).
    spec = mapping(manifest.body.get("spec"))
    account = str(spec.get("serviceAccountName") or "default")
    priority, runtime = str(spec.get("priorityClassName")), str(spec.get("runtimeClassName"))
    missed: dict[str, ObjectIdentity] = {
        f'serviceaccount "{account}" not found': ("", "ServiceAccount", ref.namespace, account),
        f"no PriorityClass with name {priority} was found": ("scheduling.k8s.io", "PriorityClass", "", priority),
        f'RuntimeClass "{runtime}" not found': ("node.k8s.io", "RuntimeClass", "", runtime),
    }
    return any(words in error.server_words and identity in brought for words, identity in missed.items())


def plan_by_dry_run(
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
        yielding = without_fields_of_others(scene, manifest, live) if live and sent is None else manifest
        if yielding.body == manifest.body:
            return with_problem(unproved_action(manifest, action, live), exc)
        return plan_by_dry_run(scene, manifest, live, yielding)
    except Unreachable as exc:
        if not (words := untried_words(exc, scene.webhooks)):
            raise
        return replace(unproved_action(manifest, action, live), notes=(words,), server_words=exc.server_words)
    except ClusterError as exc:
        return plan_despite_refusal(scene, manifest, unproved_action(manifest, action, live), exc)
    before, after = masked(live, result.object)
    # What is shown of anything but a Secret is all that could change.
    sides = (cleaned(live or {}), cleaned(result.object)) if manifest.ref.group_kind == SECRET else (before, after)
    if live and is_ours and is_same(*sides):
        action, after = action_if_unchanged(scene, manifest.ref), before
    running = scene.before.get(manifest.ref.identity)
    if before is not None and running is not None:
        share_texts(before, running.body)
    if after is not None and after is not before:
        share_texts(after, manifest.body)
    return PlannedAction(
        manifest.ref,
        action,
        uid,
        version if live else "",
        before,
        after,
        is_provable,
        result.warnings,
        notes=tuple(words_on_left_fields(manifest, sent or manifest)),
    )


def action_if_unchanged(scene: PlanInputs, ref: ObjectRef) -> Action:
    """The action on an object of ours in which nothing changes.

    A Secret is written all the same: who reads the plan may not learn whether its values are the same (S38).
    """
    return Action.UPDATE if ref.group_kind == SECRET and not scene.options.supposes_adoption else Action.NONE


def conflict_of_secret(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> FieldConflict | None:
    """The fields of a Secret of ours that another manager owns, too, whatever their values are.

    The API server objects only where these differ, and would so tell whether a value was guessed (S38).
    """
    wished = changes(None, without_fields_of_others(scene, manifest, live).body)
    owners = [owner for owner in field_owners.owners(live) if not owner.is_applier(scene.field_manager)]
    held = {owner.manager: sorted(map(field_owners.words, owner.paths & wished.keys())) for owner in owners}
    told = [f"{manager} owns {', '.join(fields)}" for manager, fields in sorted(held.items()) if fields]
    names = ", ".join(sorted({name for fields in held.values() for name in fields}))
    words = f"apply {manifest.ref}: another manager owns {names}"
    return FieldConflict(words, status=409, server_words="; ".join(told)) if told else None


def plan_despite_refusal(
    scene: PlanInputs, manifest: Manifest, planned: PlannedAction, error: ClusterError
) -> PlannedAction:
    """What is planned although the server refuses to try it, or the problem."""
    if not isinstance(error, InvalidObject):
        return planned if is_expected_refusal(manifest, error, scene.brought) else with_problem(planned, error)
    if field_owners.is_of_old_version(error):
        return replace(planned, notes=(field_owners.WORDS,))
    if manifest.ref.group_kind in scene.new_kinds or NO_DRY_RUN in error.server_words:
        return planned
    is_replaceable = planned.action is Action.UPDATE and is_immutable_field(error)
    if may_be_remade(planned) and is_immutable_value(error):
        return replace(planned, is_proved=True)
    anew = replace(planned, action=Action.REPLACE)
    return plan_replacement(scene, manifest, anew) if is_replaceable else with_problem(planned, error)


def plan_replacement(scene: PlanInputs, manifest: Manifest, planned: PlannedAction) -> PlannedAction:
    """An object to be deleted and made anew; a problem where only the first of that would be done, or where it says
    that it is to be kept (S39).

    It is tried each time: nothing on the old object tells that the new one is refused now.
    """
    running, kinds = scene.before.get(manifest.ref.identity), defined_kinds([manifest])
    along = [manifest.body for manifest in scene.before.values() if manifest.ref.group_kind in kinds] if kinds else []
    said = map(keep_words, (manifest.body, running.body if running else None, planned.before, *along))
    if planned.action is Action.REPLACE and any(said):
        words = (
            f"{manifest.ref} has to be deleted to be made anew, and an annotation says that it is to be kept, or what "
            "goes with it. If nobody needs it, delete it yourself, or first apply a version without that annotation"
        )
        return replace(planned, problem=words, problem_code=PreconditionFailed.code)
    try:
        found = creation_refusal(scene.cluster, manifest, field_manager=scene.field_manager)
    except Unreachable as exc:
        if not (words := untried_words(exc, scene.webhooks)):
            raise
        return replace(planned, notes=(words,), server_words=exc.server_words)
    if found is None or is_expected_refusal(manifest, found, scene.brought):
        return planned
    words = refusal_words(manifest.ref, found)
    return replace(planned, problem=words, problem_code=found.code, server_words=found.server_words)


def try_foreign_object(
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
        return plan_despite_refusal(scene, manifest, planned, exc)


def without_fields_of_others(scene: PlanInputs, manifest: Manifest, live: dict[str, Any]) -> Manifest:
    return without_theirs(scene.cluster, manifest, live, manager=scene.field_manager)


def words_on_left_fields(manifest: Manifest, sent: Manifest) -> list[str]:
    left = sorted(".".join(path) for path in changes(sent.body, manifest.body))
    return [f"{', '.join(left)} stays as it is: another controller writes it"] if left else []
