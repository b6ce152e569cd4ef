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
from provisioner.retention import CONSEQUENCE_OF_DELETION, is_remade, kept_keys, may_be_remade
from provisioner.review.base.changes import FieldChange, changed_paths
from provisioner.review.base.facts import SECRET, Check, Facts, ReviewRule, mapping, maps, said
from provisioner.review.base.text import visible
from provisioner.review.checks.objects.changed_values import evidence_of
from provisioner.review.checks.objects.immutable import CONSEQUENCES, never_changing
from provisioner.review.checks.objects.offline import OfflineResult, is_untried, try_offline
from provisioner.review.preflight.places import evidence_of as evidence_of_absence
from provisioner.sentences import some
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
    untried: dict[str, list[ObjectRef]] = {}
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
        yield _of_untried_group(why, refs)
    if fitting:
        yield _of_fitting(fitting)


def _of_warnings(planned: PlannedAction, salt: str, *, is_new: bool) -> Iterator[Finding]:
    """What the API server said, and what is to be known of how it is applied; of an object that stays, nothing new.

    The words of the server may quote values, which nobody shall guess from the fingerprint: it is made with `salt`, and
    where there is none of the warning's place.
    """
    for place, words in enumerate(planned.warnings):
        key = [salt, words] if salt else place
        warned = _WARNED.at(planned.ref, f"The API server warns of {said(planned.ref)}", key=key)
        yield replace(warned, is_new=is_new, server_words=words)
    for words in planned.notes:
        yield replace(_WARNED.at(planned.ref, f"{said(planned.ref)}: {words}", key=words), is_new=is_new)


def _of_action(planned: PlannedAction) -> Iterator[Finding]:
    ref = planned.ref
    if planned.action is Action.CREATE:
        yield _CREATED.at(ref, f"Creates {said(ref)}")
    elif planned.action is Action.DELETE and planned.returns_as:
        words = f"Renames {said(ref)} to {planned.returns_as}: its subjects may do the same as before"
        yield _DELETED_ROLE.at(ref, words, evidence={"returnsAs": planned.returns_as}, key=planned.returns_as)
    elif planned.action is Action.DELETE:
        yield _of_deletion(ref)
    elif planned.action is Action.ORPHAN:
        yield _of_orphan(planned)
    elif ref.group_kind == SECRET and planned.action is Action.UPDATE and planned.before == planned.after:
        how = (
            " and is immutable: if it changes, it is deleted and created again. O" if may_be_remade(planned) else ": o"
        )
        yield _UNTOLD.at(
            ref, f"Writes {said(ref)}, which exists{how}nly people who may get it learn whether it changes"
        )
    elif planned.action in {Action.UPDATE, Action.REPLACE}:
        found = changed_paths(planned.before, planned.after)
        if planned.action is Action.REPLACE or is_remade(planned):
            yield _of_replacement(planned, found)
        else:
            key = [[list(map(str, one.path)), one.after] for one in found] if ref.group_kind != SECRET else None
            yield _CHANGED.at(
                ref, f"Changes {_fields(found)} of {said(ref)}", evidence=evidence_of(found, planned), key=key
            )


def _of_deletion(ref: ObjectRef) -> Finding:
    if ref.group == RBAC_GROUP:
        return _DELETED_ROLE.at(ref, f"Deletes {said(ref)}; the section on permissions lists the rights that are lost")
    consequence = CONSEQUENCE_OF_DELETION.get(ref.group_kind)
    if consequence:
        return _DELETED_WITH_DATA.at(ref, f"Deletes {said(ref)}: {consequence}")
    return _DELETED.at(ref, f"Deletes {said(ref)}")


def _of_orphan(planned: PlannedAction) -> Finding:
    """What is let go, and whose it is then and what becomes of the rights that it gives."""
    ref = planned.ref
    words = "; ".join(planned.notes).replace(str(ref), said(ref))
    rest = "it belongs to no deployment, and another installation meets it as an object of somebody else"
    rights = "; Pratique does not take away the rights that it gives" if ref.group == RBAC_GROUP else ""
    found = _ORPHANED.at(ref, f"{words}. From then on {rest}{rights}", key=words)
    return replace(found, server_words=planned.server_words)


def _of_replacement(planned: PlannedAction, found: list[FieldChange]) -> Finding:
    """Proved by dry-run: the server refused for nothing but fields that never change."""
    ref = planned.ref
    consequence = CONSEQUENCES.get(ref.group_kind, "it is gone in between")
    stuck = never_changing(ref.group_kind, found)
    fields = _fields(stuck or found) if found or ref.group_kind != SECRET else "its type, or that it is immutable,"
    message = f"Deletes {said(ref)} and creates it again, because {fields} cannot be changed: {consequence}"
    rest = [one for one in found if one not in stuck]
    return _REPLACED.at(ref, message, evidence=evidence_of([*stuck, *rest], planned))


