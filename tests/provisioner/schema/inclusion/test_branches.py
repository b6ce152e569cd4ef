"""Branches that become wider or narrower part by part: of `not`, anyOf and allOf."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.schema import compare, validate
from provisioner.schema.inclusion.branches import takes_all
from provisioner.values import Severity
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd_of, listed, obj

BASE = obj(a=TEXT, b=WHOLE, c=listed(TEXT))


def short(most: int, *needed: str) -> JsonDict:
    found: JsonDict = {"properties": {"a": {"maxLength": most}}}
    return {**found, "required": list(needed)} if needed else found


def severity(old: JsonDict, new: JsonDict, rule: str) -> Severity:
    found = compare(crd_of({**BASE, **old}), crd_of({**BASE, **new}))
    return min((it.severity for it in found if it.rule == rule), key=lambda it: it.rank)


@pytest.mark.parametrize(
    ("rule", "narrow", "wide"),
    [
        pytest.param("SCH-58", {"not": short(9)}, {"not": short(5)}, id="not: a bound of a field"),
        pytest.param("SCH-58", {"not": short(9)}, {"not": short(9, "b")}, id="not: and a field that is wanted"),
        pytest.param(
            "SCH-56",
            {"anyOf": [short(5, "a"), {"required": ["b"]}]},
            {"anyOf": [{"required": ["b"]}, short(9, "a")]},
            id="anyOf",
        ),
        pytest.param(
            "SCH-55",
            {"allOf": [{"properties": {"c": {"maxItems": 2}}, "required": ["a"]}]},
            {"allOf": [{"properties": {"c": {"maxItems": 3}}}]},
            id="allOf: a size and a field that is wanted",
        ),
    ],
)
def test_a_branch_that_is_wider_in_every_part_is_wider(rule: str, narrow: JsonDict, wide: JsonDict) -> None:
    assert severity(narrow, wide, rule) is Severity.SAFE
    assert severity(wide, narrow, rule) is Severity.BREAKING


def test_branches_of_which_one_is_wider_and_one_is_narrower_stay_unknown() -> None:
    old = {"anyOf": [short(5, "a"), {"properties": {"b": {"maximum": 9}}, "required": ["b"]}]}
    new = {"anyOf": [short(9, "a"), {"properties": {"b": {"maximum": 5}}, "required": ["b"]}]}
    assert severity(old, new, "SCH-56") is Severity.UNKNOWN


def branches(draw: st.DrawFn) -> JsonDict:
    found: JsonDict = {}
    if draw(st.booleans()):
        found["required"] = draw(st.lists(st.sampled_from("abc"), unique=True, max_size=2))
    if draw(st.booleans()):
        found[draw(st.sampled_from(["minProperties", "maxProperties"]))] = draw(st.integers(0, 3))
    parts: JsonDict = {}
    if draw(st.booleans()):
        parts["a"] = {draw(st.sampled_from(["minLength", "maxLength"])): draw(st.integers(0, 3))}
    if draw(st.booleans()):
        parts["b"] = {draw(st.sampled_from(["minimum", "maximum"])): draw(st.integers(-1, 2))}
    if draw(st.booleans()):
        parts["c"] = {draw(st.sampled_from(["minItems", "maxItems"])): draw(st.integers(0, 2))}
    return {**found, "properties": parts} if parts else found


VALUES = st.fixed_dictionaries(
    {}, optional={"a": st.text("xy", max_size=4), "b": st.integers(-2, 3), "c": st.lists(st.just("x"), max_size=3)}
)


@given(st.composite(branches)(), st.composite(branches)(), st.lists(VALUES, min_size=20, max_size=20))
def test_what_is_said_to_take_all_takes_all(narrow: JsonDict, wide: JsonDict, values: list[Any]) -> None:
    if takes_all(narrow, wide, BASE):
        lost = [
            it for it in values if not validate({**BASE, **_in(narrow)}, it) and validate({**BASE, **_in(wide)}, it)
        ]
        assert lost == []


def _in(branch: JsonDict) -> JsonDict:
    return {"allOf": [branch]}
