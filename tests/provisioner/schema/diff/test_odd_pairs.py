"""Pairs of schemas as nobody writes them: what one accepts and the other does not, however it is put."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest

from provisioner.schema import compare
from provisioner.values import Severity
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, crd_of, listed, mapped, obj

SAFE, DANGEROUS, BREAKING, UNKNOWN = Severity.SAFE, Severity.DANGEROUS, Severity.BREAKING, Severity.UNKNOWN
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
EITHER = {"x-kubernetes-int-or-string": True}
A, B, C = ({"required": [name]} for name in "abc")


def text(**more: object) -> JsonDict:
    return {**TEXT, **more}


def abc(**more: object) -> JsonDict:
    return obj(a=TEXT, b=TEXT, c=TEXT, more=more)


def pattern(source: str, **more: object) -> JsonDict:
    return obj(a=text(pattern=source, **more))


def ruled(*rules: str) -> JsonDict:
    listed_rules = [{"rule": rule, "message": "no"} for rule in rules]
    fields = {"a": WHOLE, "b": WHOLE, "s": TEXT, "l": listed(WHOLE)}
    return obj(**fields, more={"x-kubernetes-validations": listed_rules})


# What is said of each pair, the worst first; words alone and what is without effect are left to other tests.
PAIRS: dict[str, tuple[JsonDict, JsonDict, Severity]] = {
    "a branch of allOf was null": (
        obj(a=text(allOf=[{"minLength": 1}, None])),
        obj(a=text(allOf=[{"minLength": 1}, {"maxLength": 4}])),
        BREAKING,
    ),
    "a branch of anyOf is null": (
        obj(a=text(anyOf=[{"pattern": "a"}, None])),
        obj(a=text(anyOf=[{"pattern": "b"}, None])),
        SAFE,
    ),
    "one of two becomes any of two": (abc(oneOf=[A, B]), abc(anyOf=[A, B]), SAFE),
    "any of two becomes one of two": (abc(anyOf=[A, B]), abc(oneOf=[A, B]), BREAKING),
    "required becomes allOf": ({**abc(), **A}, abc(allOf=[A]), SAFE),
    "not both becomes one of three": (
        abc(**{"not": {"required": ["a", "b"]}}),
        abc(oneOf=[A, B, {"not": {"anyOf": [A, B]}}]),
        SAFE,
    ),
    "neither, by two laws": (abc(**{"not": {"anyOf": [A, B]}}), abc(allOf=[{"not": A}, {"not": B}]), SAFE),
    "one implies the other": (abc(anyOf=[{"not": A}, B]), abc(oneOf=[{"not": A}, {"required": ["a", "b"]}]), SAFE),
    "one of a and a again is nothing": (abc(oneOf=[A, A]), abc(**{"not": {}}), SAFE),
    "a third of one can be a second": (abc(oneOf=[A, B]), abc(oneOf=[A, B, C]), BREAKING),
    "a third that excludes the others": (abc(oneOf=[A, B]), abc(oneOf=[A, B, {**C, "not": {"anyOf": [A, B]}}]), SAFE),
    "a third over a field that is new": (obj(a=TEXT, b=TEXT, more={"oneOf": [A, B]}), abc(oneOf=[A, B, C]), SAFE),
    "at least one, counted and listed": (abc(minProperties=1), abc(anyOf=[A, B, C]), SAFE),
    "anchors of two kinds": (pattern("^a$"), pattern("\\Aa\\z"), SAFE),
    "anchors inside and outside": (pattern("^(foo|bar)$"), pattern("^foo$|^bar$"), SAFE),
    "anchors that hold one branch each": (pattern("^foo|bar$"), pattern("^(foo|bar)$"), BREAKING),
    "a search is no match of the line": (pattern("abc"), pattern("^.*abc.*$"), BREAKING),
    "letters of any case": (pattern("(?i)^abc$"), pattern("^[aA][bB][cC]$"), SAFE),
    "the sign of Kelvin is a k": (pattern("(?i)^k$"), pattern("^[kK]$"), BREAKING),
    "a length in two ways": (pattern("^a*$", maxLength=5), pattern("^a{0,5}$"), SAFE),
    "any line is not any text": (obj(a=TEXT), pattern("^.*$"), BREAKING),
    "any text is": (obj(a=TEXT), pattern("(?s)^.*$"), SAFE),
    "a pattern that one of them does not": (obj(a=text(enum=["a1", "b2"])), pattern("^a", enum=["a1", "b2"]), BREAKING),
    "a pattern that explodes": (pattern("^(a|b)*a(a|b){12}$"), pattern("^[ab]*a[ab]{12}$"), UNKNOWN),
    "a pattern that nobody reads": (obj(a=TEXT), pattern("^(?=a)"), BREAKING),
    "rules in another order": (ruled("self.a>0&&self.b>0"), ruled("self.b > 0", "self.a > 0"), SAFE),
    "a rule that asks more": (ruled("self.a > 0"), ruled("self.a > 0 && self.a < 9"), BREAKING),
    "a rule that asks less": (ruled("self.a > 0 && self.a < 9"), ruled("self.a > 0"), SAFE),
    "a tree becomes open": (obj(x=obj(y=obj(z=TEXT))), obj(x=OPEN), DANGEROUS),
    "a name with a dot": (obj(a=obj(b=TEXT)), obj(**{"a.b": TEXT}), BREAKING),
    "named fields become a map of the same": (obj(x=obj(y=TEXT)), obj(x=mapped(TEXT)), DANGEROUS),
    "a map becomes named fields": (obj(x=mapped(TEXT)), obj(x=obj(y=TEXT)), BREAKING),
    "a bound that integers have anyway": (obj(a={**WHOLE, "minimum": 1}), obj(a={**WHOLE, "minimum": 0.5}), SAFE),
    "no integer fits either": (
        obj(a={**WHOLE, "minimum": 5, "maximum": 3}),
        obj(a={**WHOLE, "minimum": 7, "maximum": 1}),
        SAFE,
    ),
    "multiples of six and of four": (obj(a={**WHOLE, "multipleOf": 6}), obj(a={**WHOLE, "multipleOf": 4}), BREAKING),
    "integer or string, said twice": (
        obj(a=EITHER),
        obj(a={**EITHER, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        SAFE,
    ),
    "required in a new parent that is always there": (
        obj(a=TEXT),
        obj(a=TEXT, n=obj("z", z=TEXT, more={"default": {"z": "1"}})),
        DANGEROUS,
    ),
    "more fields than there can be": (obj(a=obj(x=TEXT)), obj(a=obj(x=TEXT, more={"maxProperties": 5})), SAFE),
    "a keyword of the future": (obj(a=TEXT), obj(a=text(**{"x-kubernetes-future": 1})), UNKNOWN),
}


@pytest.mark.parametrize(("before", "after", "worst"), PAIRS.values(), ids=PAIRS)
def test_a_pair_is_judged_by_what_it_accepts(before: JsonDict, after: JsonDict, worst: Severity) -> None:
    old, new = crd_of(before), crd_of(after)
    given = copy.deepcopy((old, new))
    found = compare(old, new)
    assert min((one.severity for one in found), key=lambda it: it.rank, default=SAFE) is worst, found
    assert (old, new) == given, "what is compared stays as it is"


def test_where_no_rule_is_compared_the_runtime_of_cel_is_not_loaded() -> None:
    code = (
        "import sys; from provisioner.schema import compare; from tests.support.provisioner.shapes import *;"
        "compare(crd_of(obj(a=TEXT)), crd_of(obj(a=WHOLE)));"
        "sys.exit(bool({'cel_expr_python', 'google.protobuf'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
