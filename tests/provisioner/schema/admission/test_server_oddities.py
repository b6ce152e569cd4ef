"""What API server 1.36 does to single values against what one would expect: each of these was tried on one."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.schema import admit
from tests.support.provisioner.shapes import TEXT, WHOLE, JsonDict, listed, mapped, obj, root, thing

ANYTHING: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}
RULED: JsonDict = {**WHOLE, "x-kubernetes-validations": [{"rule": "self > 5", "message": "no"}]}
UNTYPED = {**ANYTHING, "properties": {"a": RULED}}
SKIPPED = "some validation rules were not checked because the object was invalid"


def errors(spec_schema: JsonDict, spec: Any) -> list[str]:
    return [str(error) for error in admit(root(spec_schema), thing(spec)).errors]


@pytest.mark.parametrize(
    ("schema", "value", "is_run"),
    [
        pytest.param(UNTYPED, {"a": 1}, False, id="under a value of any type"),
        pytest.param(obj(b=UNTYPED), {"b": {"a": 1}}, False, id="a field of any type"),
        pytest.param(listed(UNTYPED), [{"a": 1}], False, id="items of any type"),
        pytest.param(mapped(UNTYPED), {"x": {"a": 1}}, False, id="map values of any type"),
        pytest.param({**ANYTHING, "items": RULED}, [1], False, id="items of what need be no list"),
        pytest.param({**ANYTHING, "additionalProperties": RULED}, {"x": 1}, False, id="values of what need be no map"),
        pytest.param({**obj(a=RULED), **ANYTHING}, {"a": 1}, True, id="an object that keeps unknown fields"),
        pytest.param({**mapped(True), "properties": {"a": RULED}}, {"a": 1}, True, id="an open map with a field"),
    ],
)
def test_rules_run_only_where_every_value_above_has_a_type(schema: JsonDict, value: Any, is_run: bool) -> None:
    assert bool(errors(schema, value)) is is_run


def test_a_rule_that_never_runs_is_not_said_to_be_skipped() -> None:
    schema = obj(a=UNTYPED, b=TEXT)
    assert not any(SKIPPED in error for error in errors(schema, {"b": 1}))
    assert any(SKIPPED in error for error in errors(obj(a=RULED, b=TEXT), {"b": 1}))


def test_a_resource_inside_without_a_kind_keeps_the_rules_from_running() -> None:
    inner = {"type": "object", "x-kubernetes-embedded-resource": True, **ANYTHING}
    found = admit(root(obj(e=inner, n=RULED)), thing({"e": {"apiVersion": "v1"}, "n": 1}))
    said = [str(error) for error in found.refusals]
    assert "spec.e.kind: Required value" in said
    assert any(SKIPPED in error for error in said)
    assert not any("spec.n" in error for error in said)
    assert [str(error) for error in found.errors] == ["spec.n: Invalid value: 1: no"]


def test_one_and_one_point_nought_are_two_items_of_a_set() -> None:
    numbers = listed({"type": "number"}, **{"x-kubernetes-list-type": "set"})
    assert errors(numbers, [1, 1.0]) == []
    assert errors(numbers, [0.0, -0.0]) == ["spec[1]: Duplicate value: -0"]
    assert errors(numbers, [1.0, 1.0]) == ["spec[1]: Duplicate value: 1"]


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "number", "minimum": 1}, -0.0, "spec: Invalid value: -0: spec in body should be greater than"),
        ({**ANYTHING, "enum": [1]}, ["\u2028"], 'spec: Unsupported value: ["\\u2028"]: supported values: "1"'),
    ],
)
def test_values_are_shown_as_go_writes_them(schema: JsonDict, value: Any, expected: str) -> None:
    assert any(error.startswith(expected) for error in errors(schema, value)), errors(schema, value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fff", "quantities must match the regular expression"),
        ("", "quantities must match the regular expression"),
        ("1KK", "unable to parse quantity's suffix"),
        ("1.2.3", "quantities must match the regular expression"),
        ("++1", "unable to parse quantity's suffix"),
        (".", "failed rule"),
    ],
)
def test_a_text_that_is_no_quantity_is_refused_in_the_words_of_the_server(text: str, words: str) -> None:
    ruled = {**TEXT, "x-kubernetes-validations": [{"rule": "quantity(self).isGreaterThan(quantity('1'))"}]}
    assert any(words in error for error in errors(ruled, text)), errors(ruled, text)


def test_what_is_written_with_a_point_is_another_value_than_the_stored_one() -> None:
    schema = root({"type": "number", "maximum": 0.5})
    assert admit(schema, thing(1), old=thing(1)).errors == []
    assert admit(schema, thing(1.0), old=thing(1.0)).errors == []
    assert admit(schema, thing(1.0), old=thing(1)).errors != []


@pytest.mark.parametrize(
    ("new", "expected"),
    [(True, []), (False, ["invalid data, expected bool, got string evaluating rule: no", "failed rule: self"])],
)
def test_a_stored_value_of_another_type_fails_only_the_rules_that_must_read_it(new: bool, expected: list[str]) -> None:
    rules = [{"rule": "!oldSelf || self", "message": "no"}, {"rule": "self"}]
    schema = root({"type": "boolean", "x-kubernetes-validations": rules})
    said = [str(error) for error in admit(schema, thing(new), old=thing("x")).errors]
    assert len(said) == len(expected)
    assert all(words in error for words, error in zip(expected, said, strict=True)), said
