"""The numbers that a schema node allows, as intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from provisioner.schema.admission import scalars
from provisioner.schema.reading import Schema

INT_RANGES = {"int32": (scalars.INT32_MIN, scalars.INT32_MAX), "int64": (scalars.INT64_MIN, scalars.INT64_MAX)}


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
        one = Interval(number, number)
        if math.isfinite(number) and stored.holds(one) and not after.holds(one):
            return number
    return None
