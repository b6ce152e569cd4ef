"""All limits of a scalar together, tried on one value of each kind that they tell apart.

A limit may be written as an enum, a bound, a pattern, or a branch of anyOf. Read one by one, moving it looks like two
changes. Here both schemas judge the same values, so that only what they accept counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from math import gcd, lcm
from typing import Any

import re2

from provisioner.schema.admission import scalars
from provisioner.schema.admission.validation import validate
from provisioner.schema.allowance import Exhausted, spend
from provisioner.schema.fields import go_json, is_same
from provisioner.schema.formats import as_stored, honoured
from provisioner.schema.inclusion.examples import SAMPLES
from provisioner.schema.inclusion.languages import Undecided, texts_of_each_kind
from provisioner.schema.inclusion.presence import UNDECIDED, PresenceResult, inclusion
from provisioner.schema.nodes import types
from provisioner.schema.reading import Schema, branches_of, schema_of
from provisioner.schema.verdicts import NARROWED, NOT_DECIDED, SchemaChange, harmless, narrowed, widened

SCALARS = frozenset({"string", "integer", "number", "boolean"})
JUNCTORS = ("allOf", "anyOf", "oneOf")
SIZES = ("minProperties", "maxProperties")
LIMITS = frozenset(
    {"SCH-08", "SCH-15", "SCH-17", "SCH-20", "SCH-21", "SCH-27", "SCH-29", "SCH-30", "SCH-32"}
) | frozenset({"SCH-11", "SCH-55", "SCH-56", "SCH-57", "SCH-58"})
MAX_FORMATS = 3
MAX_STEPS = 1_000
MAX_NUMBERS = 1_200
WORK_OF_TRY = 300
MAX_LISTED = 500
NEVER: Schema = {"not": {}}
FLOAT32_MAX = Fraction(3.4028234663852886e38)
EDGES = (scalars.INT32_MIN, scalars.INT32_MAX, scalars.INT64_MIN, scalars.INT64_MAX, -FLOAT32_MAX, FLOAT32_MAX)


def taken_together(changes: list[SchemaChange], old: Schema, new: Schema, *, keeps_unknown: bool) -> list[SchemaChange]:
    """The changes of one node's limits, judged by what all of them come to: a limit that is only written elsewhere
    narrows nothing. What cannot be decided stays as it was."""
    open_ones = [change for change in changes if change.verdict in (NARROWED, NOT_DECIDED) and _is_limit(change)]
    if not open_ones or not (len(changes) > 1 or {*JUNCTORS, "not", "enum", *SIZES} & (old.keys() | new.keys())):
        return changes
    answer = _answer(old, new, keeps_unknown=keeps_unknown)
    if answer.holds is None:
        return changes
    is_equal = answer.holds and _answer(new, old, keeps_unknown=keeps_unknown).holds
    return [_judged(change, answer, is_equal=bool(is_equal)) if change in open_ones else change for change in changes]


def _is_limit(change: SchemaChange) -> bool:
    return change.rule in LIMITS or change.rule.startswith(("SCH-25", "SCH-26"))


def _answer(old: Schema, new: Schema, *, keeps_unknown: bool) -> PresenceResult:
    if types(old) == types(new) == {"object"}:
        if not is_same(old.get("enum"), new.get("enum")):
            return UNDECIDED  # the table of fields knows nothing of whole objects
        return inclusion(old, new, keeps_unknown=keeps_unknown, is_whole=True)
    return scalar_inclusion(old, new)


def _judged(change: SchemaChange, answer: PresenceResult, *, is_equal: bool) -> SchemaChange:
    if answer.holds:
        alone = change.without_example()
        return alone.judged(harmless, "together-same") if is_equal else alone.judged(widened, "together-all-fit")
    if change.verdict == NOT_DECIDED:
        return replace(change.judged(narrowed), facts={**change.facts, "counterexample": answer.counterexample})
    return change


def scalar_inclusion(old: Schema, new: Schema) -> PresenceResult:
    """Whether `new` accepts every value that `old` accepts; both describe scalars, and null is left aside."""
    kinds = types(old)
    if not kinds or not kinds <= SCALARS or not types(new) <= SCALARS:
        return UNDECIDED
    try:
        return _tried(old, new, sorted(kinds))
    except (Undecided, Exhausted):
        return UNDECIDED


def _tried(old: Schema, new: Schema, kinds: list[str]) -> PresenceResult:
    if old.get("nullable") and new.get("nullable") and _is_lost(old, new, None):
        return PresenceResult(False)
    nodes = [*_nodes(old), *_nodes(new)]
    suspects = [value for kind in kinds for value in _suspects(kind, old, new, nodes)]
    lost = next((value for value in suspects if _is_lost(old, new, value)), None)
    if lost is not None:
        return PresenceResult(False, lost)
    return UNDECIDED if suspects else PresenceResult(True)


def _is_lost(old: Schema, new: Schema, value: Any) -> bool:
    spend(WORK_OF_TRY)
    return not validate(old, value) and bool(validate(new, value))


def _suspects(kind: str, old: Schema, new: Schema, nodes: list[Schema]) -> Iterator[Any]:
    """Values of a type that may be lost; of texts that a format judges more than are."""
    if kind == "boolean":
        yield from (value for value in (True, False) if _is_lost(old, new, value))
    elif kind == "string":
        yield from _lost_texts(old, new, nodes)
    else:
        is_whole = kind == "integer"
        yield from (value for value in _numbers(nodes, is_whole=is_whole) if _is_lost(old, new, value))


def _nodes(schema: Schema) -> Iterator[Schema]:
    """A schema and all its branches."""
    yield schema
    for junctor in JUNCTORS:
        for branch in branches_of(schema, junctor):
            yield from _nodes(branch)
    inner = schema_of(schema.get("not"))
    if inner is not None:
        yield from _nodes(inner)


# Texts


def _lost_texts(old: Schema, new: Schema, nodes: list[Schema]) -> Iterator[str]:
    listed = [value for node in nodes for value in node.get("enum") or () if isinstance(value, str)]
    formats = sorted({form for node in nodes if (form := _format(node))})
    if len(formats) > MAX_FORMATS or len(listed) > MAX_LISTED:
        raise Undecided
    yield from (text for text in listed if _is_lost(old, new, text))
    texts = _unlisted(nodes, listed)
    for truths in product((True, False), repeat=len(formats)):
        known = dict(zip(formats, truths, strict=True))
        sides = _assumed(old, known), _assumed(new, known)
        yield from (text for text in texts if _is_lost(*sides, text))
    if formats:
        yield from (text for text in SAMPLES if _is_lost(old, new, text))


def _unlisted(nodes: list[Schema], listed: list[str]) -> list[str]:
    """A text of each kind that patterns and lengths tell apart, none of them in an enum."""
    patterns = sorted({str(node["pattern"]) for node in nodes if node.get("pattern")})
    limits = [int(node["minLength"]) for node in nodes if node.get("minLength")]
    limits += [int(node["maxLength"]) + 1 for node in nodes if node.get("maxLength") is not None]
    union = "|".join(re2.escape(as_stored(text)) for text in sorted(set(listed)))
    enum = [f"^(?:{union})$"] if listed else []
    found = texts_of_each_kind((*enum, *patterns), tuple(sorted(set(limits))))
    return [text for text, matched in found if not matched & set(enum)]


def _format(node: Schema) -> str:
    """What the API server checks of a text by its format; "" for nothing."""
    kind = str(node.get("type") or "")
    return honoured(kind, str(node.get("format") or "")) if kind in ("", "string") else ""


def _assumed(schema: Schema, known: dict[str, bool]) -> Schema:
    """The schema with each format replaced by what is assumed of it."""
    found = dict(schema)
    form = _format(schema)
    if form:
        found.pop("format")
        found["allOf"] = [*(found.get("allOf") or ()), *([] if known[form] else [NEVER])]
    for junctor in JUNCTORS:
        if found.get(junctor):
            found[junctor] = [_assumed(branch, known) for branch in branches_of(found, junctor)]
    inner = schema_of(schema.get("not"))
    return {**found, "not": _assumed(inner, known)} if inner is not None else found


# Numbers


def _numbers(nodes: list[Schema], *, is_whole: bool) -> list[int | float]:
    """A number of each kind that bounds, enums and multipleOf tell apart."""
    bounds = sorted({*(Fraction(edge) for edge in EDGES), *(bound for node in nodes for bound in _bounds(node))})
    steps = [Fraction(1), *(step for node in nodes for step in _exact(node.get("multipleOf")) if step > 0)]
    step, period = _common(steps)
    count = int(period / step)
    outside = period + 2
    bounds = [bounds[0] - outside, *bounds, bounds[-1] + outside]
    if count > MAX_STEPS or count * len(bounds) > MAX_NUMBERS:
        raise Undecided
    points = [*bounds[1:-1], *(point for gap in pairwise(bounds) for point in _between(*gap, step, count))]
    simple = sorted(points, key=lambda point: (abs(point), point < 0))
    return [_plain(point) for point in simple if not is_whole or point.denominator == 1]


def _bounds(node: Schema) -> Iterator[Fraction]:
    for value in (node.get("minimum"), node.get("maximum"), *(node.get("enum") or ())):
        yield from _exact(value)


def _exact(value: Any) -> Iterator[Fraction]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield Fraction(go_json(value)) if isinstance(value, float) else Fraction(value)


def _common(steps: list[Fraction]) -> tuple[Fraction, Fraction]:
    """The largest number that all steps are multiples of, and the smallest that is a multiple of all."""
    scale = lcm(*(it.denominator for it in steps))
    whole = [int(it * scale) for it in steps]
    return Fraction(gcd(*whole), scale), Fraction(lcm(*whole), scale)


def _between(low: Fraction, high: Fraction, step: Fraction, count: int) -> Iterator[Fraction]:
    """Of the numbers between two bounds one period of multiples, and one that is no multiple."""
    first = (low // step + 1) * step
    yield from (first + step * place for place in range(count) if first + step * place < high)
    between = (low + min(first, high)) / 2
    if low < Fraction(float(between)) < high:
        yield Fraction(float(between))


def _plain(point: Fraction) -> int | float:
    return int(point) if point.denominator == 1 else float(point)
