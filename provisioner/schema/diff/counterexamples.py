"""A value that is lost, for narrowings that were found by reading: candidates are tried on both schemas.

A candidate is shown only where the old schema takes it and the new one does not, lists, CEL rules and pruning included.
Where none is proved, none is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from provisioner.schema.admission.embedded import embedded_errors
from provisioner.schema.admission.lists import list_errors
from provisioner.schema.admission.pruning import TYPE_META, prepared
from provisioner.schema.admission.rules import RULES, rule_errors
from provisioner.schema.admission.validation import validate
from provisioner.schema.allowance import Exhausted, limited
from provisioner.schema.fields import FieldError, child, go_json
from provisioner.schema.inclusion.examples import SAMPLES, smallest
from provisioner.schema.inclusion.facets import with_limit
from provisioner.schema.inclusion.languages import Undecided
from provisioner.schema.nodes import additional_of, hoisted, types
from provisioner.schema.reading import NO_SCHEMA, Schema, properties_of, schema_of
from provisioner.schema.verdicts import ITEMS, NARROWED, PRUNED, VALUES, Path, SchemaChange

LIST_TYPE = "x-kubernetes-list-type"
NEVER: Schema = {"not": {}}
PRESERVE, INT_OR_STRING = "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"
KEPT: Schema = {PRESERVE: True}
RESOURCE = {"apiVersion": "example.com/v1", "kind": "Example", "metadata": {"name": "example"}}
ANY_KEY = "x"
OF_EACH_TYPE: tuple[Any, ...] = (0, "x", {}, [], True, 0.5)
FIELD = "value"  # under which a value that is no whole resource is judged
HOLDERS = frozenset({"SCH-08", "SCH-11"})  # their path ends with what is missing: the object around it is shown
BY_PRUNING = frozenset({"SCH-07", "SCH-19", "SCH-51", "SCH-53"})
BY_RULE = "SCH-38"
BY_TYPE = frozenset({"SCH-13", "SCH-15", "SCH-17"})
BY_UNNAMED = "SCH-51"  # it is about what the keys hold that the node does not name
NOT_JUDGED = ("could not be evaluated", "compile error")
JUNCTORS = ("allOf", "anyOf", "oneOf")
MAX_CHANGES, MAX_TRIES, MAX_CANDIDATES = 200, 1_000, 36
MAX_LEVELS, MAX_FIELDS, MAX_BELOW, MAX_BRANCHES, MAX_SIZE = 3, 8, 6, 6, 64
MAX_BYTES, MAX_LITERALS = 2_000, 8
WORK = 40_000
LITERAL = re.compile(r"'([^'\\]*)'|\"([^\"\\]*)\"|(?<![\w.])(\d{1,15}(?:\.\d{1,9})?)")

Judged = tuple[Any, list[FieldError], list[str]]
Judge = Callable[[Schema, Any], Judged]


def exemplified(
    changes: list[SchemaChange], old: Schema, new: Schema, preserved: tuple[bool, bool]
) -> list[SchemaChange]:
    """The changes from `old` to `new`; narrowings that showed no lost value have one now where one was proved.

    The value stands at the change's path; where that ends with a missing field, or with the keys of a map that are
    pruned now, it is the object around it. `preserved` is as in `compare_schemas`.
    """
    found, tries, left = [], _Tries(MAX_TRIES), MAX_CHANGES
    for change in changes:
        if left and _lacks_one(change):
            left -= 1
            found.append(_shown(change, _Pair.of(change, old, new, preserved), tries))
        else:
            found.append(change)
    return found


def _lacks_one(change: SchemaChange) -> bool:
    is_narrower = change.verdict == NARROWED or (change.rule == "SCH-19" and change.is_live)
    is_summary = change.rule == "SCH-07" and not change.path
    return is_narrower and not is_summary and "counterexample" not in change.facts and change.path[:1] != ("metadata",)


def _shown(change: SchemaChange, pair: _Pair | None, tries: _Tries) -> SchemaChange:
    if pair is None:
        return change
    second: list[_Lost] = []
    with limited(WORK):
        for value in _candidates(pair.old, pair.new):
            if not tries.take():
                break
            lost = pair.lost(value)
            if lost is not None and lost.is_own:
                return lost.shown(change)
            second += [lost] if lost is not None and change.rule != BY_RULE else []
    return second[0].shown(change) if second else change


@dataclass(slots=True)
class _Tries:
    left: int

    def take(self) -> bool:
        self.left -= 1
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class _Lost:
    """A value as it was stored. `is_own` says that the node itself refuses it, and not a field below; `is_pruned` that
    it is taken, without some of it."""

    value: Any
    is_own: bool
    is_pruned: bool = False

    def shown(self, change: SchemaChange) -> SchemaChange:
        facts = {**change.facts, "counterexample": self.value}
        return replace(change, facts={**facts, "lost": PRUNED} if self.is_pruned else facts)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Both schemas of one node, and what proves a value lost there."""

    old: Schema
    new: Schema
    missing: str
    is_root: bool
    may_prune: bool
    keeps_all: bool
    rule: str

    @classmethod
    def of(cls, change: SchemaChange, old: Schema, new: Schema, preserved: tuple[bool, bool]) -> _Pair | None:
        path, missing = change.path, ""
        if change.rule in HOLDERS:
            path, missing = path[:-1], str(path[-1])
        elif change.rule == "SCH-19" and path[-1:] == (VALUES,):
            path = path[:-1]
        before, after = _node(old, path, keeps=preserved[0]), _node(new, path, keeps=preserved[1])
        if before is None or after is None:
            return None
        after = with_limit(before, after, change)
        if change.rule in BY_TYPE and "type" in after:
            # What another change at the node refuses is no example of this one.
            after = {**before, "type": after["type"], INT_OR_STRING: after.get(INT_OR_STRING)}
        if change.rule == BY_RULE:
            after = {**after, RULES: [{"rule": change.facts["new"]}]}
        may_prune = change.rule in BY_PRUNING and not preserved[1]
        return cls(before, after, missing, not path, may_prune, preserved[1], change.rule)

    def lost(self, value: Any) -> _Lost | None:
        stored, errors, pruned = self._judged(self.old, value)
        if errors or pruned:
            return None
        _, errors, pruned = self._judged(self.new, stored, _by_rules if self.rule == BY_RULE else _judged)
        if self.missing:
            at = self.missing if self.is_root else child(FIELD, self.missing)
            return _Lost(stored, is_own=True) if any(it.path == at and it.stops_rules for it in errors) else None
        if any(text in error.message for error in errors for text in NOT_JUDGED) or (pruned and self.keeps_all):
            return None
        if errors:
            return _Lost(stored, is_own=any(self._is_own(it.path) for it in errors))
        return _Lost(stored, is_own=True, is_pruned=True) if pruned and self.may_prune else None

    def _is_own(self, path: str) -> bool:
        """Whether an error is about the node itself, or about a key that it does not name where the change is too."""
        at = "" if self.is_root else FIELD
        if self.rule == BY_UNNAMED and path == child(at, ANY_KEY):
            return ANY_KEY not in properties_of(self.new)
        return path in ("", "<nil>", at)

    def _judged(self, schema: Schema, value: Any, judge: Judge | None = None) -> Judged:
        """The value as it would be stored, its errors, and what was pruned of it."""
        if self.is_root:
            if not isinstance(value, dict):
                return value, [], [FIELD]
            after, errors, pruned = (judge or _judged)(schema, {**RESOURCE, **value})
            return {name: it for name, it in after.items() if name not in TYPE_META or name in value}, errors, pruned
        holder = {"type": "object", "properties": {FIELD: schema}}
        after, errors, pruned = (judge or _judged)(holder, {FIELD: value})
        if FIELD not in after or (after[FIELD] is None) != (value is None):
            return value, errors, [FIELD]
        return after[FIELD], errors, pruned


