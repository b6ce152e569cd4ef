"""Every field in which two states differ, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.claims import Claim, Claims
from provisioner.review.base.difference import HIDDEN
from provisioner.review.judged.harmless import RULE as HARMLESS
from provisioner.review.judged.leaves import ABSENT, EMPTY, ORDER, changed_leaves
from provisioner.values import GroupKind

A, B = {"name": "a", "port": 1}, {"name": "b", "port": 2}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"a": {"b": 1}}, {"a": {"b": 2}}, [(("a", "b"), 1, 2)], id="changed"),
        pytest.param({}, {"a": {"b": [1]}}, [(("a", "b", 0), ABSENT, 1)], id="set"),
        pytest.param({"a": {"b": 1}}, {}, [(("a", "b"), 1, ABSENT)], id="removed"),
        pytest.param({"a": 1}, {"a": True}, [(("a",), 1, True)], id="1 and true"),
        pytest.param({"a": "x"}, {"a": "(absent)"}, [(("a",), "x", "(absent)")], id="a text that says absent"),
        pytest.param({}, {"a": "(absent)"}, [(("a",), ABSENT, "(absent)")], id="a new text that says absent"),
        pytest.param({}, {"a": {}}, [(("a", EMPTY), ABSENT, {})], id="an empty map"),
        pytest.param({"a": {}}, {"a": {"b": 1}}, [(("a", "b"), ABSENT, 1)], id="an empty map that is filled"),
        pytest.param({"a": {"b": 1}}, {"a": {}}, [(("a", "b"), 1, ABSENT)], id="a map that is emptied"),
        pytest.param(
            {"a": {"b": 1}}, {"a": "x"}, [(("a", "b"), 1, ABSENT), (("a",), ABSENT, "x")], id="of another type"
        ),
        pytest.param(
            {"l": [A]},
            {"l": [B, A]},
            [(("l", 0, "name"), ABSENT, "b"), (("l", 0, "port"), ABSENT, 2)],
            id="an item that comes first",
        ),
        pytest.param(
            {"l": [A, B]},
            {"l": [B]},
            [(("l", 0, "name"), "a", ABSENT), (("l", 0, "port"), 1, ABSENT)],
            id="an item that goes",
        ),
        pytest.param({"l": [A, B]}, {"l": [B, A]}, [(("l", ORDER), ["a", "b"], ["b", "a"])], id="another order"),
        pytest.param(
            {"l": [{"a": 1}, {"a": 2}]},
            {"l": [{"a": 2}, {"a": 1}]},
            [(("l", ORDER), ["1", "2"], ["2", "1"])],
            id="another order of items without a name",
        ),
        pytest.param({"l": ["x", "y"]}, {"l": ["x", "z"]}, [(("l", 1), "y", "z")], id="an item without a name"),
        pytest.param({"a": None}, {}, [], id="null is nothing"),
    ],
)
def test_every_field_that_differs_is_a_leaf(before: Any, after: Any, expected: list[Any]) -> None:
    assert [(leaf.path, leaf.before, leaf.after) for leaf in changed_leaves(before, after)] == expected


def test_null_is_a_value_of_kinds_that_may_have_it() -> None:
    assert [leaf.after for leaf in changed_leaves({}, {"a": None}, has_nulls=True)] == [None]


def test_what_is_nested_too_deeply_is_one_leaf() -> None:
    deep: Any = 1
    for _ in range(3000):
        deep = {"a": deep}
    (found,) = changed_leaves({"a": 1}, {"a": 1, "b": deep})
    assert found.path[0] == "b"


def test_values_of_secrets_are_no_part_of_a_leaf() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"password": "UGw0bnRlZA=="}}
    assert "UGw0bnRlZA" not in str(changed_leaves(None, secret))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"name": "MODE", "value": "x"}, {"name": "PASSWORD", "value": "y"}, id="variables"),
        pytest.param(["--mode", "x"], ["--password", "y"], id="flags"),
    ],
)
def test_a_value_goes_by_the_name_of_the_credential_that_it_was_or_will_be(one: Any, other: Any) -> None:
    for before, after in ((one, other), (other, one)):
        (found,) = [leaf for leaf in changed_leaves({"l": before}, {"l": after}) if leaf.before in ("x", "y")]
        assert found.name.lower() == "password"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({"spec": {"a": 1}}, {"spec": {"a": 2}}, [], id="a field"),
        pytest.param({}, {"spec": {"a": {"b": [1], "c": {}}}}, [], id="all below a field that is claimed"),
        pytest.param({}, {"spec": {"b": 1}}, [(("spec", "b"), False)], id="a field beside it"),
        pytest.param({"spec": {"l": [A, B]}}, {"spec": {"l": [B, A]}}, [], id="the order of a list"),
        pytest.param({}, {"spec": {"l": []}}, [], id="an empty list"),
        pytest.param({}, {"spec": {"h": {"x": 1, "j": 2}}}, [(("spec", "h", "x"), True)], id="harmless but for a part"),
        pytest.param({"spec": {"a": 1}}, {"spec": 3}, [(("spec",), False)], id="a field in the place of a map"),
    ],
)
def test_what_a_rule_judges_is_left_out(before: Any, after: Any, expected: list[Any]) -> None:
    kind = GroupKind("shop.example.com", "Order")
    judged = Claim("R-01", frozenset({kind}), ("spec.a", "spec.l.*", "spec.h.j"))
    claims = Claims((judged, Claim(HARMLESS, frozenset({kind}), ("spec.h",))))

    found = changed_leaves(before, after, claims.root(kind))

    assert [(one.path, one.is_harmless) for one in found] == expected
    every = changed_leaves(before, after)
    assert [one.path for one in every if claims.judge_of(kind, one.path) in ("", HARMLESS)] == [
        one.path for one in found
    ]


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_a_secret_with_an_empty_map_of_values_is_compared(field: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}
    (leaf,) = changed_leaves(secret, {**secret, field: {}})
    assert (leaf.path, leaf.before, leaf.after) == ((field,), ABSENT, HIDDEN)
