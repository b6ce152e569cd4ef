"""Pairs that look alike and are not, or the other way round: what is the worst that is said of them."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.schema import accepts_update, compare
from provisioner.values import Finding, Severity
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd, crd_of, listed, mapped, obj, version

SAFE, DANGEROUS, BREAKING, UNKNOWN = Severity.SAFE, Severity.DANGEROUS, Severity.BREAKING, Severity.UNKNOWN
ANYTHING: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}
OPEN: JsonDict = {"type": "object", **ANYTHING}
NUMBER: JsonDict = {"type": "number"}
RESOURCE: JsonDict = {"type": "object", "x-kubernetes-embedded-resource": True}
BASES = {"apiVersion": TEXT, "kind": TEXT, "metadata": {"type": "object"}}


def text(**more: Any) -> JsonDict:
    return {**TEXT, **more}


def ruled(*rules: str) -> JsonDict:
    return {**WHOLE, "x-kubernetes-validations": [{"rule": rule} for rule in rules]}


def keyed(*keys: str) -> JsonDict:
    return listed(
        obj("k", "j", k=TEXT, j=TEXT), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    )


def future(value: Any) -> JsonDict:
    return text(**{"x-kubernetes-future": value})


def bounded(**limits: Any) -> JsonDict:
    return obj(x=WHOLE, more={"allOf": [{"properties": {"x": limits}}]})


def worst(old: JsonDict, new: JsonDict) -> Severity:
    found = compare(old, new)
    return found[0].severity if found else SAFE


def told(old: JsonDict, new: JsonDict) -> list[Finding]:
    return compare(crd_of(obj(a=old)), crd_of(obj(a=new)))


PAIRS: dict[str, tuple[JsonDict, JsonDict, Severity]] = {
    "a default of 1 that becomes true": ({**OPEN, "default": {"x": 1}}, {**OPEN, "default": {"x": True}}, DANGEROUS),
    "a default of [0] that becomes [false]": (
        {**OPEN, "default": {"x": [0]}},
        {**OPEN, "default": {"x": [False]}},
        DANGEROUS,
    ),
    "a default of 1 that becomes 1.0": ({**NUMBER, "default": 1}, {**NUMBER, "default": 1.0}, SAFE),
    "an enum of 1 that becomes true": ({**ANYTHING, "enum": [1]}, {**ANYTHING, "enum": [True]}, BREAKING),
    "an enum of {a: true} that becomes {a: 1}": (
        {**OPEN, "enum": [{"a": True}]},
        {**OPEN, "enum": [{"a": 1}]},
        BREAKING,
    ),
    "an unknown keyword of 1 that becomes true": (future(1), future(True), UNKNOWN),
    "map keys in another order": (keyed("k", "j"), keyed("j", "k"), SAFE),
    "one map key less": (keyed("k", "j"), keyed("k"), BREAKING),
    "a map of objects that may hold anything": (mapped(obj(x=TEXT)), mapped(True), BREAKING),
    "a map of lists of objects that may hold anything": (mapped(listed(obj(x=TEXT))), mapped(True), BREAKING),
    "a map of texts that may hold anything": (mapped(TEXT), mapped(True), SAFE),
    "a bound of a field in allOf, tightened": (bounded(maximum=10), bounded(maximum=5), BREAKING),
    "a bound of a field in allOf, relaxed": (bounded(maximum=5), bounded(maximum=10), SAFE),
    "a bound of items in allOf, tightened": (
        listed(WHOLE, allOf=[{"items": {"maximum": 9}}]),
        listed(WHOLE, allOf=[{"items": {"maximum": 5}}]),
        BREAKING,
    ),
    "an anyOf that asks nothing": (obj(x=TEXT), obj(x=TEXT, more={"anyOf": [{}]}), SAFE),
    "a rule with one way out more": (ruled("self > 5"), ruled("self > 5 || self == 1"), SAFE),
    "a rule with one way out less": (ruled("self > 5 || self == 1"), ruled("self > 5"), BREAKING),
    "a rule of two halves of which one is left, with a way out": (
        ruled("self > 5 && self < 9"),
        ruled("self < 9 || self == 12"),
        SAFE,
    ),
    "multiples of a tenth for multiples of three": ({**NUMBER, "multipleOf": 0.3}, {**NUMBER, "multipleOf": 0.1}, SAFE),
    "multiples of a tenth, to which whole numbers are none": (
        {**NUMBER, "multipleOf": 5},
        {**NUMBER, "multipleOf": 0.1},
        BREAKING,
    ),
    "multiples of a half of what is whole": (WHOLE, {**WHOLE, "multipleOf": 0.5}, BREAKING),
    "a format by its other name": (text(format="date-time"), text(format="datetime"), SAFE),
    "any version of what had one": (text(format="uuid4"), text(format="uuid"), SAFE),
    "one version of what had any": (text(format="uuid"), text(format="uuid4"), BREAKING),
    "values of a resource that are counted with its own": (
        {**RESOURCE, "properties": {"spec": TEXT}},
        {**RESOURCE, "properties": {"spec": TEXT}, "maxProperties": 2},
        BREAKING,
    ),
    "null, where all else is listed": (
        {**WHOLE, "nullable": True, "minimum": 1, "maximum": 2},
        {**WHOLE, "nullable": True, "minimum": 1, "maximum": 2, "enum": [1, 2]},
        BREAKING,
    ),
    "a resource that no longer says what all have": (
        {**RESOURCE, "properties": {"spec": TEXT, **BASES}},
        {**RESOURCE, "properties": {"spec": TEXT}},
        SAFE,
    ),
}


@pytest.mark.parametrize(("old", "new", "severity"), PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("inside", [lambda it: it, listed, mapped], ids=["field", "items", "values"])
def test_what_only_looks_so_is_told_apart(inside: Any, old: JsonDict, new: JsonDict, severity: Severity) -> None:
    found = told(inside(old), inside(new))
    assert (found[0].severity if found else SAFE) is severity, [(it.rule, it.message) for it in found]


def test_what_all_resources_have_may_leave_the_schema() -> None:
    old, new = crd(version(schema=obj(spec=TEXT, **BASES))), crd(version(schema=obj(spec=TEXT)))
    assert worst(old, new) is SAFE
    assert worst(new, old) is SAFE


def test_a_default_that_became_true_is_refused_though_python_takes_it_for_1() -> None:
    def with_default(value: Any) -> JsonDict:
        return crd_of({**obj(x=WHOLE), "default": {"x": value}})

    assert accepts_update(with_default(1), with_default(1)) == []
    assert accepts_update(with_default(1), with_default(True)) != []
