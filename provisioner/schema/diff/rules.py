"""CEL rules and logical branches of two schemas: which were added, removed, or only written differently."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from difflib import SequenceMatcher
from typing import Any

from provisioner.json_values import maps
from provisioner.schema.admission.pruning import default
from provisioner.schema.admission.rules import rule_errors
from provisioner.schema.admission.validation import validate
from provisioner.schema.cel.ast import Node, NodeKind, read
from provisioner.schema.cel.runtime import NotCompiled, program_of
from provisioner.schema.cel.values import normalised, type_signature, uses_old
from provisioner.schema.fields import Schema, branches_of, go_json, is_same, properties_of
from provisioner.schema.inclusion.facets import SCALAR_KEYWORDS, compare_scalars
from provisioner.schema.inclusion.presence import PRESERVE, inclusion
from provisioner.schema.verdicts import (
    FOR_WRITERS,
    HARMLESS,
    NARROWED,
    NOT_DECIDED,
    D,
    Path,
    S,
    SchemaChange,
    SchemaVerdict,
    harmless,
    narrowed,
    undecided,
    widened,
)

RULES = "x-kubernetes-validations"
AND, OR = "_&&_", "_||_"
EQUAL = frozenset({"self==oldSelf", "oldSelf==self"})
# With optionalOldSelf: what is new passes, and what stays as it is.
EQUAL_OPTIONAL = frozenset(
    f"!oldSelf.hasValue()||{equal}" for equal in ("self==oldSelf.value()", "oldSelf.value()==self")
) | {"self==oldSelf.orValue(self)", "oldSelf.orValue(self)==self"}
NOT_JUDGED = ("could not be evaluated", "compile error")
DOCS = frozenset({"description", "title", "example", "externalDocs", "$schema", "id"})
ALIKE, MAX_COMPARED = 0.7, 400
Demand = tuple[str | Node, bool, bool]  # with whether it looks at oldSelf, and whether that is optional
JUNCTOR_RULES = {"allOf": "SCH-55", "anyOf": "SCH-56", "oneOf": "SCH-57"}


def compare_rules(old: Schema, new: Schema, path: Path, *, keeps_unknown: bool = False) -> list[SchemaChange]:
    """The CEL rules at one node. Rules with the same meaning are the same, however they are written or divided.

    `keeps_unknown` says that the old schema prunes nothing.
    """
    if old.get(RULES) == new.get(RULES):
        return []
    before, after = _by_meaning(old), _by_meaning(new)
    kept = [(before[meaning], after[meaning]) for meaning in before if meaning in after]
    found = [change for was, now in kept for change in _kept(was, now, path)]
    asked, still = _demands(before), _demands(after)
    come = {meaning: rule for meaning, rule in after.items() if meaning not in before}
    gone = [it for meaning, it in before.items() if meaning not in after and not _covered({meaning: it}, still)]
    repeated = [meaning for meaning, rule in come.items() if _covered({meaning: rule}, asked)]
    found += [harmless("SCH-41", "asked-before", path, new=str(come.pop(it)["rule"])) for it in repeated]
    # RE2 runs `self.matches` as it does a pattern: both look for it anywhere in the text.
    pattern = Node(NodeKind.CONST, value=old.get("pattern"))
    matching = Node(NodeKind.CALL, "matches", target=Node(NodeKind.IDENT, "self"), parts=(pattern,))
    moved = [meaning for meaning in come if meaning == matching and isinstance(pattern.value, str)]
    found += [harmless("SCH-38", "asked-by-pattern", path, new=str(come.pop(it)["rule"])) for it in moved]
    if not keeps_unknown:
        fresh = [meaning for meaning, rule in come.items() if _is_about_new_fields(meaning, rule, old, new)]
        found += [harmless("SCH-38", "of-new-fields", path, new=str(come.pop(it)["rule"])) for it in fresh]
    return found + _others(list(come.values()), gone, path)


def _is_about_new_fields(meaning: str | Node, rule: Mapping[str, Any], old: Schema, new: Schema) -> bool:
    """Whether a rule reads nothing of an object but fields that the old schema pruned, and takes their absence."""
    if isinstance(meaning, str) or old.get("type") != "object" or new.get("type") != "object":
        return False
    if uses_old(str(rule["rule"])) or old.get(PRESERVE) is True or old.get("additionalProperties"):
        return False
    come = {name: it for name, it in properties_of(new).items() if name not in properties_of(old)}
    uses = [node for node in meaning.walk() if node.kind is NodeKind.IDENT and node.name == "self"]
    reads = [
        node for node in meaning.walk() if node.kind is NodeKind.SELECT and node.target in uses and node.name in come
    ]
    if not uses or len(reads) != len(uses):
        return False
    alone: Schema = {"type": "object", "properties": come, RULES: [{"rule": rule["rule"]}]}
    return not rule_errors(alone, default(alone, {}), None, None)


def _others(come: list[Mapping[str, Any]], gone: list[Mapping[str, Any]], path: Path) -> list[SchemaChange]:
    """Rules that ask something new, and rules of which something is asked no more."""
    found = []
    for rule in list(come):
        was = next((it for it in gone if _is_toggled(it, rule)), None)
        if was is not None:
            gone.remove(was)
            come.remove(rule)
            found += _kept(was, rule, path)
    for rule in list(come):
        was = next((it for it in gone if _is_successor(it, rule)), None)
        if was is not None:
            gone.remove(was)
            come.remove(rule)
            found.append(undecided("SCH-39", "changed", path, old=was["rule"], new=rule["rule"]))
    found += [_added(rule, path) for rule in come]
    return found + [widened("SCH-40", "removed", path, old=rule["rule"]) for rule in gone]


def _covered(rules: Mapping[str | Node, Mapping[str, Any]], by: set[Demand]) -> bool:
    """Whether all that rules ask is asked; what is asked of every write is asked of updates."""
    for wanted in _demands(rules):
        if wanted in by or (wanted[0], False, False) in by:
            continue
        # Something may be asked that leaves fewer alternatives.
        alternatives = set() if isinstance(wanted[0], str) else _joined(wanted[0], OR)
        asked = (demand[0] for demand in by if demand[1:] in (wanted[1:], (False, False)))
        if not any(_joined(it, OR) <= alternatives for it in asked if not isinstance(it, str)):
            return False
    return True


def _demands(rules: Mapping[str | Node, Mapping[str, Any]]) -> set[Demand]:
    """What rules ask one by one, each with when it is asked: of updates only, and whether of creations all the same."""
    return {
        (demand, uses_old(str(rule["rule"])), rule.get("optionalOldSelf") is True)
        for meaning, rule in rules.items()
        for demand in ({meaning} if isinstance(meaning, str) else _joined(meaning, AND))
    }


def _joined(node: Node, operator: str) -> set[Node]:
    """What a chain of && or || joins, whatever brackets stand in it."""
    if node.kind is not NodeKind.CALL or node.name != operator:
        return {node}
    return {operand for part in node.parts for operand in _joined(part, operator)}


def _by_meaning(schema: Schema) -> dict[str | Node, Mapping[str, Any]]:
    """The rules by their compiled trees; one that does not compile here by its bare text."""
    signature, found = type_signature(schema), {}
    for rule in maps(schema.get(RULES)):
        text = str(rule.get("rule") or "")
        if not text:
            continue
        meaning: str | Node = normalised(text)
        with suppress(NotCompiled):
            compiled = program_of(text, signature, has_optional_old=rule.get("optionalOldSelf") is True)
            meaning = read(compiled.serialized)
        found[meaning] = rule
    return found


def _is_toggled(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether only optionalOldSelf changed: the same words compile to another tree then, or not at all."""
    is_optional = [rule.get("optionalOldSelf") is True for rule in (was, now)]
    before, after = (normalised(str(rule["rule"])) for rule in (was, now))
    return is_optional[0] != is_optional[1] and before == after and uses_old(after)


