"""The same values said in another way: what all limits of a node come to, and not each of them alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.schema import compare, validate
from provisioner.schema.inclusion.scalars import scalar_inclusion
from provisioner.values import Severity
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd_of, mapped, obj

SAFE, DANGEROUS, BREAKING = Severity.SAFE, Severity.DANGEROUS, Severity.BREAKING
NUMBER: JsonDict = {"type": "number"}
KEEP: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING: JsonDict = {"x-kubernetes-int-or-string": True}
IDIOM: JsonDict = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
A_XOR_B: JsonDict = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}


def text(**more: Any) -> JsonDict:
    return {**TEXT, **more}


def whole(**more: Any) -> JsonDict:
    return {**WHOLE, **more}


def enums(*listed: list[str]) -> list[JsonDict]:
    return [{"enum": one} for one in listed]


def worst(old: JsonDict, new: JsonDict) -> Severity:
    found = compare(crd_of(obj(f=old)), crd_of(obj(f=new)))
    return min((it.severity for it in found), key=lambda it: it.rank, default=SAFE)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(text(enum=["a"]), text(anyOf=enums(["a"], ["b"])), SAFE, id="enum widened through anyOf"),
        pytest.param(text(enum=["a", "c"]), text(anyOf=enums(["a"], ["b"])), BREAKING, id="enum narrowed by anyOf"),
        pytest.param(text(anyOf=enums(["a"], ["b"])), text(enum=["a", "b"]), SAFE, id="anyOf of enums to one enum"),
        pytest.param(
            text(oneOf=enums(["a"], ["b"])), text(oneOf=enums(["a"], ["b"], ["c"])), SAFE, id="oneOf gains a value"
        ),
        pytest.param(
            text(oneOf=enums(["a"], ["b"])),
            text(oneOf=enums(["a"], ["b"], ["a", "c"])),
            BREAKING,
            id="oneOf gains a branch that overlaps",
        ),
        pytest.param(text(oneOf=enums(["a"], ["b"])), text(anyOf=enums(["a"], ["b"])), SAFE, id="oneOf to anyOf"),
        pytest.param(text(**{"not": {"enum": ["x", "y"]}}), text(**{"not": {"enum": ["x"]}}), SAFE, id="not shrinks"),
        pytest.param(text(**{"not": {"enum": ["x"]}}), text(**{"not": {"enum": ["x", "y"]}}), BREAKING, id="not grows"),
        pytest.param(
            text(**{"not": {"pattern": "^a"}}), text(**{"not": {"pattern": "^ab"}}), SAFE, id="not of a smaller pattern"
        ),
        pytest.param(
            text(**{"not": {"pattern": "^ab"}}),
            text(**{"not": {"pattern": "^a"}}),
            BREAKING,
            id="not of a larger pattern",
        ),
        pytest.param(
            text(format="ipv4"), text(anyOf=[{"format": "ipv4"}, {"format": "cidr"}]), SAFE, id="format into anyOf"
        ),
        pytest.param(
            text(format="ipv4"),
            text(anyOf=[{"format": "ipv6"}, {"format": "cidr"}]),
            BREAKING,
            id="format not in anyOf",
        ),
        pytest.param(
            text(pattern="^[a-z]{1,63}$"), text(pattern="^[a-z]+$", maxLength=63), SAFE, id="count becomes length"
        ),
        pytest.param(
            text(pattern="^[a-z]{1,64}$"), text(pattern="^[a-z]+$", maxLength=63), BREAKING, id="length below the count"
        ),
        pytest.param(text(minLength=1), text(pattern="(?s)^.+$"), SAFE, id="minLength as a pattern"),
        pytest.param(text(minLength=1), text(pattern="^.+$"), BREAKING, id="a dot is no newline"),
        pytest.param(text(pattern=r"^(?i)abc$"), text(pattern="^[aA][bB][cC]$"), SAFE, id="RE2 flag inside"),
        pytest.param(text(pattern=r"^\pL+$"), text(pattern=r"\A\p{L}+\z"), SAFE, id="RE2 classes and anchors"),
        pytest.param(text(pattern=r"^\Qa.b\E$"), text(pattern=r"^a\.b$"), SAFE, id="RE2 quoting"),
        pytest.param(whole(), whole(anyOf=[{"maximum": 5}, {"minimum": 6}]), SAFE, id="anyOf covers all integers"),
        pytest.param(NUMBER, {**NUMBER, "anyOf": [{"maximum": 5}, {"minimum": 6}]}, BREAKING, id="but not all numbers"),
        pytest.param(whole(), whole(anyOf=[{"maximum": 5}, {"minimum": 7}]), BREAKING, id="anyOf with a gap"),
        pytest.param(whole(maximum=5), whole(allOf=[{"maximum": 5}]), SAFE, id="bound moved into allOf"),
        pytest.param(whole(allOf=[{"maximum": 5}]), whole(maximum=5), SAFE, id="bound moved out of allOf"),
        pytest.param(whole(maximum=5), whole(allOf=[{"maximum": 4}]), BREAKING, id="bound tightened in allOf"),
        pytest.param(whole(**{"not": {"minimum": 5}}), whole(maximum=4), SAFE, id="not at least is at most"),
        pytest.param(whole(minimum=1, maximum=3), whole(enum=[1, 2, 3]), SAFE, id="range as enum"),
        pytest.param(whole(minimum=1, maximum=4), whole(enum=[1, 2, 3]), BREAKING, id="range wider than enum"),
        pytest.param(
            whole(multipleOf=6), whole(anyOf=[{"multipleOf": 4}, {"multipleOf": 3}]), SAFE, id="multiple of a branch"
        ),
        pytest.param(
            {**INT_OR_STRING, **IDIOM}, {**INT_OR_STRING, "allOf": [IDIOM, {"pattern": "%$"}]}, BREAKING, id="percent"
        ),
        pytest.param({**NUMBER, "enum": ["a"]}, {**WHOLE, "enum": ["a"]}, SAFE, id="nothing was accepted before"),
        pytest.param(
            obj("a", a=TEXT), obj("a", a=TEXT, more={"minProperties": 1}), SAFE, id="required field fills minProperties"
        ),
        pytest.param(obj(a=TEXT), obj(a=TEXT, more={"maxProperties": 1}), SAFE, id="there is no second field"),
        pytest.param(obj(a=TEXT), obj(a=TEXT, more={"minProperties": 1}), BREAKING, id="minProperties for nothing"),
        pytest.param(
            obj(a=TEXT, more={**KEEP}),
            obj(a=TEXT, more={**KEEP, "maxProperties": 1}),
            BREAKING,
            id="unknown ones count",
        ),
        pytest.param(
            obj(a=TEXT, more={"minProperties": 1}), obj("a", a=TEXT), SAFE, id="the only field was there already"
        ),
        pytest.param(
            obj(a=TEXT, b=TEXT, more={"minProperties": 1}),
            obj(a=TEXT, b=TEXT, more={"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            SAFE,
            id="minProperties as anyOf",
        ),
        pytest.param(
            obj(a=TEXT, b=TEXT, more=A_XOR_B),
            obj(a=TEXT, b=TEXT, more={"minProperties": 1, "maxProperties": 1}),
            SAFE,
            id="oneOf as exactly one field",
        ),
        pytest.param(
            obj(a=TEXT, b=TEXT, c=TEXT, more=A_XOR_B),
            obj(a=TEXT, b=TEXT, c=TEXT, more={"minProperties": 1, "maxProperties": 1}),
            BREAKING,
            id="oneOf leaves a third field free",
        ),
        pytest.param(
            obj(a=TEXT, b=TEXT, more={"anyOf": [{"required": ["a"]}, {"required": ["a", "b"]}]}),
            obj("a", a=TEXT, b=TEXT),
            SAFE,
            id="required in every branch",
        ),
        pytest.param(mapped(True), {"type": "object", **KEEP}, SAFE, id="a map of anything keeps more"),
        pytest.param(
            text(nullable=True, enum=["a"]), text(enum=["a"]), SAFE, id="null that the enum refused is no loss"
        ),
    ],
)
def test_limits_count_by_what_they_accept_together(old: JsonDict, new: JsonDict, expected: Severity) -> None:
    assert worst(old, new) is expected


TEXT_LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "pattern": st.sampled_from(["a", "^a", "^[ab]*$", "b$", "^.?$"]),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 3),
        "enum": st.lists(st.sampled_from(["", "a", "b", "ab", "\n"]), min_size=1, max_size=3, unique=True),
        "format": st.sampled_from(["ipv4", "date"]),
    },
)
NUMBER_LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "minimum": st.integers(-2, 3),
        "maximum": st.integers(-1, 4),
        "exclusiveMaximum": st.booleans(),
        "multipleOf": st.sampled_from([1, 2, 3, 0.5]),
        "enum": st.lists(st.sampled_from([0, 1, 2, 0.5]), min_size=1, max_size=3, unique=True),
    },
)


def logical(kinds: list[str], limits: st.SearchStrategy[JsonDict]) -> st.SearchStrategy[JsonDict]:
    """Schemas of a scalar whose limits also stand in branches."""
    branches = st.lists(limits, min_size=1, max_size=2)
    junctors = st.fixed_dictionaries(
        {}, optional={"allOf": branches, "anyOf": branches, "oneOf": branches, "not": limits}
    )
    return st.builds(lambda kind, own, more: {"type": kind, **own, **more}, st.sampled_from(kinds), limits, junctors)


TEXTS = ["", "a", "b", "aa", "ab", "ba", "abc", "bbbb", "\n", "a\n", "10.0.0.1", "2020-01-02", "é"]
NUMBERS = [-3, -1, 0, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 2**31, 2**63, -(2**63)]


def is_lost(old: JsonDict, new: JsonDict, value: Any) -> bool:
    return not validate(old, value) and bool(validate(new, value))


@settings(max_examples=300, deadline=None)
@given(st.data())
@pytest.mark.thorough
def test_a_proof_is_never_refuted_and_a_counterexample_always_holds(data: st.DataObject) -> None:
    schemas, values = data.draw(
        st.sampled_from(
            [(logical(["string"], TEXT_LIMITS), TEXTS), (logical(["integer", "number"], NUMBER_LIMITS), NUMBERS)]
        )
    )
    old, new = data.draw(schemas), data.draw(schemas)
    answer = scalar_inclusion(old, new)
    if answer.holds:
        assert [value for value in values if is_lost(old, new, value)] == []
    if answer.holds is False:
        assert is_lost(old, new, answer.counterexample)


def test_what_takes_too_long_is_left_undecided() -> None:
    many = [{"pattern": f"{chr(97 + place)}{'.' * 60}z$"} for place in range(20)]
    assert scalar_inclusion(text(anyOf=many), text(oneOf=many)).holds is not True
