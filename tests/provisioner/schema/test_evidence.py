"""Stored objects in the place of guesses."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from provisioner.schema import compare, settle
from provisioner.values import Finding, Severity
from tests.provisioner.schema.shapes import TEXT, WHOLE, JsonDict, crd, crd_of, obj, root, thing, version

BREAKING, DANGEROUS, SAFE = Severity.BREAKING, Severity.DANGEROUS, Severity.SAFE
KEEP: JsonDict = {"x-kubernetes-preserve-unknown-fields": True}


def settled(old: JsonDict, new: JsonDict, *specs: Any) -> dict[str, Finding]:
    sides = crd_of(old), crd_of(new)
    found = settle(*sides, compare(*sides), [thing(spec) for spec in specs])
    return {finding.rule: finding for finding in found}


@pytest.mark.parametrize(
    ("old", "new", "rule", "clean", "affected"),
    [
        pytest.param(obj(a=TEXT, b=TEXT), obj(a=TEXT), "SCH-01", {"a": "x"}, {"b": "x"}, id="field removed"),
        pytest.param(obj(a=TEXT), obj("a", a=TEXT), "SCH-08", {"a": "x"}, {}, id="required"),
        pytest.param(obj(a=WHOLE), obj(a={**WHOLE, "maximum": 5}), "SCH-25", {"a": 5}, {"a": 6}, id="bound"),
        pytest.param(obj(a=TEXT), obj(a={**TEXT, "enum": ["x"]}), "SCH-20", {"a": "x"}, {"a": "y"}, id="enum"),
        pytest.param(obj(a=TEXT), obj(a={**TEXT, "pattern": r"\bx"}), "SCH-29", {"a": "x"}, {"a": "y"}, id="undecided"),
        pytest.param(obj(a=TEXT, more=KEEP), obj(a=TEXT), "SCH-51", {"a": "x"}, {"c": 1}, id="pruning begins"),
        pytest.param(
            obj(a=TEXT),
            obj(a=TEXT, more={"x-kubernetes-validations": [{"rule": "has(self.a)"}]}),
            "SCH-38",
            {"a": "x"},
            {},
            id="a CEL rule",
        ),
    ],
)
def test_what_no_object_minds_is_dangerous_and_what_one_minds_breaks(
    old: JsonDict, new: JsonDict, rule: str, clean: Any, affected: Any
) -> None:
    harmless = settled(old, new, clean)[rule]
    assert (harmless.severity, harmless.verdicts["stored"], harmless.evidence["affected"]) == (DANGEROUS, SAFE, 0)
    broken = settled(old, new, clean, affected)
    assert (broken[rule].severity, broken[rule].evidence["affected"]) == (BREAKING, 1)
    assert broken.keys() & {"LIV-01", "LIV-02"}


def test_an_error_that_an_object_had_before_is_no_news() -> None:
    found = settled(obj(a={**WHOLE, "maximum": 5}, b=TEXT), obj(a={**WHOLE, "maximum": 5}), {"a": 9})
    assert "LIV-01" not in found


def test_a_refusal_by_the_api_server_is_not_settled_by_objects() -> None:
    old = crd_of(obj(a=TEXT))
    new = copy.deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    (found,) = settle(old, new, compare(old, new), [])
    assert found.severity is BREAKING


def test_every_version_is_tried_and_told_apart() -> None:
    old = crd(version("v1", root(obj(a=TEXT))), version("v2", root(obj(a=TEXT)), storage=False))
    new = crd(version("v1", root(obj(a=TEXT))), version("v2", root(obj("a", a=TEXT)), storage=False))
    found = [it for it in settle(old, new, compare(old, new), [thing({})]) if it.rule == "SCH-08"]
    assert [(it.evidence["version"], it.severity) for it in found] == [("v2", BREAKING)]


def test_objects_of_another_kind_are_passed_over() -> None:
    old, new = crd_of(obj(a=TEXT)), crd_of(obj())
    stranger = {**thing({"a": "x"}), "kind": "Other"}
    (found,) = settle(old, new, compare(old, new), [stranger])
    assert (found.severity, found.evidence["objects"]) == (DANGEROUS, 0)


def test_the_objects_in_which_a_new_default_shows_are_counted() -> None:
    found = settled(obj(a=TEXT), obj(a={**TEXT, "default": "x"}), {"a": "y"}, {})["SCH-33"]
    assert (found.evidence["objects"], found.evidence["affected"]) == (2, 1)


def test_a_value_that_may_be_a_secret_is_not_repeated() -> None:
    found = settled(
        obj(password=TEXT), obj(password={**TEXT, "maxLength": 3, "pattern": "^x"}), {"password": "hunter2"}
    )
    assert found["LIV-01"].severity is BREAKING
    assert "hunter2" not in repr(found)


def test_nothing_given_is_changed() -> None:
    given = crd_of(obj(a=TEXT)), crd_of(obj("b", b=TEXT)), [thing({"a": "x"})]
    kept = copy.deepcopy(given)
    settle(given[0], given[1], compare(given[0], given[1]), given[2])
    assert given == kept