def _is_successor(was: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether `now` stands where `was` stood: it says the same to people, reports the same field, or reads alike."""
    if any(was.get(name) and was.get(name) == now.get(name) for name in ("message", "fieldPath")):
        return True
    before, after = (normalised(str(rule["rule"]))[:MAX_COMPARED] for rule in (was, now))
    likeness = SequenceMatcher(None, before, after, autojunk=False)
    return not uses_old(before) and not uses_old(after) and likeness.ratio() >= ALIKE


def _kept(was: Mapping[str, Any], now: Mapping[str, Any], path: Path) -> list[SchemaChange]:
    if bool(was.get("optionalOldSelf")) != bool(now.get("optionalOldSelf")):
        variant = "judges-new-objects" if now.get("optionalOldSelf") else "spares-new-objects"
        return [SchemaChange("SCH-42", variant, path, SchemaVerdict(writers=D), facts={"new": str(now["rule"])})]
    if {**was, "rule": ""} != {**now, "rule": ""} or was["rule"] != now["rule"]:
        return [harmless("SCH-41", "words", path, new=str(now["rule"]))]
    return []


def _added(rule: Mapping[str, Any], path: Path) -> SchemaChange:
    text = str(rule["rule"])
    if uses_old(text):
        words = EQUAL_OPTIONAL if rule.get("optionalOldSelf") else EQUAL
        edits = "new-objects-and-edits" if rule.get("optionalOldSelf") else "edits"
        variant = "changes" if normalised(text) in words else edits
        return SchemaChange("SCH-38t", variant, path, FOR_WRITERS, is_live=True, facts={"new": text})
    return narrowed("SCH-38", "added", path, new=text)


def mindful_of_rules(changes: list[SchemaChange], old: Schema) -> list[SchemaChange]:
    """The changes of one node without the examples that a rule of `old` refused all along."""
    rules = [rule for rule in maps(old.get(RULES)) if not uses_old(str(rule.get("rule")))]
    holder: Schema = {"type": "object", "properties": {"value": {**old, RULES: rules}}}
    found = []
    for change in changes:
        errors = []
        if rules and change.verdict == NARROWED and "counterexample" in change.facts and change.rule != "SCH-38":
            errors = rule_errors(holder, {"value": change.facts["counterexample"]}, None, None)
        is_judged = not any(words in str(error) for error in errors for words in NOT_JUDGED)
        if not is_judged or not any(error.path == "value" for error in errors):
            found.append(change)
        elif change.facts.get("limit") == "minLength" and change.facts["new"] == 1:
            found.append(change.without_example().judged(harmless, "rule-refuses-empty", rule="SCH-25n"))
        else:
            found.append(change.without_example())
    return found


def compare_junctors(old: Schema, new: Schema, path: Path, *, keeps_unknown: bool = False) -> list[SchemaChange]:
    """allOf, anyOf, oneOf and not at one node: as sets of branches, else by trying all combinations of their fields.

    `keeps_unknown` says that the old schema prunes nothing.
    """
    found: list[SchemaChange] = []
    for junctor, rule in JUNCTOR_RULES.items():
        if not is_same(old.get(junctor), new.get(junctor)):
            found += _branches(junctor, rule, (old.get(junctor), new.get(junctor)), path)
    if not is_same(old.get("not"), new.get("not")):
        found += _negation(old.get("not"), new.get("not"), path)
    open_ones = [change for change in found if change.verdict.severity is not S]
    if not open_ones:
        return found
    answer = inclusion(old, new, keeps_unknown=keeps_unknown)
    if answer.holds is None:
        return [_by_branch(change, old, new) for change in found]
    # The first of those at the node says what the table of all combinations says of them together.
    first = open_ones[0]
    if not answer.holds:
        decided = first.judged(narrowed, "some-objects-do-not", counterexample=answer.counterexample)
    elif inclusion(new, old).holds:
        decided = first.judged(harmless, "same-objects-fit")
    else:
        decided = first.judged(widened, "all-objects-fit")
    return [change for change in found if change.verdict == HARMLESS] + [decided]


def _by_branch(change: SchemaChange, old: Schema, new: Schema) -> SchemaChange:
    """Of patterns in anyOf their union; of one branch of allOf that became another what that branch accepts."""
    sides = _unions(old, new) if change.rule == "SCH-56" else _single(old, new) if change.rule == "SCH-55" else None
    if change.verdict != NOT_DECIDED or sides is None:
        return change
    found = compare_scalars(*sides, change.path)
    if any(it.verdict == NOT_DECIDED for it in found):
        return change
    refused = [it.facts["counterexample"] for it in found if "counterexample" in it.facts]
    for value in refused:
        if not validate(old, value) and validate(new, value):
            return change.judged(narrowed, counterexample=value)
    return change.judged(widened, "all-fits") if all(it.verdict.severity is S for it in found) else change


def _unions(old: Schema, new: Schema) -> tuple[Schema, Schema] | None:
    """Both anyOf as one pattern each, where their branches are patterns and nothing else."""
    unions = []
    for side in (old, new):
        branches = branches_of(side, "anyOf")
        patterns = [branch.get("pattern") for branch in branches if set(branch) <= {"pattern", "type"}]
        if len(patterns) != len(branches) or not all(patterns):
            return None
        unions.append({**side, "anyOf": None, "pattern": "|".join(f"(?:{pattern})" for pattern in patterns)})
    is_alone = not old.get("pattern") and not new.get("pattern")
    return (unions[0], unions[1]) if is_alone else None


def _single(old: Schema, new: Schema) -> tuple[Schema, Schema] | None:
    """The one branch that went from allOf and the one that came, where they limit a scalar."""
    before, after = ({go_json(plain(it)): it for it in branches_of(side, "allOf")} for side in (old, new))
    gone, come = ([one[text] for text in one if text not in other] for one, other in ((before, after), (after, before)))
    if len(gone) != 1 or len(come) != 1 or not {*gone[0], *come[0]} <= SCALAR_KEYWORDS | DOCS:
        return None
    kind = {"type": old.get("type")}
    return {**kind, **gone[0]}, {**kind, **come[0]}


def _branches(junctor: str, rule: str, sides: tuple[Any, Any], path: Path) -> list[SchemaChange]:
    listed = (side if isinstance(side, list) else () for side in sides)
    before, after = ({go_json(plain(branch)) for branch in side} for side in listed)
    gone, come = before - after, after - before
    if not gone and not come:
        # The same set of branches; only `oneOf` minds how often one is listed, for twice can never be once.
        first, second = (sorted(go_json(plain(branch)) for branch in side or ()) for side in sides)
        if junctor == "oneOf" and first != second:
            return [undecided(rule, "listed-otherwise", path)]
        return [harmless(rule, "same", path, junctor=junctor)]
    if not after:
        return [widened(rule, "removed", path, junctor=junctor)]
    if not before:
        return [narrowed(rule, "added", path, junctor=junctor, branches=len(after))]
    if junctor == "oneOf" or (gone and come):
        judge = undecided
    else:
        judge = narrowed if (come if junctor == "allOf" else gone) else widened
    return [judge(rule, "changed", path, junctor=junctor, removed=len(gone), added=len(come))]


def _negation(old: Any, new: Any, path: Path) -> list[SchemaChange]:
    if new is None:
        return [widened("SCH-58", "removed", path)]
    if old is None:
        return [narrowed("SCH-58", "added", path)]
    if is_same(plain(old), plain(new)):
        return [harmless("SCH-58", "words", path)]
    return [undecided("SCH-58", "changed", path)]


def plain(value: Any) -> Any:
    """A schema without what only people read, and with lists whose order means nothing in one order."""
    if isinstance(value, Mapping):
        found = {name: plain(entry) for name, entry in value.items() if name not in DOCS or isinstance(entry, Mapping)}
        for name in ("required", "enum"):
            if isinstance(found.get(name), list):
                found[name] = sorted(found[name], key=go_json)
        return found
    return [plain(entry) for entry in value] if isinstance(value, list | tuple) else value
