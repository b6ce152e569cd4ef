"""The same values said in another way: what all limits of a node come to, and not each of them alone."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.schema import compare
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
        pytest.param(text(enum=["a", "c"]), text(anyOf=enums(["a"], ["b"])), BREAKING, id="enum narrowed by anyOf"),
        pytest.param(text(oneOf=enums(["a"], ["b"])), text(anyOf=enums(["a"], ["b"])), SAFE, id="oneOf to anyOf"),
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
        pytest.param(NUMBER, {**NUMBER, "anyOf": [{"maximum": 5}, {"minimum": 6}]}, BREAKING, id="but not all numbers"),
        pytest.param(whole(), whole(anyOf=[{"maximum": 5}, {"minimum": 7}]), BREAKING, id="anyOf with a gap"),
        pytest.param(whole(maximum=5), whole(allOf=[{"maximum": 4}]), BREAKING, id="bound tightened in allOf"),
        pytest.param(whole(minimum=1, maximum=4), whole(enum=[1, 2, 3]), BREAKING, id="range wider than enum"),
        pytest.param(
            {**INT_OR_STRING, **IDIOM}, {**INT_OR_STRING, "allOf": [IDIOM, {"pattern": "%$"}]}, BREAKING, id="percent"
        ),
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
