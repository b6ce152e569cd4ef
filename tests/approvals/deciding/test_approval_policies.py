"""The one reader of ApprovalPolicies: what they may say, what hostile ones come to, and what an unreadable one holds."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from approvals.deciding.approval_policies import MAX_LISTED, ApprovalPolicy, parse_document, read_document
from approvals.deciding.spec_fields import UnreadableObject
from approvals.policy.document import PolicyDocument, PolicyEffect

SPEC: dict[str, Any] = {
    "effect": "Grant",
    "matchConstraints": {"clusters": ["prod"], "names": ["strim*"], "matchLabels": {"team": "kafka"}},
    "validations": [
        {"expression": 'worst == "safe"', "message": "only what is safe", "messageExpression": "name + ' is not'"}
    ],
    "validationActions": ["Approve"],
    "matchConditions": [{"name": "upgrades", "expression": "!is_first"}],
    "allowKnownPowers": True,
    "description": "What comes at night",
}
WRITTEN: dict[str, Any] = {
    "apiVersion": "core.rukpak.io/v1alpha2",
    "kind": "ApprovalPolicy",
    "metadata": {"name": "nights"},
    "spec": SPEC,
}


def changed(path: str, value: object) -> dict[str, Any]:
    """The document with another value at `a.b.0.c`; None takes it away."""
    made: Any = copy.deepcopy(WRITTEN)
    at = made
    *steps, last = path.split(".")
    for step in steps:
        at = at[int(step)] if step.isdigit() else at[step]
    if value is None:
        del at[last]
    else:
        at[int(last) if last.isdigit() else last] = value
    return dict(made)


def test_a_document_is_read_and_written_back() -> None:
    document = parse_document(WRITTEN)
    assert (document.effect, document.is_enforced, document.labels) == (PolicyEffect.GRANT, True, {"team": "kafka"})
    assert document.to_object() == WRITTEN


def test_an_object_says_what_it_asks_and_each_expression_has_its_place() -> None:
    found = ApprovalPolicy.parse(SPEC)
    assert found.summary == 'Grant: worst == "safe"'
    assert (found.selector.words, found.description) == ("strim*, team=kafka", "What comes at night")
    assert {it.place: it.type for it in found.expressions} == {
        "spec.matchConditions[0].expression": "bool",
        "spec.validations[0].expression": "bool",
        "spec.validations[0].messageExpression": "string",
    }


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("apiVersion", "v1", "apiVersion"),
        ("kind", None, "kind"),
        ("metadata.name", "Nights!", "metadata.name"),
        ("metadata.name", "12", "metadata.name"),
        ("metadata.name", "x" * 64, "metadata.name"),
        ("metadata.namespace", "x", "metadata.namespace"),
        ("spec", ["x"], "spec"),
        ("spec.effect", "Deny", "spec.effect"),
        ("spec.effect", ["Grant"], "spec.effect"),
        ("spec.effect", None, "spec.effect"),
        ("spec.wildcard", True, "spec.wildcard"),
        ("spec.validations", [], "spec.validations"),
        ("spec.validations.0.expression", " ", "spec.validations[0].expression"),
        ("spec.validations.0.expression", "x" * 5_000, "spec.validations[0].expression"),
        ("spec.validations.0.reason", "Forbidden", "spec.validations[0].reason"),
        ("spec.validations", [{"expression": "true"}] * 21, "spec.validations"),
        ("spec.validationActions", ["Deny"], "spec.validationActions"),
        ("spec.validationActions", ["Approve", "Audit"], "spec.validationActions"),
        ("spec.matchConditions.0.name", None, "spec.matchConditions[0].name"),
        ("spec.matchConditions", [{"name": "a", "expression": "true"}] * 21, "spec.matchConditions"),
        ("spec.matchConstraints.names", "strimzi", "spec.matchConstraints.names"),
        ("spec.matchConstraints.names", [""], "spec.matchConstraints.names"),
        ("spec.matchConstraints.names", ["x"] * (MAX_LISTED + 1), "spec.matchConstraints.names"),
        ("spec.matchConstraints.matchLabels", {"team": 1}, "spec.matchConstraints.matchLabels"),
        ("spec.allowKnownPowers", "yes", "spec.allowKnownPowers"),
    ],
)
def test_what_is_wrong_is_said_with_its_place_in_few_words(path: str, value: object, place: str) -> None:
    with pytest.raises(UnreadableObject) as refused:
        parse_document(changed(path, value))
    assert refused.value.place == place
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("value", [None, [], "x" * 10_000, 3, {"spec": {}}, {1: 2}])
def test_what_is_no_document_is_refused(value: object) -> None:
    with pytest.raises(UnreadableObject):
        parse_document(value)


@pytest.mark.parametrize(
    ("name", "spec", "effect", "names", "is_enforced"),
    [
        ("a", {"matchConstraints": {"names": ["web"]}}, "Guard", ("web",), True),
        ("a", {"effect": "Guard", "validationActions": ["Audit"]}, "Guard", (), False),
        ("a", {"effect": "Guard", "validationActions": "Audit"}, "Guard", (), True),
        ("a", {"effect": "Guard", "matchConstraints": {"names": ["web"], "hosts": ["x"]}}, "Guard", (), True),
        ("a", {"effect": "Granted"}, "Guard", (), True),
        ("a", {"effect": "Grant"}, "Grant", (), True),
        ("12", {**SPEC, "effect": "Guard", "validationActions": ["Deny"]}, "Guard", ("strim*",), True),
        ("12", SPEC, "Grant", ("strim*",), True),
    ],
)
def test_S47_what_cannot_be_read_is_a_guard_in_force_unless_it_says_otherwise(
    name: str, spec: dict[str, Any], effect: str, names: tuple[str, ...], is_enforced: bool
) -> None:
    document, problem = read_document(name, spec)
    assert problem
    assert (document.effect, document.names, document.is_enforced) == (effect, names, is_enforced)
    assert "approves nothing" in ApprovalPolicy.describe_unreadable(spec) or effect == "Guard"


def test_what_can_be_read_has_no_problem() -> None:
    document, problem = read_document("nights", SPEC)
    assert (document, problem) == (parse_document(WRITTEN), "")
    assert isinstance(document, PolicyDocument)