def _by_rules(schema: Schema, obj: Any) -> Judged:
    """By the rules alone: a value that something else refuses says nothing of a rule."""
    after, pruned = prepared(schema, obj)
    return after, rule_errors(schema, after, None, None), pruned


def _judged(schema: Schema, obj: Any) -> Judged:
    """As `admit` does, which would look for rules in all of a large schema first."""
    after, pruned = prepared(schema, obj)
    errors = validate(schema, after)
    if not errors:
        errors = [*list_errors(schema, after), *embedded_errors(schema, after)]
    if not any(error.stops_rules for error in errors):
        errors += rule_errors(schema, after, None, None)
    return after, errors, pruned


def _node(schema: Schema, path: Path, *, keeps: bool) -> Schema | None:
    """What a schema says of the values at a path; None where there are none, or where that is not clear."""
    node = schema
    for part in path:
        node = hoisted(node)
        known = properties_of(node)
        if part in (ITEMS, VALUES) and part in known:
            return None
        below = node.get("items") if part == ITEMS else known.get(str(part), additional_of(node))
        is_kept = keeps or part == ITEMS or node.get(PRESERVE) is True
        if below is None and not is_kept:
            return None
        unsaid = NEVER if below is False else NO_SCHEMA if below is True or part == ITEMS else KEPT
        node = schema_of(below) or unsaid
    return node


