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


LIMITS = {
    "enum narrowed by anyOf": (text(enum=["a", "c"]), text(anyOf=enums(["a"], ["b"])), BREAKING),
    "oneOf to anyOf": (text(oneOf=enums(["a"], ["b"])), text(anyOf=enums(["a"], ["b"])), SAFE),
    "format not in anyOf": (text(format="ipv4"), text(anyOf=[{"format": "ipv6"}, {"format": "cidr"}]), BREAKING),
    "count becomes length": (text(pattern="^[a-z]{1,63}$"), text(pattern="^[a-z]+$", maxLength=63), SAFE),
    "length below the count": (text(pattern="^[a-z]{1,64}$"), text(pattern="^[a-z]+$", maxLength=63), BREAKING),
    "minLength as a pattern": (text(minLength=1), text(pattern="(?s)^.+$"), SAFE),
    "a dot is no newline": (text(minLength=1), text(pattern="^.+$"), BREAKING),
    "RE2 flag inside": (text(pattern=r"^(?i)abc$"), text(pattern="^[aA][bB][cC]$"), SAFE),
    "RE2 classes and anchors": (text(pattern=r"^\pL+$"), text(pattern=r"\A\p{L}+\z"), SAFE),
    "RE2 quoting": (text(pattern=r"^\Qa.b\E$"), text(pattern=r"^a\.b$"), SAFE),
    "but not all numbers": (NUMBER, {**NUMBER, "anyOf": [{"maximum": 5}, {"minimum": 6}]}, BREAKING),
    "anyOf with a gap": (whole(), whole(anyOf=[{"maximum": 5}, {"minimum": 7}]), BREAKING),
    "bound tightened in allOf": (whole(maximum=5), whole(allOf=[{"maximum": 4}]), BREAKING),
    "range wider than enum": (whole(minimum=1, maximum=4), whole(enum=[1, 2, 3]), BREAKING),
    "percent": ({**INT_OR_STRING, **IDIOM}, {**INT_OR_STRING, "allOf": [IDIOM, {"pattern": "%$"}]}, BREAKING),
    "required field fills minProperties": (obj("a", a=TEXT), obj("a", a=TEXT, more={"minProperties": 1}), SAFE),
    "there is no second field": (obj(a=TEXT), obj(a=TEXT, more={"maxProperties": 1}), SAFE),
    "minProperties for nothing": (obj(a=TEXT), obj(a=TEXT, more={"minProperties": 1}), BREAKING),
    "unknown ones count": (obj(a=TEXT, more={**KEEP}), obj(a=TEXT, more={**KEEP, "maxProperties": 1}), BREAKING),
    "the only field was there already": (obj(a=TEXT, more={"minProperties": 1}), obj("a", a=TEXT), SAFE),
    "minProperties as anyOf": (
        obj(a=TEXT, b=TEXT, more={"minProperties": 1}),
        obj(a=TEXT, b=TEXT, more={"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
        SAFE,
    ),
    "oneOf as exactly one field": (
        obj(a=TEXT, b=TEXT, more=A_XOR_B),
        obj(a=TEXT, b=TEXT, more={"minProperties": 1, "maxProperties": 1}),
        SAFE,
    ),
    "oneOf leaves a third field free": (
        obj(a=TEXT, b=TEXT, c=TEXT, more=A_XOR_B),
        obj(a=TEXT, b=TEXT, c=TEXT, more={"minProperties": 1, "maxProperties": 1}),
        BREAKING,
    ),
    "required in every branch": (
        obj(a=TEXT, b=TEXT, more={"anyOf": [{"required": ["a"]}, {"required": ["a", "b"]}]}),
        obj("a", a=TEXT, b=TEXT),
        SAFE,
    ),
    "a map of anything keeps more": (mapped(True), {"type": "object", **KEEP}, SAFE),
    "null that the enum refused is no loss": (text(nullable=True, enum=["a"]), text(enum=["a"]), SAFE),
}


@pytest.mark.parametrize(("old", "new", "expected"), LIMITS.values(), ids=LIMITS)
def test_limits_count_by_what_they_accept_together(old: JsonDict, new: JsonDict, expected: Severity) -> None:
    assert worst(old, new) is expected
