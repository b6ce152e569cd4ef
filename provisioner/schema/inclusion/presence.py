"""What required, allOf, anyOf, oneOf and not ask together, decided by trying every combination of fields.

A variable is a field that some branch speaks of: absent, or there with one of the values that enums name, or with
another one. Every other condition is an atom that may hold or not. Proofs over all combinations are exact; a
combination that refutes is one only where a real object shows it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from provisioner.schema.admission.validation import validate
from provisioner.schema.fields import NO_SCHEMA, Schema, branches_of, go_json, is_same, properties_of, schema_of
from provisioner.schema.inclusion.facets import smallest
from provisioner.schema.inclusion.languages import Exhausted, spend
from provisioner.schema.nodes import types
from provisioner.schema.verdicts import NARROWED, NOT_DECIDED, SchemaChange, harmless, narrowed, widened

MAX_COMBINATIONS = 1 << 16
MAX_TRIES = 3_000  # objects built to refute; most conditions are met by one of the first
JUNCTORS = ("allOf", "anyOf", "oneOf", "not")
SIZES = ("minProperties", "maxProperties")
LIMITS = frozenset({"SCH-08", "SCH-11", "SCH-25", "SCH-55", "SCH-56", "SCH-57", "SCH-58"})  # of objects
WORK_OF_CHOICE, WORK_OF_TRY = 60, 600
MAX_COUNTED = 12  # fields of which every combination is tried where their number matters
DOCS = frozenset({"description", "title", "example", "externalDocs", "$schema", "id"})
ASSUMED = frozenset({"type", "nullable", "default"})
ABSENT, OTHER = object(), object()
PRESERVE = "x-kubernetes-preserve-unknown-fields"

Place = tuple[str, ...]
Variable = tuple[Place, str]  # the place, and "" for its value or the condition as JSON
Choice = Mapping[Variable, Any]
Test = Callable[[Choice], bool]


@dataclass(frozen=True, slots=True)
class PresenceResult:
    """`holds` is None where nothing is proved. `counterexample` is accepted by the old node and not by the new."""

    holds: bool | None
    counterexample: Any = None


UNDECIDED = PresenceResult(None)


def inclusion(old: Schema, new: Schema, *, keeps_unknown: bool = False, is_whole: bool = False) -> PresenceResult:
    """Whether what `old` accepts and keeps satisfies the branches of `new` as well.

    With `is_whole` also which fields `new` itself requires, and how many. `keeps_unknown` says that fields without a
    schema are not pruned from what `old` accepts.
    """
    logic = _logic(old, is_whole=is_whole), _logic(new, is_whole=is_whole)
    # The fields of an object that has no others; none where there may be others, or too many.
    is_open = keeps_unknown or old.get(PRESERVE) is True or old.get("x-kubernetes-embedded-resource") is True
    is_closed = not is_open and old.get("additionalProperties") is None
    names = tuple(properties_of(old))
    countable = names if is_closed and len(names) <= MAX_COUNTED else ()
    for counted in dict.fromkeys((countable, ())):
        table = _Table(old, keeps_unknown, counted)
        for schema in logic:
            table.collect(schema, ())
        if table.size <= MAX_COMBINATIONS and _is_plain(table):
            try:
                defaults = [
                    [go_json((_at(side, place) or NO_SCHEMA).get("default")) for place in table.described]
                    for side in (old, new)
                ]
                # A default may put a field there, or take it away, between the two.
                return _decide(table, old, logic) if defaults[0] == defaults[1] else UNDECIDED
            except Exhausted:
                return UNDECIDED
    return UNDECIDED


def taken_together(changes: list[SchemaChange], old: Schema, new: Schema, *, keeps_unknown: bool) -> list[SchemaChange]:
    """The changes of an object's limits, judged by what all of them come to: a limit that is only written elsewhere
    narrows nothing. What cannot be decided stays as it was."""
    if not types(old) == types(new) == {"object"} or not is_same(old.get("enum"), new.get("enum")):
        return changes
    open_ones = [change for change in changes if change.verdict in (NARROWED, NOT_DECIDED) and change.rule in LIMITS]
    if not open_ones or not (len(changes) > 1 or {*JUNCTORS, *SIZES} & (old.keys() | new.keys())):
        return changes
    answer = inclusion(old, new, keeps_unknown=keeps_unknown, is_whole=True)
    is_equal = answer.holds and inclusion(new, old, keeps_unknown=keeps_unknown, is_whole=True).holds
    found = []
    for change in changes:
        if answer.holds is None or change not in open_ones:
            found.append(change)
        elif answer.holds:
            judge, proof = (harmless, "together-same") if is_equal else (widened, "together-all-fit")
            found.append(change.without_example().judged(judge, proof))
        elif change.verdict == NOT_DECIDED:
            found.append(change.judged(narrowed, counterexample=answer.counterexample))
        else:
            found.append(change)
    return found


def _decide(table: _Table, old: Schema, logic: tuple[Schema, Schema]) -> PresenceResult:
    tries, (before, after) = 0, (_compiled(side, (), table.counted) for side in logic)
    for choice in table.choices():
        spend(WORK_OF_CHOICE)
        if not before(choice) or after(choice) or not table.is_kept(choice):
            continue
        tries += 1
        spend(WORK_OF_TRY)
        if tries > MAX_TRIES:
            return UNDECIDED
        shown = _make_object(old, (), choice)
        if not validate(old, shown) and validate(logic[1], shown):
            return PresenceResult(False, shown)
    return PresenceResult(True) if not tries else UNDECIDED


def _logic(schema: Schema, *, is_whole: bool) -> Schema:
    names = (*JUNCTORS, *SIZES, "required") if is_whole else JUNCTORS
    return {name: value for name, value in schema.items() if name in names}


@dataclass(slots=True)
class _Table:
    """The variables, and what the old node says of them anyway."""

    base: Schema
    keeps_unknown: bool
    counted: tuple[str, ...] = ()
    variables: dict[Variable, list[Any]] = field(default_factory=dict)
    described: dict[Place, Schema | None] = field(default_factory=dict)

    @property
    def size(self) -> int:
        found = 1
        for domain in self.variables.values():
            found *= len(domain)
        return found

    def collect(self, schema: Schema, place: Place) -> None:
        """The variables that a branch speaks of."""
        for branch in _branches(schema):
            self.collect(branch, place)
        for name in schema.get("required") or ():
            self._field((*place, str(name)))
        for name, described in properties_of(schema).items():
            self._field((*place, name))
            self.collect(schema_of(described) or NO_SCHEMA, (*place, name))
        if self.counted and not place and any(schema.get(name) is not None for name in SIZES):
            for name in self.counted:
                self._field((name,))
        listed = schema.get("enum")
        if isinstance(listed, list) and place:
            domain = self.variables[place, ""]
            domain += [text for text in map(go_json, listed) if text not in domain]
        condition = _condition(schema, place, self.counted)
        if condition:
            self.variables.setdefault((place, condition), [False, True])

    def _field(self, place: Place) -> None:
        if (place, "") in self.variables:
            return
        node = _at(self.base, place)
        if node is None and self.keeps_unknown:
            node = NO_SCHEMA
        self.described[place] = node
        listed = (node or NO_SCHEMA).get("enum")
        named = list(dict.fromkeys(map(go_json, listed))) if isinstance(listed, list) and listed else [OTHER]
        self.variables[place, ""] = [ABSENT] if node is None else [ABSENT, *named]

    def choices(self) -> Iterator[dict[Variable, Any]]:
        names = list(self.variables)
        domains = []
        for place, condition in names:
            domain = self.variables[place, condition]
            node = self.described[place] if place and not condition else NO_SCHEMA
            listed = (node or NO_SCHEMA).get("enum")
            if node is None:
                domain = [ABSENT]
            elif isinstance(listed, list) and listed:
                known = {ABSENT, OTHER, *map(go_json, listed)}
                domain = [value for value in domain if value in known]
            domains.append(domain)
        for values in product(*domains):
            yield dict(zip(names, values, strict=True))

    def is_kept(self, choice: Choice) -> bool:
        """Whether an object can be so: fields only in fields that are there, and with what the old node requires."""
        for (place, condition), value in choice.items():
            if condition:
                continue
            has_parent = len(place) == 1 or choice[place[:-1], ""] is not ABSENT
            if value is not ABSENT and not has_parent:
                return False
            if value is ABSENT and has_parent:
                needed = (_at(self.base, place[:-1]) or NO_SCHEMA).get("required") or ()
                has_default = (self.described[place] or NO_SCHEMA).get("default") is not None
                if place[-1] in needed or has_default:
                    return False
        return True


def _branches(schema: Schema) -> Iterator[Schema]:
    for junctor in ("allOf", "anyOf", "oneOf"):
        yield from branches_of(schema, junctor)
    inner = schema_of(schema.get("not"))
    if inner is not None:
        yield inner


def _condition(schema: Schema, place: Place, counted: tuple[str, ...]) -> str:
    """What a branch asks beside fields and branches, as JSON; "" for nothing."""
    known = {"required", "properties", *JUNCTORS, *DOCS, *ASSUMED, *(("enum",) if place else SIZES if counted else ())}
    rest = {
        name: value for name, value in schema.items() if name not in known and value is not None and value is not False
    }
    if rest and schema.get("type"):
        rest["type"] = schema["type"]
    return go_json(rest) if rest else ""


def _compiled(schema: Schema, place: Place, counted: tuple[str, ...]) -> Test:
    """Whether a branch accepts the value at `place`, which is there, as a function of the choice."""
    needed = [((*place, str(name)), "") for name in schema.get("required") or ()]
    fields = [
        (((*place, name), ""), _compiled(schema_of(described) or NO_SCHEMA, (*place, name), counted))
        for name, described in properties_of(schema).items()
    ]
    tests = [*_own_tests(schema, place, counted), *_junctors(schema, place, counted)]

    def holds(choice: Choice) -> bool:
        if any(choice[variable] is ABSENT for variable in needed):
            return False
        if not all(choice[variable] is ABSENT or test(choice) for variable, test in fields):
            return False
        return all(test(choice) for test in tests)

    return holds


def _own_tests(schema: Schema, place: Place, counted: tuple[str, ...]) -> Iterator[Test]:
    listed = schema.get("enum")
    if place and isinstance(listed, list):
        known = set(map(go_json, listed))
        yield lambda choice: choice[place, ""] in known
    low, high = (schema.get(name) for name in SIZES)
    if counted and not place and (low is not None or high is not None):
        most = len(counted) if high is None else high
        yield lambda choice: (low or 0) <= sum(choice[(name,), ""] is not ABSENT for name in counted) <= most
    condition = _condition(schema, place, counted)
    if condition:
        yield lambda choice: bool(choice[place, condition])


def _junctors(schema: Schema, place: Place, counted: tuple[str, ...]) -> Iterator[Test]:
    all_of, any_of, one_of = (
        [_compiled(branch, place, counted) for branch in branches_of(schema, junctor)]
        for junctor in ("allOf", "anyOf", "oneOf")
    )
    yield from all_of
    if any_of:
        yield lambda choice: any(test(choice) for test in any_of)
    if one_of:
        yield lambda choice: sum(test(choice) for test in one_of) == 1
    inner = schema_of(schema.get("not"))
    if inner is not None:
        refused = _compiled(inner, place, counted)
        yield lambda choice: not refused(choice)


def _at(schema: Schema, place: Place) -> Schema | None:
    """The node that describes `place`; None where the field would be pruned."""
    node: Schema | None = schema
    for name in place:
        if node is None:
            return None
        inner = properties_of(node).get(name)
        if inner is not None:
            node = schema_of(inner) or NO_SCHEMA
        elif node.get(PRESERVE) is True or node.get("additionalProperties") is True:
            node = NO_SCHEMA
        else:
            node = schema_of(node.get("additionalProperties"))
    return node


def _make_object(schema: Schema, place: Place, choice: Choice) -> Any:
    """A value that is as `choice` says, its other parts as small as the schema lets them be."""
    value = choice.get((place, ""))
    if isinstance(value, str):
        return json.loads(value)
    below = [inner for inner, condition in choice if not condition and inner and inner[:-1] == place]
    found = smallest(schema)
    if not below or not isinstance(found, dict):
        return found
    found = {name: it for name, it in found.items() if (*place, name) not in below}
    for inner in below:
        if choice[inner, ""] is not ABSENT:
            found[inner[-1]] = _make_object(_at(schema, inner[-1:]) or NO_SCHEMA, inner, choice)
    return found


def _is_plain(table: _Table) -> bool:
    """Whether all that has fields of its own is an object and never null, so that `required` speaks of it."""
    parents = {place[:-1] for place in table.described}
    nodes = (_at(table.base, place) or NO_SCHEMA for place in parents)
    return all(node.get("type") == "object" and not node.get("nullable") for node in nodes)