# Candidates


def _candidates(old: Schema, new: Schema) -> Iterator[Any]:
    """Values near to what both schemas say, simple ones first, each once."""
    known: set[str] = set()
    for value in islice(_guarded(_of_pair(old, new)), 4 * MAX_CANDIDATES):
        text = go_json(value)
        if text not in known and len(text) <= MAX_BYTES and len(known) < MAX_CANDIDATES:
            known.add(text)
            yield value


def _guarded(values: Iterable[Any]) -> Iterator[Any]:
    """The values until there is one that takes too long to find."""
    try:
        yield from values
    except (Exhausted, Undecided):
        return


def _of_pair(old: Schema, new: Schema) -> Iterator[Any]:
    sizes, literals = sorted(_sizes(old, new)), _literals(new)
    kinds = types(old)
    if "object" in kinds:
        yield from _objects(old, new, sizes)
    if "array" in kinds:
        yield from _lists(old, new, sizes)
    yield from _scalars(old, new, kinds, literals)
    if not kinds:
        yield from ({}, {"x": "x"}, [], ["x"], [{}], {"x": {}}, 0, "x", True, 0.5)


def _scalars(old: Schema, new: Schema, kinds: frozenset[str], literals: list[Any]) -> Iterator[Any]:
    if not kinds & {"integer", "number", "string", "boolean"}:
        return
    yield from islice(old.get("enum") or (), MAX_BELOW)
    yield smallest(old)
    yield from (smallest({**old, **branch}) for branch in _branches(new))
    if "boolean" in kinds:
        yield from (True, False)
    if kinds & {"integer", "number"}:
        yield from _numbers(old, new, literals)
    if "string" in kinds:
        texts = [it for it in literals if isinstance(it, str)]
        yield from (*texts, *("x" * size for size in sorted(_sizes(old, new))), *SAMPLES)


def _numbers(old: Schema, new: Schema, literals: list[Any]) -> Iterator[Any]:
    yield from (0, 0.5, 1, -1)
    bounds = [node.get(name) for node in (old, new) for name in ("minimum", "maximum", "multipleOf")]
    for bound in (*bounds, *literals):
        if isinstance(bound, int | float):
            yield from (bound, bound + 1, bound - 1, bound + 0.5)


def _lists(old: Schema, new: Schema, sizes: list[int]) -> Iterator[Any]:
    pool = _pool(schema_of(old.get("items")) or NO_SCHEMA, MAX_SIZE if sizes else MAX_BELOW)
    if new.get(LIST_TYPE) in ("set", "map"):
        yield from ([value, value] for value in pool[:MAX_BELOW])
    yield []
    yield from ([value] for value in pool[:MAX_BELOW])
    for size in sizes:
        yield pool[:size]
        yield [pool[0]] * size


def _objects(old: Schema, new: Schema, sizes: list[int]) -> Iterator[Any]:
    base = _smallest_object(old)
    yield base
    yield from ({**base, **more} for more in _of_any_key(old, sizes))
    yield from _of_branches(old, new, base)
    pools = {
        name: _pool(schema_of(described) or NO_SCHEMA, MAX_BELOW)
        for name, described in islice(properties_of(old).items(), MAX_FIELDS)
    }
    yield from ({**base, **{name: pool[min(place, len(pool) - 1)] for name, pool in pools.items()}} for place in (0, 1))
    yield from ({**base, name: pool[0]} for name, pool in pools.items())
    yield from ({**base, **{name: pool[0] for name, pool in islice(pools.items(), size)}} for size in sizes)
    yield from ({**base, name: value} for name, pool in pools.items() for value in pool[1:])


