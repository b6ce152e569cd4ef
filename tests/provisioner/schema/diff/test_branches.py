"""Branches (allOf, anyOf, oneOf, not) that change, as `compare` sees them."""

from __future__ import annotations

import pytest

from provisioner.schema import compare
from provisioner.schema.admission.validation import validate
from provisioner.values import Severity
from tests.support.provisioner.compared import A_OR_B, BREAKING, SAFE, UNKNOWN
from tests.support.provisioner.shapes import TEXT, JsonDict, crd, crd_of, obj, root, thing, version

KIND = {"type": "string", "enum": ["A", "B"]}
ONE_OR_NONE = {"oneOf": [{"not": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}, *A_OR_B["oneOf"]]}
WITH_C = {"oneOf": [*A_OR_B["oneOf"], {"required": ["c"]}]}


@pytest.mark.parametrize(
    ("old", "new", "severity"),
    [
        pytest.param(
            obj(a=TEXT, b=TEXT, more=A_OR_B), obj(a=TEXT, b=TEXT, more=ONE_OR_NONE), SAFE, id="or none of them"
        ),
        pytest.param(
            obj(a=TEXT, b=TEXT, more=ONE_OR_NONE), obj(a=TEXT, b=TEXT, more=A_OR_B), BREAKING, id="none no more"
        ),
        pytest.param(
            obj(a=TEXT, b=TEXT, more=A_OR_B), obj(a=TEXT, b=TEXT, c=TEXT, more=WITH_C), SAFE, id="a new member"
        ),
        pytest.param(
            obj(a=TEXT, b=TEXT, c=TEXT, more=A_OR_B),
            obj(a=TEXT, b=TEXT, c=TEXT, more=WITH_C),
            BREAKING,
            id="a known one",
        ),
        pytest.param(
            obj(a=TEXT, b=TEXT, more={"anyOf": [{"required": ["a"]}]}),
            obj(a=TEXT, b=TEXT, more={"not": {"not": {"required": ["a"]}}}),
            SAFE,
            id="said in another way",
        ),
        pytest.param(
            obj("kind", kind=KIND, a=TEXT),
            obj("kind", kind=KIND, a=TEXT, more={"oneOf": [{"properties": {"kind": {"enum": [it]}}} for it in "AB"]}),
            SAFE,
            id="each listed value has a branch",
        ),
        pytest.param(
            obj("kind", kind=KIND, a=TEXT),
            obj(
                "kind",
                kind=KIND,
                a=TEXT,
                more={"anyOf": [{"properties": {"kind": {"enum": ["A"]}}}, {"required": ["a"]}]},
            ),
            BREAKING,
            id="a listed value without branch",
        ),
        pytest.param(
            TEXT, {**TEXT, "anyOf": [{"pattern": "a"}, {"not": {"pattern": "a"}}]}, SAFE, id="true of everything"
        ),
        pytest.param(
            {**TEXT, "anyOf": [{"pattern": "^a$"}, {"pattern": "^b$"}]},
            {**TEXT, "anyOf": [{"pattern": "^[ab]$"}]},
            SAFE,
            id="patterns as one",
        ),
        pytest.param(
            {**TEXT, "anyOf": [{"pattern": "^[ab]$"}]}, {**TEXT, "anyOf": [{"pattern": "^a$"}]}, BREAKING, id="fewer"
        ),
        pytest.param(
            {**TEXT, "allOf": [{"maxLength": 5}]}, {**TEXT, "allOf": [{"maxLength": 3}]}, BREAKING, id="tighter"
        ),
        pytest.param({**TEXT, "allOf": [{"maxLength": 3}]}, {**TEXT, "allOf": [{"maxLength": 5}]}, SAFE, id="looser"),
        pytest.param(
            {**TEXT, "oneOf": [{"pattern": "^a"}]},
            {**TEXT, "oneOf": [{"pattern": "a"}, {"format": "uri"}]},
            UNKNOWN,
            id="two conditions",
        ),
    ],
)
def test_branches_are_decided_by_what_they_accept(old: JsonDict, new: JsonDict, severity: Severity) -> None:
    (found,) = [it for it in compare(crd_of(old), crd_of(new)) if it.rule in {"SCH-55", "SCH-56", "SCH-57", "SCH-58"}]
    assert found.severity is severity
    if severity is BREAKING:
        shown = thing(found.evidence["counterexample"])
        assert not validate(root(old), shown)
        assert validate(root(new), shown)


def test_a_limit_of_zero_in_a_branch_is_a_limit() -> None:
    old = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "anyOf": [{"maxProperties": 0}, {}],
        "not": {"required": ["a", "b"]},
    }
    new = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "anyOf": [{"maxProperties": 0}]}
    sides = (crd(version(schema={"type": "object", "properties": {"spec": it}})) for it in (old, new))
    assert Severity.BREAKING in {finding.severity for finding in compare(*sides)}
