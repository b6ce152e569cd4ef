"""What happens to each object, and what stands in its way: created, changed, replaced, deleted, someone else's.

The API server's own dry-run is the proof. Where no server could be asked, objects are held against schemas: the
bundle's own, or those that the cluster publishes. A schema knows fields and types. What the server decides in code it
does not know: quotas, other admission, and what must not change or must agree between fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from provisioner.api_groups import RBAC_GROUP
from provisioner.builtin import fixed_fields
from provisioner.errors import (
    AlreadyExists,
    ClusterError,
    FieldConflict,
    Forbidden,
    InvalidManifest,
    InvalidObject,
    PreconditionFailed,
    UnknownKind,
)
from provisioner.escaping import visible
from provisioner.json_values import items, mapping, maps, value_at
from provisioner.masking import masked_value
from provisioner.retention import KINDS_WITH_CONSEQUENCE, is_remade, kept_keys, may_be_remade
from provisioner.review.base.difference import ABSENT, FieldChange, changed_paths
from provisioner.review.base.facts import SECRET, Check, Facts, FieldPath, Reads, ReviewRule, said
from provisioner.review.base.sizes import bytes_of
from provisioner.review.preflight.needs import evidence_of as evidence_of_absence
from provisioner.schema import admit
from provisioner.sentences import unescaped
from provisioner.values import (
    Action,
    Finding,
    GroupKind,
    HelmRelease,
    JsonObject,
    ObjectRef,
    PlannedAction,
    Section,
    Severity,
)

_CREATED = ReviewRule("OBJ-01", Section.OBJECTS, Severity.SAFE)
_CHANGED = ReviewRule("OBJ-02", Section.OBJECTS, Severity.SAFE)
_SECRET_WRITTEN = ReviewRule("SEC-07", Section.OBJECTS, Severity.NOTABLE)
_TRIED_OFFLINE = ReviewRule("OBJ-03", Section.OBJECTS, Severity.NOTABLE)
_NOT_TRIED = ReviewRule("OBJ-04", Section.OBJECTS, Severity.UNKNOWN)
_WARNED = ReviewRule("OBJ-05", Section.OBJECTS, Severity.NOTABLE)
_ADDED_BY_OTHERS = ReviewRule("OBJ-06", Section.OBJECTS, Severity.DANGEROUS)
_KEY_STAYS = ReviewRule("OBJ-06", Section.OBJECTS, Severity.NOTABLE)
_REFUSED_OFFLINE = ReviewRule("OBJ-07", Section.OBJECTS, Severity.BREAKING)
_REPLACED = ReviewRule("IMM-01", Section.OBJECTS, Severity.BREAKING)
_DELETED_WITH_DATA = ReviewRule("DEL-01", Section.OBJECTS, Severity.BREAKING)
_DELETED = ReviewRule("DEL-01", Section.OBJECTS, Severity.DANGEROUS)
_DELETED_ROLE = ReviewRule("DEL-01", Section.OBJECTS, Severity.SAFE)
_RECORD_DELETED = ReviewRule("HELM-02", Section.OBJECTS, Severity.NOTABLE)
_ORPHANED = ReviewRule("DEL-04", Section.OBJECTS, Severity.NOTABLE)
_CONFLICT = ReviewRule("OWN-01", Section.OBJECTS, Severity.BREAKING)
_FOREIGN = ReviewRule("OWN-02", Section.OBJECTS, Severity.BREAKING)
_OWNED = ReviewRule("OWN-03", Section.OBJECTS, Severity.NOTABLE)
_NO_RIGHT = ReviewRule("PRE-01", Section.PREFLIGHT, Severity.BREAKING)
_WOULD_ESCALATE = ReviewRule("PRE-02", Section.PREFLIGHT, Severity.BREAKING)
_NO_NAMESPACE = ReviewRule("PRE-05", Section.PREFLIGHT, Severity.BREAKING)
_NO_KIND = ReviewRule("PRE-07", Section.PREFLIGHT, Severity.BREAKING)
_REFUSED = ReviewRule("PRE-09", Section.PREFLIGHT, Severity.BREAKING)
_BEING_DELETED = ReviewRule("OBJ-08", Section.OBJECTS, Severity.BREAKING)
_NOT_PLANNED = ReviewRule("OBJ-09", Section.OBJECTS, Severity.UNKNOWN)

CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
_NAMESPACE = GroupKind("", "Namespace")
_CLAIM = GroupKind("", "PersistentVolumeClaim")
# How many fields a message names, how many changes the evidence has, how many objects of one owner.
NAMED_FIELDS, MAX_CHANGES, MAX_OWNED, NAMED_OWNED = 3, 20, 500, 2
# Lists in which an item of somebody else changes what runs, or who may do what.
_WATCHED = frozenset({"containers", "initContainers", "ephemeralContainers", "volumes", "env", "webhooks", "subjects"})
# The server itself mounts every pod's token.
_MOUNTED_BY_SERVER = "kube-api-access-"
_BY_CODE = {
    AlreadyExists.code: _FOREIGN,
    FieldConflict.code: _CONFLICT,
    Forbidden.code: _NO_RIGHT,
    UnknownKind.code: _NO_KIND,
    InvalidObject.code: _REFUSED,
    PreconditionFailed.code: _BEING_DELETED,
}
_SELECTOR = ("spec", "selector")
# What the server changes neither, and the table of facts does not hold as fields that never change in any object.
_ALSO_FIXED: dict[GroupKind, tuple[tuple[str, ...], ...]] = {
    GroupKind("", "Service"): (("spec", "clusterIP"), ("spec", "clusterIPs"), ("spec", "ipFamilies"))
}
# A claim may grow.
_FREE: dict[GroupKind, tuple[str, ...]] = {_CLAIM: ("spec", "resources")}
_LOSSES = {
    GroupKind("", "ConfigMap"): "pods-fail",
    _CLAIM: "data",
    GroupKind("", "Secret"): "pods-fail",
    GroupKind("", "Service"): "address",
    GroupKind("apps", "DaemonSet"): "pods-stop",
    GroupKind("apps", "Deployment"): "pods-stop",
    GroupKind("apps", "StatefulSet"): "pods-stop-claims-stay",
    GroupKind("batch", "Job"): "runs-again",
    GroupKind("scheduling.k8s.io", "PriorityClass"): "priority",
    GroupKind("storage.k8s.io", "StorageClass"): "storage-class",
    GroupKind(RBAC_GROUP, "ClusterRoleBinding"): "rights",
    GroupKind(RBAC_GROUP, "RoleBinding"): "rights",
}
_RELEASE = re.compile(r"the Helm release (?P<release>\S+)(?: in (?P<namespace>\S+))?")
_NOBODY, _KUBERNETES = "nobody by their marks", "Kubernetes itself"


class Untried(NamedTuple):
    """Why an object could not be tried: the message of OBJ-04, and the values that this shows."""

    variant: str
    params: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class OfflineResult:
    """`is_tried` where a schema was found, `is_own_kind` where it comes with the bundle, `is_served` in this version;
    `why` is what else stood in the way."""

    is_tried: bool
    errors: tuple[str, ...] = ()
    pruned: tuple[str, ...] = ()
    why: Untried | None = None
    is_own_kind: bool = False
    is_served: bool = True


def compare_objects(facts: Facts) -> Iterator[Finding]:
    manifests = facts.content.manifests
    wished = {manifest.ref.identity: manifest.body for manifest in manifests}
    known = {manifest.ref.identity: manifest.body for manifest in (facts.previous.manifests if facts.previous else ())}
    hooks = {manifest.ref.identity for manifest in manifests if manifest.hook}
    untried: dict[Untried, list[ObjectRef]] = {}
    fitting: list[ObjectRef] = []
    for planned in facts.plan.actions:
        ref, action = planned.ref, planned.action
        body, former = wished.get(ref.identity), known.get(ref.identity)
        if planned.problem:
            yield _judge_problem(facts, planned)
        else:
            if ref.identity not in hooks:  # the check of hooks says what they do
                yield from _judge_action(planned)
            if is_untried(planned):
                yield from _judge_untried(facts, planned, untried, fitting)
        if not is_untried(planned):  # there they say why
            is_new = action is not Action.NONE or body is None
            is_kept_hook = action is Action.NONE and ref.identity in hooks
            is_said = action is Action.ORPHAN or is_kept_hook  # why it stays: other findings say so
            yield from _say_warnings(planned, facts.salt, () if is_said else planned.notes, is_new=is_new)
        # Named items in the result that the content does not set: somebody else put them there, and they stay (S11).
        if body is not None and planned.after is not None and planned.is_proved and ref.group_kind != SECRET:
            for path, name in _find_foreign_items(body, planned.after, ()):
                yield _ADDED_BY_OTHERS.finding("added-by-others", ref, where=path, key=name, item=name)
        # Keys of a Secret that were written as stringData, and are written no more.
        if former and body and action in {Action.UPDATE, Action.NONE} and (keys := sorted(kept_keys(former, body))):
            yield _KEY_STAYS.finding("keys-stay", ref, where=("data",), key=keys, keys=list(map(visible, keys)))
    for why, refs in sorted(untried.items()):
        yield say_of_several(_NOT_TRIED, why.variant, refs, why, **dict(why.params))
    if fitting:  # validated offline, and marked so: what a new namespace cannot have against an object yet, once
        namespaces = sorted({ref.namespace for ref in fitting})
        yield say_of_several(_TRIED_OFFLINE, "fits", fitting, namespaces, namespaces=namespaces)


def _judge_problem(facts: Facts, planned: PlannedAction) -> Finding:
    """Return what stands in the way. Apply starts only on a plan without problems, so each of these stops it."""
    ref, code, server_words = planned.ref, planned.problem_code, planned.server_words
    rule = _BY_CODE.get(code, _NOT_PLANNED)
    if planned.action is Action.ADOPT:
        rule = _FOREIGN
    elif rule is _NO_RIGHT and "attempting to grant RBAC permissions not currently held" in server_words:
        rule = _WOULD_ESCALATE
    elif code == ClusterError.code and ref.namespace and "namespaces" in server_words and "not found" in server_words:
        rule = _NO_NAMESPACE
    variant, words = "in-the-way", planned.problem.removeprefix("apply ").removeprefix(f"{ref}: ")
    if rule is _FOREIGN:
        variant, words = "not-adopted", planned.problem.removeprefix(f"{ref} ")
    action = "plan" if planned.action is Action.NONE else str(planned.action)
    found = rule.finding(variant, ref, key=code, code=code, action=action, words=words)
    if rule is _NO_KIND:
        why = evidence_of_absence(facts.around.absence_of(ref.group, ref.version, ref.kind))
        found = replace(found, evidence={**found.evidence, **why})
    return replace(found, server_words=server_words)


def _judge_action(planned: PlannedAction) -> Iterator[Finding]:
    ref, action = planned.ref, planned.action
    if action is Action.CREATE:
        yield _CREATED.finding("creates", ref)
    elif action is Action.DELETE and (release := HelmRelease.of_record(ref)):
        yield _RECORD_DELETED.finding("record", ref, release=release.name)
    elif action is Action.DELETE and planned.returns_as:
        yield _DELETED_ROLE.finding("renames-role", ref, key=planned.returns_as, returnsAs=planned.returns_as)
    elif action is Action.DELETE and ref.group == RBAC_GROUP:
        yield _DELETED_ROLE.finding("deletes-role", ref)
    elif action is Action.DELETE and ref.group_kind in KINDS_WITH_CONSEQUENCE:
        yield _DELETED_WITH_DATA.finding(f"deletes-{ref.kind.lower()}", ref)
    elif action is Action.DELETE:
        yield _DELETED.finding("deletes", ref)
    elif action is Action.ORPHAN:
        words = "; ".join(planned.notes).replace(str(ref), said(ref))
        variant = "let-go-role" if ref.group == RBAC_GROUP else "let-go"
        found = _ORPHANED.finding(variant, ref, key=words, words=words)
        yield replace(found, server_words=planned.server_words)
    elif ref.group_kind == SECRET and action is Action.UPDATE and planned.before == planned.after:
        yield _SECRET_WRITTEN.finding("written-immutable" if may_be_remade(planned) else "written", ref)
    elif action is Action.REPLACE or is_remade(planned):
        # Proved by dry-run: the server refused for nothing but fields that never change.
        changed = changed_paths(planned.before, planned.after)
        stuck = find_unchangeable(ref.group_kind, changed)
        variant = "replaced" if changed else "replaced-secret" if ref.group_kind == SECRET else "replaced-unseen"
        evidence = evidence_of([*stuck, *(change for change in changed if change not in stuck)], planned)
        loss = find_loss(ref.group_kind)
        yield _REPLACED.finding(variant, ref, loss=loss, **_name_fields(stuck or changed), **evidence)
    elif action is Action.UPDATE:
        changed = changed_paths(planned.before, planned.after)
        key = [[list(map(str, change.path)), change.after] for change in changed] if ref.group_kind != SECRET else None
        variant = "changes" if changed else "changes-unseen"
        yield _CHANGED.finding(variant, ref, key=key, **_name_fields(changed), **evidence_of(changed, planned))


def _name_fields(changes: list[FieldChange]) -> dict[str, Any]:
    """Return the names of up to three fields, and how many more there are."""
    names = [".".join(str(part) for part in change.path) for change in changes[:NAMED_FIELDS]]
    return {"fields": names or None, "more": len(changes) - NAMED_FIELDS if len(changes) > NAMED_FIELDS else None}


def _say_warnings(planned: PlannedAction, salt: str, notes: Iterable[str], *, is_new: bool) -> Iterator[Finding]:
    """Say what the API server warned of, and what is to be known of how an object is applied.

    The words of the server may quote values, which nobody shall guess from the fingerprint: it is made with the uid of
    the object or `salt`, and where there is none of the warning's place.
    """
    secret = planned.uid or salt
    for place, words in enumerate(planned.warnings):
        warned = _WARNED.finding("warned", planned.ref, key=[secret, words] if secret else place)
        yield replace(warned, is_new=is_new, server_words=words)
    for words in notes:
        yield replace(_WARNED.finding("noted", planned.ref, key=words, words=words), is_new=is_new)


def _find_foreign_items(wished: object, found: object, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    """Yield (path of the list, name of the item) of each watched item in `found` that `wished` has not."""
    if isinstance(found, Mapping):
        known = mapping(wished)
        for key in sorted(found):
            if key != "metadata" or path:
                yield from _find_foreign_items(known.get(key), found[key], (*path, key))
    elif isinstance(found, list):
        ours = {str(item.get("name")): item for item in maps(wished)}
        for index, item in enumerate(maps(found)):
            name = str(item.get("name") or "")
            if name in ours:
                yield from _find_foreign_items(ours[name], item, (*path, index))
            elif name and path[-1] in _WATCHED and not name.startswith(_MOUNTED_BY_SERVER):
                yield path, name


def _judge_untried(
    facts: Facts, planned: PlannedAction, untried: dict[Untried, list[ObjectRef]], fitting: list[ObjectRef]
) -> Iterator[Finding]:
    """Hold an object against the schema of its kind, since the server could not be asked.

    `untried`, by reason, and `fitting` collect what is said of many at once.
    """
    ref = planned.ref
    answer = try_offline(facts, ref)
    has_namespace = ref.namespace in facts.once("namespaces of the bundle", _find_own_namespaces)
    if not answer.is_served:
        yield _REFUSED_OFFLINE.finding("version-not-served", ref, key=ref.version, version=ref.version)
    elif answer.errors:
        yield _REFUSED_OFFLINE.finding("unfit", ref, key=answer.errors, errors=answer.errors)
    elif answer.pruned:
        yield _REFUSED_OFFLINE.finding("pruned", ref, key=answer.pruned, pruned=answer.pruned)
    elif facts.is_offline:
        return
    elif planned.notes:
        untried.setdefault(Untried("noted", (("words", "; ".join(planned.notes)),)), []).append(ref)
    elif answer.is_own_kind and answer.is_tried:
        yield _TRIED_OFFLINE.finding("fits-own-schema", ref)
    elif answer.is_tried and has_namespace:
        fitting.append(ref)
    else:
        comes = Untried("namespace-comes", (("namespace", ref.namespace),))
        untried.setdefault(answer.why or (comes if has_namespace else Untried("no-dry-run")), []).append(ref)


def _find_own_namespaces(facts: Facts) -> set[str]:
    refs = (manifest.ref for manifest in facts.content.manifests)
    return {ref.name for ref in refs if ref.group_kind == _NAMESPACE}


def is_untried(planned: PlannedAction) -> bool:
    """Whether a planned write is not proved, and nothing that stands in its way says why."""
    return not planned.is_proved and not planned.problem and planned.action in {Action.CREATE, Action.UPDATE}


def find_untried_kinds(facts: Facts) -> set[tuple[str, str, str]]:
    """Return (group, version, kind) of the objects that the cluster could not try and the bundle does not define."""
    untried = (planned.ref for planned in facts.plan.actions if is_untried(planned))
    return {(ref.group, ref.version, ref.kind) for ref in untried if _definition_of(facts, ref) is None}


def try_offline(facts: Facts, ref: ObjectRef) -> OfflineResult:
    """Return what the schema of its kind, the bundle's own or the cluster's, says of the object `ref`."""
    definition = _definition_of(facts, ref)
    schema = facts.around.schemas.get((ref.group, ref.version, ref.kind))
    if definition is None and schema is None:
        return OfflineResult(False)
    if definition is not None:
        versions = maps(definition.get("versions"))
        version = next((version for version in versions if version.get("name") == ref.version), None)
        if version is None or not version.get("served"):
            return OfflineResult(True, is_served=False)
        schema = value_at(version, "schema", "openAPIV3Schema")
    if not isinstance(schema, Mapping):
        return OfflineResult(False, why=Untried("no-schema", (("version", ref.version),)))
    body = next(manifest.body for manifest in facts.content.manifests if manifest.ref == ref)
    is_own_kind = definition is not None
    try:
        admission = admit(schema, body)
    except InvalidManifest as exc:
        why = Untried("schema-unreadable", (("problem", str(exc)),))
        return OfflineResult(False, why=why, is_own_kind=is_own_kind)
    is_secret = ref.group_kind == SECRET
    errors = tuple(
        f"{refusal.path}: {'…' if is_secret else unescaped(refusal.message)}" for refusal in admission.refusals
    )
    return OfflineResult(True, errors, tuple(admission.pruned), is_own_kind=is_own_kind)


def _definition_of(facts: Facts, ref: ObjectRef) -> Mapping[str, Any] | None:
    return facts.once("definitions", _find_definitions).get((ref.group, ref.kind))


def _find_definitions(facts: Facts) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return what the bundle's CRDs say of kinds, by group and kind; of two for one kind the first."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for manifest in facts.content.manifests:
        if manifest.ref.group_kind == CRD:
            spec = mapping(manifest.body.get("spec"))
            found.setdefault((str(spec.get("group")), str(value_at(spec, "names", "kind"))), spec)
    return found


def say_of_several(rule: ReviewRule, variant: str, refs: list[ObjectRef], key: object, **params: Any) -> Finding:
    """Return one finding for all objects of which the same holds, which it names where it is one."""
    which, ref = ("one", refs[0]) if len(refs) == 1 else ("several", None)
    return rule.finding(variant, ref, key=key, objects=sorted(map(str, refs)), which=which, **params)


def evidence_of(changes: list[FieldChange], planned: PlannedAction) -> dict[str, Any]:
    """Return the values of the first MAX_CHANGES before and after, those of mere words last.

    A CRD has thousands, and the whole diff is the object's own. What is named or written like a credential is hidden.
    """
    shown = []
    for change in sorted(changes, key=_is_of_words)[:MAX_CHANGES]:
        before = masked_value(change.before, _name_at(planned.before, change.path))
        after = masked_value(change.after, _name_at(planned.after, change.path))
        shown.append({"path": list(change.path), "before": before, "after": after})
    return {"changes": shown, "left_out": max(0, len(changes) - MAX_CHANGES)}


def _is_of_words(change: FieldChange) -> bool:
    """Whether it is a description of a schema; `properties.description` is a field that has that name."""
    return change.path[-1:] == ("description",) and change.path[-2:-1] != ("properties",)


def _name_at(obj: JsonObject | None, path: FieldPath) -> str:
    """Return the name that a value goes by: that of the variable it is in, else its key."""
    parent: object = obj
    for part in path[:-1]:
        if isinstance(part, int):
            listed = items(parent)
            parent = listed[part] if part < len(listed) else None
        else:
            parent = mapping(parent).get(part)
    name = mapping(parent).get("name") if path[-1:] == ("value",) else None
    return str(name if isinstance(name, str) else path[-1] if path else "")


def find_loss(kind: GroupKind) -> str:
    """Return what is lost while an object is made anew: the name of a phrase of IMM-01."""
    return _LOSSES.get(kind, "itself")


def find_unchangeable(kind: GroupKind, changes: Sequence[FieldChange]) -> list[FieldChange]:
    """Return those of the changes that the API server will not make; what one side leaves out may be its default.

    A selector has no defaults, nor has a list that gains or loses an item; and a claim may grow, but not shrink.
    """
    fields = (*fixed_fields(kind), *_ALSO_FIXED.get(kind, ()))
    stuck: list[FieldChange] = []
    shrinking: list[FieldChange] = []
    for change in changes:
        is_selector = kind.group == "apps" and len(change.path) > len(_SELECTOR) and _is_within(change, (_SELECTOR,))
        is_left_out = ABSENT in (change.before, change.after) and not isinstance(change.path[-1], int)
        is_free = kind in _FREE and _is_within(change, [_FREE[kind]])
        if _is_within(change, fields) and not (is_left_out and not is_selector) and not is_free:
            stuck.append(change)
        if kind == _CLAIM and change.path == ("spec", "resources", "requests", "storage"):
            before, after = bytes_of(change.before), bytes_of(change.after)
            if before is not None and after is not None and after < before:
                shrinking.append(change)
    return stuck + shrinking


def _is_within(change: FieldChange, fields: Iterable[tuple[str, ...]]) -> bool:
    path = tuple("[]" if isinstance(part, int) else part for part in change.path)
    return any(path[: len(field)] == field for field in fields)


def compare_owners(facts: Facts) -> Iterator[Finding]:
    """Say whose the objects are that are planned as if they were adopted: one line for each owner."""
    found: dict[str, list[ObjectRef]] = {}
    for planned in facts.plan.actions:
        if planned.owner:
            found.setdefault(planned.owner, []).append(planned.ref)
    for owner, refs in sorted(found.items(), key=lambda item: (-len(item[1]), item[0])):
        yield replace(say_owner(owner, refs), sources=tuple(sorted(refs)))


def say_owner(owner: str, refs: Sequence[ObjectRef]) -> Finding:
    """Return what is said of the objects of one owner, and what a request needs that is to adopt them."""
    names, release = sorted(map(said, refs)), _RELEASE.fullmatch(owner)
    adoption = "unmanaged" if owner.startswith(_NOBODY) else "never" if owner == _KUBERNETES else "not-yet"
    params: dict[str, Any] = {"owner": owner, "count": len(names), "objects": names[:MAX_OWNED]}
    params |= {"first": names[:NAMED_OWNED], "more": len(names) - NAMED_OWNED if len(names) > NAMED_OWNED else None}
    if release:
        adoption, params = "helm", {**params, **release.groupdict()}
    return _OWNED.finding("owned", None, key=[owner, params["objects"]], adoption=adoption, **params)


OBJECTS_CHECK = Check("objects", changes=compare_objects, reads=frozenset({Reads.CHOICES}))
OWNERS_CHECK = Check("owners", changes=compare_owners)
