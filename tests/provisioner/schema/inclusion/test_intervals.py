"""Numbers between two limits."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.schema.inclusion.facets import Interval, beyond, interval, type_range, types_of

LIMITS = st.integers(-5, 5).map(float) | st.sampled_from([-math.inf, math.inf])
INTERVALS = st.builds(Interval, LIMITS, LIMITS, st.booleans(), st.booleans())
POINTS = [number / 2 for number in range(-13, 14)]


def has(one: Interval, number: float) -> bool:
    above = number > one.low or (number == one.low and not one.is_open_low)
    below = number < one.high or (number == one.high and not one.is_open_high)
    return above and below


@given(INTERVALS, INTERVALS)
def test_what_both_allow_is_where_they_meet(one: Interval, other: Interval) -> None:
    met = one.meet(other)
    assert [has(met, number) for number in POINTS] == [has(one, it) and has(other, it) for it in POINTS]


@given(INTERVALS, INTERVALS)
def test_an_interval_holds_no_other_that_has_a_number_beside_it(one: Interval, other: Interval) -> None:
    if one.holds(other):
        assert all(has(one, number) for number in POINTS if has(other, number))


@given(INTERVALS, INTERVALS)
def test_a_number_that_is_said_to_be_lost_was_allowed_and_is_not(before: Interval, after: Interval) -> None:
    lost = beyond(before, after)
    assert lost is None or (has(before, lost) and not has(after, lost))


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "number"}, Interval()),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, Interval(0, math.inf, True)),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, Interval(1)),
        ({"type": "integer", "minimum": 0.5, "maximum": 2.5}, Interval(1, 2)),
        ({"type": "integer", "maximum": 3, "exclusiveMaximum": True}, Interval(-math.inf, 2)),
        ({"type": "integer", "maximum": 2.5, "exclusiveMaximum": True}, Interval(-math.inf, 2)),
        ({"type": "number", "exclusiveMaximum": True}, Interval()),
    ],
)
def test_the_limits_of_integers_are_whole_and_included(schema: dict[str, Any], found: Interval) -> None:
    assert interval(schema) == found


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "integer", "format": "int32"}, Interval(-(2**31), 2**31 - 1)),
        ({"type": "integer"}, Interval(-(2**63), 2**63 - 1)),
        ({"type": "integer", "format": "unheard-of"}, Interval(-(2**63), 2**63 - 1)),
        ({"type": "number", "format": "int32"}, Interval()),
    ],
)
def test_an_integer_has_the_range_of_its_format(schema: dict[str, Any], found: Interval) -> None:
    assert type_range(schema) == found


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, ("string",)),
        ({"x-kubernetes-int-or-string": True}, ("integer", "string")),
        ({}, ()),
        ({"type": ["string", "null"]}, ()),
    ],
)
def test_types_that_are_written_down(schema: dict[str, Any], types: tuple[str, ...]) -> None:
    assert types_of(schema) == types
