"""What happens to each object, and what stands in its way: created, changed, replaced, deleted, someone else's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import (
    AlreadyExists,
    ClusterError,
    FieldConflict,
    Forbidden,
    InvalidObject,
    PreconditionFailed,
    UnknownKind,
)
from provisioner.escaping import visible
from provisioner.retention import KINDS_WITH_CONSEQUENCE, is_remade, kept_keys, may_be_remade
from provisioner.review.base.difference import FieldChange, changed_paths
from provisioner.review.base.facts import SECRET, Check, Facts, Reads, ReviewRule, mapping, maps, said
from provisioner.review.checks.objects.changed_values import evidence_of
from provisioner.review.checks.objects.immutable import loss_of, never_changing
from provisioner.review.checks.objects.offline import Untried, is_untried, of_several, try_offline
from provisioner.review.preflight.needs import evidence_of as evidence_of_absence
from provisioner.values import (
    Action,
    Finding,
    GroupKind,
    JsonObject,
    ObjectRef,
    PlannedAction,
    Section,
    Severity,
)

Path = tuple[str | int, ...]
NAMED = 3

_CREATED = ReviewRule("OBJ-01", Section.OBJECTS, Severity.SAFE)
_CHANGED = ReviewRule("OBJ-02", Section.OBJECTS, Severity.SAFE)
_UNTOLD = ReviewRule("SEC-07", Section.OBJECTS, Severity.NOTABLE)
_TRIED_OFFLINE = ReviewRule("OBJ-03", Section.OBJECTS, Severity.NOTABLE)
_FIT_OFFLINE = ReviewRule("OBJ-03", Section.OBJECTS, Severity.NOTABLE)
_NOT_TRIED = ReviewRule("OBJ-04", Section.OBJECTS, Severity.UNKNOWN)
_WARNED = ReviewRule("OBJ-05", Section.OBJECTS, Severity.NOTABLE)
_ADDED_BY_OTHERS = ReviewRule("OBJ-06", Section.OBJECTS, Severity.DANGEROUS)
_KEY_STAYS = ReviewRule("OBJ-06", Section.OBJECTS, Severity.NOTABLE)
_REFUSED_OFFLINE = ReviewRule("OBJ-07", Section.OBJECTS, Severity.BREAKING)
_REPLACED = ReviewRule("IMM-01", Section.OBJECTS, Severity.BREAKING)
_DELETED_WITH_DATA = ReviewRule("DEL-01", Section.OBJECTS, Severity.BREAKING)
_DELETED = ReviewRule("DEL-01", Section.OBJECTS, Severity.DANGEROUS)
_DELETED_ROLE = ReviewRule("DEL-01", Section.OBJECTS, Severity.SAFE)
_ORPHANED = ReviewRule("DEL-04", Section.OBJECTS, Severity.NOTABLE)
_CONFLICT = ReviewRule("OWN-01", Section.OBJECTS, Severity.BREAKING)
_FOREIGN = ReviewRule("OWN-02", Section.OBJECTS, Severity.BREAKING)
_NO_RIGHT = ReviewRule("PRE-01", Section.PREFLIGHT, Severity.BREAKING)
_WOULD_ESCALATE = ReviewRule("PRE-02", Section.PREFLIGHT, Severity.BREAKING)
_NO_NAMESPACE = ReviewRule("PRE-05", Section.PREFLIGHT, Severity.BREAKING)
_NO_KIND = ReviewRule("PRE-07", Section.PREFLIGHT, Severity.BREAKING)
_REFUSED = ReviewRule("PRE-09", Section.PREFLIGHT, Severity.BREAKING)
_BEING_DELETED = ReviewRule("OBJ-08", Section.OBJECTS, Severity.BREAKING)
_NOT_PLANNED = ReviewRule("OBJ-09", Section.OBJECTS, Severity.UNKNOWN)

_NAMESPACE = GroupKind("", "Namespace")
# Lists in which an item of somebody else changes what runs, or who may do what.
_WATCHED = frozenset({"containers", "initContainers", "ephemeralContainers", "volumes", "env", "webhooks", "subjects"})
# The server itself mounts every pod's token.
_MOUNTED_BY_SERVER = "kube-api-access-"


def _changes(facts: Facts) -> Iterator[Finding]:
    wished = {one.ref.identity: one.body for one in facts.content.manifests}
    known = {one.ref.identity: one.body for one in (facts.previous.manifests if facts.previous else ())}
    hooks = {one.ref.identity for one in facts.content.manifests if one.hook}
    untried: dict[Untried, list[ObjectRef]] = {}
    fitting: list[ObjectRef] = []
    for planned in facts.plan.actions:
        if planned.problem:
            yield _of_problem(facts, planned)
        else:
            if planned.ref.identity not in hooks:  # the check of hooks says what they do
                yield from _of_action(planned)
            if is_untried(planned):
                yield from _of_untried(facts, planned, (untried, fitting))
        if not is_untried(planned):  # there they say why
            is_new = planned.action is not Action.NONE or planned.ref.identity not in wished
            is_kept_hook = planned.action is Action.NONE and planned.ref.identity in hooks
            is_told = planned.action is Action.ORPHAN or is_kept_hook  # why it stays: other findings say so
            warned = replace(planned, notes=()) if is_told else planned
            yield from _of_warnings(warned, planned.uid or facts.salt, is_new=is_new)
        yield from _of_others(planned, wished.get(planned.ref.identity))
        yield from _of_keys_that_stay(planned, known.get(planned.ref.identity), wished.get(planned.ref.identity))
    for why, refs in sorted(untried.items()):
        yield of_several(_NOT_TRIED, why.variant, refs, why, **dict(why.params))
    if fitting:  # validated offline, and marked so: what a new namespace cannot have against an object yet, once
        namespaces = sorted({ref.namespace for ref in fitting})
        yield of_several(_FIT_OFFLINE, "fits", fitting, namespaces, namespaces=namespaces)


def _of_warnings(planned: PlannedAction, salt: str, *, is_new: bool) -> Iterator[Finding]:
    """What the API server said, and what is to be known of how it is applied; of an object that stays, nothing new.

    The words of the server may quote values, which nobody shall guess from the fingerprint: it is made with `salt`, and
    where there is none of the warning's place.
    """
    for place, words in enumerate(planned.warnings):
        key = [salt, words] if salt else place
        warned = _WARNED.finding("warned", planned.ref, key=key)
        yield replace(warned, is_new=is_new, server_words=words)
    for words in planned.notes:
        yield replace(_WARNED.finding("noted", planned.ref, key=words, words=words), is_new=is_new)


def _of_action(planned: PlannedAction) -> Iterator[Finding]:
    ref = planned.ref
    if planned.action is Action.CREATE:
        yield _CREATED.finding("creates", ref)
    elif planned.action is Action.DELETE and planned.returns_as:
        yield _DELETED_ROLE.finding("renames-role", ref, key=planned.returns_as, returnsAs=planned.returns_as)
    elif planned.action is Action.DELETE and ref.group == RBAC_GROUP:
        yield _DELETED_ROLE.finding("deletes-role", ref)
    elif planned.action is Action.DELETE and ref.group_kind in KINDS_WITH_CONSEQUENCE:
        yield _DELETED_WITH_DATA.finding(f"deletes-{ref.kind.lower()}", ref)
    elif planned.action is Action.DELETE:
        yield _DELETED.finding("deletes", ref)
    elif planned.action is Action.ORPHAN:
        words = "; ".join(planned.notes).replace(str(ref), said(ref))
        variant = "let-go-role" if ref.group == RBAC_GROUP else "let-go"
        found = _ORPHANED.finding(variant, ref, key=words, words=words)
        yield replace(found, server_words=planned.server_words)
    elif ref.group_kind == SECRET and planned.action is Action.UPDATE and planned.before == planned.after:
        yield _UNTOLD.finding("written-immutable" if may_be_remade(planned) else "written", ref)
    elif planned.action is Action.REPLACE or is_remade(planned):
        yield _of_replacement(planned)
    elif planned.action is Action.UPDATE:
        changed = changed_paths(planned.before, planned.after)
        key = [[list(map(str, one.path)), one.after] for one in changed] if ref.group_kind != SECRET else None
        variant = "changes" if changed else "changes-unseen"
        yield _CHANGED.finding(variant, ref, key=key, **_first_fields(changed), **evidence_of(changed, planned))


def _of_replacement(planned: PlannedAction) -> Finding:
    """Proved by dry-run: the server refused for nothing but fields that never change."""
    ref, found = planned.ref, changed_paths(planned.before, planned.after)
    stuck = never_changing(ref.group_kind, found)
    variant = "replaced" if found else "replaced-secret" if ref.group_kind == SECRET else "replaced-unseen"
    evidence = evidence_of([*stuck, *(one for one in found if one not in stuck)], planned)
    return _REPLACED.finding(variant, ref, loss=loss_of(ref.group_kind), **_first_fields(stuck or found), **evidence)


def _first_fields(found: list[FieldChange]) -> dict[str, Any]:
    """The names of up to three fields, and how many more there are."""
    names = [".".join(str(part) for part in one.path) for one in found[:NAMED]]
    return {"fields": names or None, "more": len(found) - NAMED if len(found) > NAMED else None}


_BY_CODE = {
    AlreadyExists.code: _FOREIGN,
    FieldConflict.code: _CONFLICT,
    Forbidden.code: _NO_RIGHT,
    UnknownKind.code: _NO_KIND,
    InvalidObject.code: _REFUSED,
    PreconditionFailed.code: _BEING_DELETED,
}


def _of_problem(facts: Facts, planned: PlannedAction) -> Finding:
    """Apply starts only on a plan without problems, so each of these stops it."""
    ref, action = planned.ref, "plan" if planned.action is Action.NONE else str(planned.action)
    rule = _BY_CODE.get(planned.problem_code, _NOT_PLANNED)
    if planned.action is Action.ADOPT:
        rule = _FOREIGN
    elif rule is _NO_RIGHT and "attempting to grant RBAC permissions not currently held" in planned.server_words:
        rule = _WOULD_ESCALATE
    elif planned.problem_code == ClusterError.code and _says_no_namespace(planned.server_words, ref):
        rule = _NO_NAMESPACE
    variant, words = "in-the-way", planned.problem.removeprefix("apply ").removeprefix(f"{ref}: ")
    if rule is _FOREIGN:
        variant, words = "not-adopted", planned.problem.removeprefix(f"{ref} ")
    code = planned.problem_code
    found = rule.finding(variant, ref, key=code, code=code, action=action, words=words)
    if rule is _NO_KIND:
        why = evidence_of_absence(facts.around.absence_of(ref.group, ref.version, ref.kind))
        found = replace(found, evidence={**found.evidence, **why})
    return replace(found, server_words=planned.server_words)


def _says_no_namespace(words: str, ref: ObjectRef) -> bool:
    return bool(ref.namespace) and "namespaces" in words and "not found" in words


def _of_untried(
    facts: Facts, planned: PlannedAction, found: tuple[dict[Untried, list[ObjectRef]], list[ObjectRef]]
) -> Iterator[Finding]:
    """The server could not be asked, so the object is held against the schema of its kind.

    `found` collects what is said of many at once: the untried by reason, and those that fit what the cluster publishes.
    """
    ref = planned.ref
    untried, fitting = found
    answer = try_offline(facts, ref)
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
    elif answer.is_tried and _comes_with_namespace(facts, ref):
        fitting.append(ref)
    else:
        comes = Untried("namespace-comes", (("namespace", ref.namespace),))
        otherwise = comes if _comes_with_namespace(facts, ref) else Untried("no-dry-run")
        untried.setdefault(answer.why or otherwise, []).append(ref)


def _comes_with_namespace(facts: Facts, ref: ObjectRef) -> bool:
    return any(one.ref.group_kind == _NAMESPACE and one.ref.name == ref.namespace for one in facts.content.manifests)


def _of_others(planned: PlannedAction, wished: JsonObject | None) -> Iterator[Finding]:
    """Named items in the result that the content does not set: somebody else put them there, and they stay (S11)."""
    if wished is None or planned.after is None or not planned.is_proved or planned.ref.group_kind == SECRET:
        return
    for path, name in _foreign_items(wished, planned.after, ()):
        yield _ADDED_BY_OTHERS.finding("added-by-others", planned.ref, where=path, key=name, item=name)


def _of_keys_that_stay(planned: PlannedAction, old: JsonObject | None, new: JsonObject | None) -> Iterator[Finding]:
    """Keys of a Secret that were written as stringData, and are written no more."""
    names = sorted(kept_keys(old, new)) if old and new and planned.action in {Action.UPDATE, Action.NONE} else []
    if names:
        yield _KEY_STAYS.finding("keys-stay", planned.ref, where=("data",), key=names, keys=list(map(visible, names)))


def _foreign_items(wished: object, found: object, path: Path) -> Iterator[tuple[Path, str]]:
    """(path of the list, name of the item) of each watched item in `found` that `wished` has not."""
    if isinstance(found, Mapping):
        known = mapping(wished)
        for key in sorted(found):
            if key != "metadata" or path:
                yield from _foreign_items(known.get(key), found[key], (*path, key))
    elif isinstance(found, list):
        ours = {str(one.get("name")): one for one in maps(wished)}
        for index, item in enumerate(maps(found)):
            name = str(item.get("name") or "")
            if name in ours:
                yield from _foreign_items(ours[name], item, (*path, index))
            elif name and path[-1] in _WATCHED and not name.startswith(_MOUNTED_BY_SERVER):
                yield path, name


CHECK = Check("objects", changes=_changes, reads=frozenset({Reads.CHOICES}))
