"""Scalar limits of a schema compared as sets of values, and the smallest value that a schema seems to ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import re2

from provisioner.regexes import BadRegularExpression
from provisioner.schema.admission import validation
from provisioner.schema.admission.validation import validate
from provisioner.schema.fields import DEEPEST, NO_SCHEMA, Schema, go_json, is_same, properties_of, schema_of
from provisioner.schema.formats import fits, honoured, matches, normalised
from provisioner.schema.inclusion.languages import GIVEN_UP, Inclusion, inclusion
from provisioner.schema.verdicts import (
    NARROWED,
    Path,
    SchemaChange,
    harmless,
    narrowed,
    undecided,
    widened,
    widened_for_readers,
)

NOTHING = r"[^\x00-\x{10FFFF}]"
MAX_ITEMS = 32
SAMPLES = (
    "",
    "x",
    "a b",
    "a@example.com",
    "example.com",
    "10.0.0.1",
    "10.0.0.0/8",
    "::1",
    "2001-02-03",
    "2001-02-03T04:05:06Z",
    "1h",
    "https://example.com/",
    "c2VjcmV0",
    "#ffffff",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
    "00:00:5e:00:53:01",
    "507f1f77bcf86cd799439011",
)


def smallest(schema: Schema, depth: int = 0) -> Any:
    """A small value of the schema's type, with what it requires; not always one that the schema accepts."""
    if schema.get("default") is not None:
        return schema["default"]
    listed = schema.get("enum")
    if isinstance(listed, list) and listed:
        return listed[0]
    kind = schema.get("type")
    if kind == "object" or properties_of(schema):
        known, needed = properties_of(schema), schema.get("required") or ()
        names = [str(name) for name in needed] if depth < DEEPEST else []
        return {name: smallest(schema_of(known.get(name)) or NO_SCHEMA, depth + 1) for name in names}
    if kind == "array":
        items = smallest(schema_of(schema.get("items")) or NO_SCHEMA, depth + 1) if depth < DEEPEST else None
        return [items] * min(int(schema.get("minItems") or 0), MAX_ITEMS)
    if kind in ("integer", "number") or schema.get("x-kubernetes-int-or-string"):
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is not None:
            return low + (1 if schema.get("exclusiveMinimum") else 0)
        if high is not None:
            return high - (1 if schema.get("exclusiveMaximum") else 0)
        return schema.get("multipleOf") or 0
    longest = math.inf if schema.get("maxLength") is None else schema["maxLength"]
    shortest = int(schema.get("minLength") or 0)
    return True if kind == "boolean" else text_of(str(schema.get("pattern") or ""), shortest, longest) or ""


def text_of(pattern: str, shortest: int = 0, longest: float = math.inf) -> str | None:
    """The shortest text within the lengths that matches `pattern`; None where none was found."""
    return inclusion(pattern, NOTHING, shortest, longest).counterexample


