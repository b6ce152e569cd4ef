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


BRANCHES = {
    "or none of them": (obj(a=TEXT, b=TEXT, more=A_OR_B), obj(a=TEXT, b=TEXT, more=ONE_OR_NONE), SAFE),
    "none no more": (obj(a=TEXT, b=TEXT, more=ONE_OR_NONE), obj(a=TEXT, b=TEXT, more=A_OR_B), BREAKING),
    "a new member": (obj(a=TEXT, b=TEXT, more=A_OR_B), obj(a=TEXT, b=TEXT, c=TEXT, more=WITH_C), SAFE),
    "a known one": (obj(a=TEXT, b=TEXT, c=TEXT, more=A_OR_B), obj(a=TEXT, b=TEXT, c=TEXT, more=WITH_C), BREAKING),
    "said in another way": (
        obj(a=TEXT, b=TEXT, more={"anyOf": [{"required": ["a"]}]}),
        obj(a=TEXT, b=TEXT, more={"not": {"not": {"required": ["a"]}}}),
        SAFE,
    ),
    "each listed value has a branch": (
        obj("kind", kind=KIND, a=TEXT),
        obj("kind", kind=KIND, a=TEXT, more={"oneOf": [{"properties": {"kind": {"enum": [it]}}} for it in "AB"]}),
        SAFE,
    ),
    "a listed value without branch": (
        obj("kind", kind=KIND, a=TEXT),
        obj(
            "kind", kind=KIND, a=TEXT, more={"anyOf": [{"properties": {"kind": {"enum": ["A"]}}}, {"required": ["a"]}]}
        ),
        BREAKING,
    ),
    "true of everything": (TEXT, {**TEXT, "anyOf": [{"pattern": "a"}, {"not": {"pattern": "a"}}]}, SAFE),
    "patterns as one": (
        {**TEXT, "anyOf": [{"pattern": "^a$"}, {"pattern": "^b$"}]},
        {**TEXT, "anyOf": [{"pattern": "^[ab]$"}]},
        SAFE,
    ),
    "fewer": ({**TEXT, "anyOf": [{"pattern": "^[ab]$"}]}, {**TEXT, "anyOf": [{"pattern": "^a$"}]}, BREAKING),
    "tighter": ({**TEXT, "allOf": [{"maxLength": 5}]}, {**TEXT, "allOf": [{"maxLength": 3}]}, BREAKING),
    "looser": ({**TEXT, "allOf": [{"maxLength": 3}]}, {**TEXT, "allOf": [{"maxLength": 5}]}, SAFE),
    "two conditions": (
        {**TEXT, "oneOf": [{"pattern": "^a"}]},
        {**TEXT, "oneOf": [{"pattern": "a"}, {"format": "uri"}]},
        UNKNOWN,
    ),
}


@pytest.mark.parametrize(("old", "new", "severity"), BRANCHES.values(), ids=BRANCHES)
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