def _of_any_key(old: Schema, sizes: list[int]) -> Iterator[dict[str, Any]]:
    """What an object with keys of one's own choice may hold."""
    values_of = additional_of(old)
    extra = schema_of(values_of)
    if extra is not None or values_of is True or old.get(PRESERVE) is True:
        values = _pool(extra, MAX_BELOW) if extra else list(OF_EACH_TYPE)
        yield from ({ANY_KEY: value} for value in values)
        yield from ({f"{ANY_KEY}{place}": values[0] for place in range(size)} for size in sizes)


def _pool(node: Schema, size: int) -> list[Any]:
    """Some values of a node, at least one."""
    return list(islice(_samples(node, 1), size))


def _of_branches(old: Schema, new: Schema, base: dict[str, Any]) -> Iterator[Any]:
    """Objects with the fields that the branches of the new schema speak of, which `not` forbids and others lack."""
    known = properties_of(old)
    for branch in _branches(new):
        asked = properties_of(branch)
        names = dict.fromkeys([*(branch.get("required") or ()), *asked])
        fields = {name: {**(schema_of(known.get(name)) or {}), **(schema_of(asked.get(name)) or {})} for name in names}
        yield {**base, **{str(name): smallest(described) for name, described in fields.items()}}


def _branches(schema: Schema) -> Iterator[Schema]:
    listed = [schema.get("not"), *(branch for junctor in JUNCTORS for branch in schema.get(junctor) or ())]
    return islice((branch for branch in listed if isinstance(branch, Mapping)), MAX_BRANCHES)


def _samples(node: Schema, depth: int) -> Iterator[Any]:
    """Different values of a node below, simple ones first."""
    kinds = types(node)
    yield smallest(node)
    if "object" in kinds:
        yield from _sample_objects(node, depth)
    elif "array" in kinds:
        items = schema_of(node.get("items"))
        if items is not None and depth < MAX_LEVELS:
            yield from ([value] for value in islice(_samples(items, depth + 1), MAX_BELOW))
    elif node.get("enum"):
        yield from node["enum"][:MAX_SIZE]
    else:
        yield from _simple(node, kinds)


def _sample_objects(node: Schema, depth: int) -> Iterator[Any]:
    if depth >= MAX_LEVELS:
        return
    base, extra = _smallest_object(node), schema_of(additional_of(node))
    for name, described in islice(properties_of(node).items(), MAX_BELOW):
        below = _samples(schema_of(described) or NO_SCHEMA, depth + 1)
        yield from ({**base, name: value} for value in islice(below, MAX_BELOW))
    if extra is not None:
        yield from ({ANY_KEY: value} for value in islice(_samples(extra, depth + 1), MAX_BELOW))


def _smallest_object(node: Schema) -> dict[str, Any]:
    """The smallest value of an object; an empty one where its default or enum holds something else."""
    found = smallest(node)
    return found if isinstance(found, dict) else {}


def _simple(node: Schema, kinds: frozenset[str]) -> Iterator[Any]:
    if "boolean" in kinds:
        yield from (True, False)
    if kinds & {"integer", "number"}:
        low = node.get("minimum")
        start = int(low) if isinstance(low, int | float) else 0
        yield from (start + step for step in range(MAX_SIZE))
    if "string" in kinds or not kinds:
        yield from ("x", "", *SAMPLES[2:])
        yield from (f"x{place}" for place in range(MAX_SIZE))


def _sizes(old: Schema, new: Schema) -> set[int]:
    """How many items, fields or characters are too many or too few by one of the two."""
    names = [f"{side}{what}" for side in ("min", "max") for what in ("Length", "Items", "Properties")]
    limits = [int(node[name]) for node in (old, new) for name in names if isinstance(node.get(name), int | float)]
    limits += [int(it) for it in _literals(new) if isinstance(it, int | float)]
    return {size for limit in limits for size in (limit - 1, limit, limit + 1) if 0 <= size <= MAX_SIZE}


def _literals(node: Schema) -> list[Any]:
    """The texts and numbers that the rules at a node speak of."""
    rules = [str(rule.get("rule", "")) for rule in node.get(RULES) or () if isinstance(rule, Mapping)]
    found = (match for rule in rules for match in LITERAL.finditer(rule))
    return [_literal(match) for match in islice(found, MAX_LITERALS)]


def _literal(match: re.Match[str]) -> Any:
    number = match[3]
    if number:
        return float(number) if "." in number else int(number)
    return match[1] or match[2] or ""