INT_RANGES = {
    "int32": (validation.INT32_MIN, validation.INT32_MAX),
    "int64": (validation.INT64_MIN, validation.INT64_MAX),
}


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers between two limits, each included or not."""

    low: float = -math.inf
    high: float = math.inf
    is_open_low: bool = False
    is_open_high: bool = False

    def holds(self, other: Interval) -> bool:
        """Whether every number of `other` lies in this interval."""
        above = other.low > self.low or (other.low == self.low and (other.is_open_low or not self.is_open_low))
        below = other.high < self.high or (other.high == self.high and (other.is_open_high or not self.is_open_high))
        return (above and below) or other.is_empty

    @property
    def is_empty(self) -> bool:
        return self.low > self.high or (self.low == self.high and (self.is_open_low or self.is_open_high))

    def meet(self, other: Interval) -> Interval:
        low, is_open_low = max((self.low, self.is_open_low), (other.low, other.is_open_low))
        high, is_closed = min((self.high, not self.is_open_high), (other.high, not other.is_open_high))
        return Interval(low, high, is_open_low, not is_closed)


def types_of(schema: Schema) -> tuple[str, ...]:
    """The types of a node that are written down; none where it may be anything."""
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    kind = schema.get("type")
    return (kind,) if isinstance(kind, str) else ()


def interval(schema: Schema) -> Interval:
    """The numbers within minimum and maximum; for integers the limits are whole and included."""
    low, high = schema.get("minimum"), schema.get("maximum")
    is_open_low = low is not None and schema.get("exclusiveMinimum") is True
    is_open_high = high is not None and schema.get("exclusiveMaximum") is True
    found = Interval(-math.inf if low is None else low, math.inf if high is None else high, is_open_low, is_open_high)
    if schema.get("type") != "integer":
        return found
    if math.isfinite(found.low):
        found = Interval(
            math.floor(found.low) + 1 if is_open_low else math.ceil(found.low), found.high, False, is_open_high
        )
    if math.isfinite(found.high):
        top = math.ceil(found.high) - 1 if is_open_high else math.floor(found.high)
        found = Interval(found.low, top, found.is_open_low, False)
    return found


def type_range(schema: Schema) -> Interval:
    """What type and format allow anyway."""
    if schema.get("type") != "integer":
        return Interval()
    low, high = INT_RANGES.get(str(schema.get("format") or ""), INT_RANGES["int64"])
    return Interval(low, high)


def beyond(stored: Interval, after: Interval) -> float | None:
    """A number that was allowed and is not any more, where one is at hand."""
    candidates = [stored.low, stored.high]
    if math.isfinite(after.low):
        candidates += [after.low, after.low - 1]
    if math.isfinite(after.high):
        candidates += [after.high, after.high + 1]
    for number in candidates:
        point = Interval(number, number)
        if math.isfinite(number) and stored.holds(point) and not after.holds(point):
            return number
    return None


LENGTHS = {"Length": "string", "Items": "array", "Properties": "object"}
LONGEST_EXAMPLE, LONGEST_PLAIN_EXAMPLE = 256, 2_000
# What fits the first fits the second.
STRICTER_FORMATS = frozenset((f"uuid{number}", "uuid") for number in "345") | frozenset(
    (("isbn10", "isbn"), ("isbn13", "isbn"), ("k8sshortname", "k8slongname"))
)
SCALAR_KEYWORDS = frozenset(
    ("type", "format", "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
) | frozenset(("minLength", "maxLength", "x-kubernetes-int-or-string"))


def compare_scalars(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
    """Everything that limits a string, number, or the size of a list or object at one node."""
    found = _enum(old, new, path)
    found += _bounds(old, new, path) + _lengths(old, new, path) + _multiple_of(old, new, path)
    found += _pattern(old, new, path) + _format(old, new, path)
    return [_with_example(change, old, new) if change.verdict == NARROWED else change for change in found]


def _with_example(change: SchemaChange, old: Schema, new: Schema) -> SchemaChange:
    """A narrowing with a value that all of `old` accepts and `new` does not; with none where none is at hand."""
    new = with_limit(old, new, change)
    facts = {name: it for name, it in change.facts.items() if name != "counterexample"}
    bounds = [side.get(name) for side in (old, new) for name in ("minimum", "maximum", "multipleOf")]
    near = [bound + step for bound in bounds if isinstance(bound, int | float) for step in (0, 1, -1, 0.5)]
    for value in [change.facts.get("counterexample"), *(old.get("enum") or ()), *near, *SAMPLES, 0, 1, -1, 0.5, True]:
        if value is not None and not validate(old, value) and validate(new, value):
            return replace(change, facts={**facts, "counterexample": value})
    return replace(change, facts=facts)


def with_limit(old: Schema, new: Schema, change: SchemaChange) -> Schema:
    """What is to refuse a value that shows `change`: where it is about one limit, that limit and none beside it."""
    limit = change.facts.get("limit")
    return {**old, limit: new.get(limit)} if limit else new


def _enum(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
    before, after = _enum_values(old), _enum_values(new)
    if before is None and after is None:
        return []
    if before is None:
        allowed = after or {}
        if old.get("type") == "boolean" and {"true", "false"} <= allowed.keys():
            return [harmless("SCH-20", "both-booleans", path)]
        if types_of(old) == ("string",) and old.get("pattern") and not old.get("nullable"):
            texts = [f"^{re2.escape(it)}$" for it in allowed.values() if isinstance(it, str)]
            if texts and _inclusion(old, "|".join(texts)).holds:
                return [harmless("SCH-20", "all-of-pattern", path)]
        return [narrowed("SCH-20", "added", path, allowed=list(allowed.values()))]
    if after is None:
        return [widened_for_readers("SCH-23", "any", path)]
    gone = [before[text] for text in before if text not in after]
    come = [after[text] for text in after if text not in before]
    found = []
    if gone:
        found.append(narrowed("SCH-21", "removed", path, removed=gone, counterexample=gone[0]))
    if come:
        found.append(widened_for_readers("SCH-22", "added", path, added=come))
    if not gone and not come and not is_same(old.get("enum"), new.get("enum")):
        found.append(harmless("SCH-24", "reordered", path))
    return found


def _enum_values(schema: Schema) -> dict[str, Any] | None:
    listed = schema.get("enum")
    return {go_json(value): value for value in listed} if isinstance(listed, list) and listed else None


def _bounds(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
    names = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
    if all(old.get(name) == new.get(name) for name in names):
        return []
    before, after = interval(old), interval(new)
    stored, accepted = before.meet(type_range(old)), after.meet(type_range(new))
    is_exclusive = any(old.get(name) != new.get(name) for name in names[2:])
    rule = "SCH-26" if is_exclusive else "SCH-25"
    facts = {"old": _range_facts(old), "new": _range_facts(new)}
    if "string" in types_of(old) and not {"integer", "number"} & set(types_of(old)):
        return [harmless("SCH-25n", "of-no-number", path)]
    if not after.holds(stored):
        return [narrowed(rule, "bounds", path, **facts, counterexample=beyond(stored, after))]
    if not before.holds(accepted):
        return [widened("SCH-26" if is_exclusive else "SCH-25r", "bounds", path, **facts)]
    return [harmless("SCH-26" if is_exclusive else "SCH-25n", "same-bounds", path)]


def _range_facts(schema: Schema) -> dict[str, Any]:
    names = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
    return {name: schema[name] for name in names if schema.get(name) is not None}


def _lengths(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
    found = []
    for noun, kind in LENGTHS.items():
        applies = _may_be(new, kind) and _may_be(old, kind)
        for name in (f"min{noun}", f"max{noun}"):
            limits = old.get(name), new.get(name)
            if limits[0] != limits[1]:
                change = _length(name, limits, path, applies=applies)
                found.append(_exemplified(change, name, old, new) if change.verdict == NARROWED else change)
    return found


def _exemplified(change: SchemaChange, name: str, old: Schema, new: Schema) -> SchemaChange:
    """With a text that is too long or too short now; without effect where the old pattern accepts none such."""
    if name.startswith("min") and not old.get(name) and name != "minLength":
        return replace(change, facts={**change.facts, "counterexample": [] if name == "minItems" else {}})
    if not name.endswith("Length"):
        return change
    shortest, longest = int(old.get("minLength") or 0), old.get("maxLength")
    if name == "minLength":
        bounds = shortest, min(int(new[name]) - 1, math.inf if longest is None else longest)
    else:
        bounds = max(shortest, int(new[name]) + 1), math.inf if longest is None else longest
    pattern = str(old.get("pattern") or "")
    found = GIVEN_UP
    if bounds[0] <= LONGEST_EXAMPLE:
        found = inclusion(pattern, NOTHING, *bounds)
    elif not pattern and bounds[0] <= LONGEST_PLAIN_EXAMPLE:
        found = Inclusion(False, "x" * int(bounds[0]))
    if found.holds and not old.get("x-kubernetes-int-or-string"):
        return change.judged(harmless, "pattern-accepts-the-same", rule="SCH-25n")
    if found.counterexample is None:
        return change
    return replace(change, facts={**change.facts, "counterexample": found.counterexample})


def _length(name: str, limits: tuple[Any, Any], path: Path, *, applies: bool) -> SchemaChange:
    before, after = limits
    facts = {"limit": name, "old": before, "new": after}
    if name.startswith("min"):
        before, after = -(before or 0), -(after or 0)
    was = math.inf if before is None else before
    now = math.inf if after is None else after
    if not applies or was == now:
        return harmless("SCH-25n", "limit", path, **facts, proof="no-effect")
    return narrowed("SCH-25", "limit", path, **facts) if now < was else widened("SCH-25r", "limit", path, **facts)


def _may_be(schema: Schema, kind: str) -> bool:
    types = types_of(schema)
    return not types or kind in types


def _multiple_of(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
    before, after = old.get("multipleOf"), new.get("multipleOf")
    if before == after:
        return []
    if after is None:
        return [widened("SCH-27", "removed", path, old=before or 0)]
    if before is None:
        is_free = after == 1 and new.get("type") == "integer"
        return [(harmless if is_free else narrowed)("SCH-27", "multiple", path, new=after)]
    if _divides(after, before):
        return [widened("SCH-27", "multiple", path, new=after)]
    return [narrowed("SCH-27", "multiple", path, new=after, counterexample=before)]


def _divides(factor: float, of: float) -> bool:
    """Whether the API server takes every multiple of one number for a multiple of the other.

    Whole numbers it divides by the whole part of the factor, and takes none where that is nothing.
    """
    if of <= 0 or factor <= 0 or (Fraction(str(of)) / Fraction(str(factor))).denominator != 1:
        return False
    return int(of) == 0 or (int(factor) > 0 and int(of) % int(factor) == 0)


def _pattern(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
    before, after = str(old.get("pattern") or ""), str(new.get("pattern") or "")
    if before == after:
        return []
    facts: dict[str, Any] = {"old": before, "new": after}
    if not after or not _may_be(new, "string") or not _may_be(old, "string"):
        return [widened("SCH-31", "removed", path, **facts)]
    change = narrowed("SCH-30" if before else "SCH-29", "pattern", path, **facts)
    kept = _inclusion(old, after)
    if kept.holds:
        back = _inclusion(new, before)
        if back.holds:
            return [harmless(change.rule, "same", path, **facts)]
        return [widened(change.rule, "wider", path, **facts, example=back.counterexample)]
    if kept.holds is False:
        return [change.judged(narrowed, counterexample=kept.counterexample)]
    return [change.judged(undecided, "not-decided")]


def _inclusion(old: Schema, outer: str) -> Inclusion:
    """Whether all texts that `old` allows match `outer`; what cannot be proved is looked for among samples."""
    inner = str(old.get("pattern") or "")
    limit = old.get("maxLength")
    found = inclusion(inner, outer, int(old.get("minLength") or 0), math.inf if limit is None else limit)
    if found.holds:
        return found
    samples = SAMPLES if found.counterexample is None else (found.counterexample,)
    stored = {**{name: value for name, value in old.items() if name in SCALAR_KEYWORDS}, "type": "string"}
    refused = next((text for text in samples if not validate(stored, text) and not _matches(outer, text)), None)
    if refused is not None:
        return Inclusion(False, refused)
    is_shown = found.counterexample is not None and not _matches(outer, found.counterexample)
    return found if is_shown else Inclusion(None)


def _matches(pattern: str, text: str) -> bool:
    try:
        return matches(pattern, text)
    except BadRegularExpression:
        return False


def _format(old: Schema, new: Schema, path: Path) -> list[SchemaChange]:
    if (old.get("format") or "") == (new.get("format") or ""):
        return []
    types = types_of(new)
    kind = types[0] if len(types) == 1 else ""
    before, after = (normalised(honoured(kind, str(schema.get("format") or ""))) for schema in (old, new))
    change = undecided("SCH-32", "format", path, old=old.get("format") or None, new=new.get("format") or None)
    if after in (before, "password"):
        return [change.judged(harmless, "checked-by-nobody")]
    if kind in ("integer", "number"):
        return [_number_format(old, new, change)]
    if not after or (before, after) in STRICTER_FORMATS:
        return [change.judged(widened)]
    lost = (text for text in SAMPLES if (not before or fits(before, text)) and not fits(after, text))
    refused = next(lost, None)
    if refused is not None:
        return [change.judged(narrowed, counterexample=refused)]
    return [change]


def _number_format(old: Schema, new: Schema, change: SchemaChange) -> SchemaChange:
    if new.get("type") == "number":
        if honoured("number", str(new.get("format") or "")) == "float":
            return change.judged(narrowed, counterexample=1e300)
        return change.judged(widened_for_readers)
    stored, accepted = interval(old).meet(type_range(old)), interval(new).meet(type_range(new))
    if not type_range(new).holds(stored):
        return change.judged(narrowed, counterexample=beyond(stored, type_range(new)))
    if not type_range(old).holds(accepted):
        return change.judged(widened_for_readers)
    return change.judged(harmless, "same-numbers-fit")