def _fields(found: list[FieldChange]) -> str:
    """Up to three fields in words."""
    names = [".".join(str(part) for part in one.path) for one in found]
    if not names:
        return "nothing that is shown here"
    return some(names, noun="fields")


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
    ref, words = planned.ref, planned.problem
    rule = _BY_CODE.get(planned.problem_code, _NOT_PLANNED)
    if planned.action is Action.ADOPT:
        rule = _FOREIGN
    elif rule is _NO_RIGHT and "attempting to grant RBAC permissions not currently held" in planned.server_words:
        rule = _WOULD_ESCALATE
    elif planned.problem_code == ClusterError.code and _says_no_namespace(planned.server_words, ref):
        rule = _NO_NAMESPACE
    why = words.removeprefix("apply ").removeprefix(f"{ref}: ")
    message = f"Cannot {_verb(planned.action)} {said(ref)}: {why}"
    if rule is _FOREIGN:
        message = (
            f"{words.replace(str(ref), said(ref))}. It will not be adopted, and nothing is applied while it exists"
        )
    evidence: dict[str, Any] = {"code": planned.problem_code}
    if rule is _NO_KIND:
        evidence |= evidence_of_absence(facts.around.absence_of(ref.group, ref.version, ref.kind))
    found = rule.at(ref, message, evidence=evidence, key=planned.problem_code)
    return replace(found, server_words=planned.server_words)


def _verb(action: Action) -> str:
    return "plan" if action is Action.NONE else str(action)


def _says_no_namespace(words: str, ref: ObjectRef) -> bool:
    return bool(ref.namespace) and "namespaces" in words and "not found" in words


def _of_untried(
    facts: Facts, planned: PlannedAction, found: tuple[dict[str, list[ObjectRef]], list[ObjectRef]]
) -> Iterator[Finding]:
    """The server could not be asked, so the object is held against the schema of its kind.

    `found` collects what is said of many at once: the untried by reason, and those that fit what the cluster publishes.
    """
    ref = planned.ref
    untried, fitting = found
    answer = try_offline(facts, ref)
    if answer.errors:
        shown = "; ".join(answer.errors[:3])
        message = f"{said(ref)} does not fit the schema of its kind: {shown}"
        yield _REFUSED_OFFLINE.at(ref, message, evidence={"errors": answer.errors}, key=answer.errors)
    elif answer.pruned:
        shown = ", ".join(answer.pruned[:5])
        message = f"{said(ref)} loses fields that its kind does not know: {shown}"
        yield _REFUSED_OFFLINE.at(ref, message, evidence={"pruned": answer.pruned}, key=answer.pruned)
    elif facts.is_offline:
        return
    elif planned.notes:
        untried.setdefault("; ".join(planned.notes), []).append(ref)
    elif answer.is_own_kind and answer.is_tried:
        message = f"{said(ref)} fits its schema, but could not be tried: its kind comes with this bundle"
        yield _TRIED_OFFLINE.at(ref, message)
    elif answer.is_tried and _comes_with_namespace(facts, ref):
        fitting.append(ref)
    else:
        untried.setdefault(_why(facts, ref, answer), []).append(ref)


def _comes_with_namespace(facts: Facts, ref: ObjectRef) -> bool:
    return any(one.ref.group_kind == _NAMESPACE and one.ref.name == ref.namespace for one in facts.content.manifests)


def _of_fitting(refs: list[ObjectRef]) -> Finding:
    """Validated offline, and marked so: what a new namespace cannot have against an object yet is said, once."""
    names, places = sorted(str(ref) for ref in refs), sorted({ref.namespace for ref in refs})
    which = names[0] if len(names) == 1 else f"{len(names)} objects"
    message = (
        f"{which} of the new namespace {', '.join(places)} fit the schemas that the cluster publishes, and could "
        "not be tried: quotas, admission webhooks and checks in code are first asked at apply"
    )
    return _FIT_OFFLINE.at(refs[0] if len(refs) == 1 else None, message, evidence={"objects": names}, key=places)


def _why(facts: Facts, ref: ObjectRef, answer: OfflineResult) -> str:
    if answer.why:
        return answer.why
    if _comes_with_namespace(facts, ref):
        return f"the namespace {ref.namespace} comes with this bundle, and the cluster publishes no schema of the kind"
    return "the cluster cannot try objects of this kind without creating them"


def _of_untried_group(why: str, refs: list[ObjectRef]) -> Finding:
    names = sorted(str(ref) for ref in refs)
    which = names[0] if len(names) == 1 else f"{len(names)} objects"
    message = f"Whether the cluster accepts {which} is not known before apply: {why}"
    return _NOT_TRIED.at(refs[0] if len(refs) == 1 else None, message, evidence={"objects": names}, key=why)


def _of_others(planned: PlannedAction, wished: JsonObject | None) -> Iterator[Finding]:
    """Named items in the result that the content does not set: somebody else put them there, and they stay (S11)."""
    if wished is None or planned.after is None or not planned.is_proved or planned.ref.group_kind == SECRET:
        return
    for path, name in _foreign_items(wished, planned.after, ()):
        place = ".".join(str(part) for part in path)
        message = (
            f"{said(planned.ref)} keeps {name} in {place}, which this bundle does not set: somebody else put it there"
        )
        yield _ADDED_BY_OTHERS.at(planned.ref, message, path=path, evidence={"item": name}, key=name)


def _of_keys_that_stay(planned: PlannedAction, old: JsonObject | None, new: JsonObject | None) -> Iterator[Finding]:
    """Keys of a Secret that were written as stringData, and are written no more."""
    names = sorted(kept_keys(old, new)) if old and new and planned.action in {Action.UPDATE, Action.NONE} else []
    if names:
        message = (
            f"{said(planned.ref)} keeps {some([visible(name) for name in names], noun='keys')}, which this content "
            "leaves out: what was written as stringData stays until somebody deletes it"
        )
        yield _KEY_STAYS.at(planned.ref, message, path=("data",), evidence={"keys": names}, key=names)


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


CHECK = Check("objects", changes=_changes)
