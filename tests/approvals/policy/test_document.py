"""The document of a policy: what it may say, what it is as a row, and what hostile ones come to."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from approvals.policy.document import MAX_LISTED, BadDocument, PolicyDocument, PolicyEffect, Validation

WRITTEN: dict[str, Any] = {
    "apiVersion": "core.rukpak.io/v1alpha2",
    "kind": "ApprovalPolicy",
    "metadata": {"name": "nights"},
    "spec": {
        "effect": "Grant",
        "matchConstraints": {"clusters": ["prod"], "names": ["strim*"], "matchLabels": {"team": "kafka"}},
        "validations": [{"expression": 'worst == "safe"', "message": "only what is safe"}],
        "validationActions": ["Approve"],
        "allowKnownPowers": True,
    },
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
    document = PolicyDocument.parse(WRITTEN)
    assert (document.effect, document.is_enforced, document.labels) == (PolicyEffect.GRANT, True, {"team": "kafka"})
    assert document.to_object() == WRITTEN


def test_a_document_and_its_row_say_the_same() -> None:
    document = PolicyDocument.parse(WRITTEN)
    columns = document.columns()
    assert (columns["kind"], columns["mode"], columns["cluster"]) == ("grant", "enforce", "prod")
    assert PolicyDocument.of_columns(columns) == document


def test_several_validations_must_all_hold_and_a_comment_takes_no_parenthesis() -> None:
    validations = (Validation("a || b // or so", "first"), Validation("c", "first"), Validation("d", "last"))
    document = PolicyDocument("x", PolicyEffect.GUARD, validations, clusters=("prod",))
    assert document.expression == "(a || b // or so\n) && (c) && (d)"
    assert document.columns()["message"] == "first; last"


@pytest.mark.parametrize("clusters", [(), ("prod", "test")])
def test_a_row_is_of_one_cluster(clusters: tuple[str, ...]) -> None:
    document = PolicyDocument("x", PolicyEffect.GUARD, (Validation("true"),), clusters=clusters)
    with pytest.raises(BadDocument, match=f"names {len(clusters)} clusters"):
        document.columns()


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ("apiVersion", "v1", "apiVersion"),
        ("kind", None, "kind"),
        ("metadata.name", "Nights!", "metadata.name"),
        ("metadata.namespace", "x", "metadata.namespace"),
        ("spec", ["x"], "spec"),
        ("spec.effect", "Deny", "spec.effect"),
        ("spec.effect", ["Grant"], "spec.effect"),
        ("spec.wildcard", True, "spec.wildcard"),
        ("spec.validations", [], "spec.validations"),
        ("spec.validations.0.expression", " ", "spec.validations[0].expression"),
        ("spec.validations.0.expression", "x" * 5_000, "spec.validations[0].expression"),
        ("spec.validations.0.messageExpression", "name", "spec.validations[0].messageExpression"),
        ("spec.validations", [{"expression": "true"}] * 21, "spec.validations"),
        ("spec.validationActions", ["Deny"], "spec.validationActions[0]"),
        ("spec.validationActions", ["Approve", "Audit"], "spec.validationActions"),
        ("spec.matchConstraints.names", "strimzi", "spec.matchConstraints.names"),
        ("spec.matchConstraints.names", [""], "spec.matchConstraints.names[0]"),
        ("spec.matchConstraints.names", ["x"] * (MAX_LISTED + 1), "spec.matchConstraints.names"),
        ("spec.matchConstraints.matchLabels", {"team": 1}, "spec.matchConstraints.matchLabels"),
        ("spec.allowKnownPowers", "yes", "spec.allowKnownPowers"),
    ],
)
def test_what_is_wrong_is_said_with_its_place_in_few_words(path: str, value: object, place: str) -> None:
    with pytest.raises(BadDocument) as refused:
        PolicyDocument.parse(changed(path, value))
    assert refused.value.place == place
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("value", [None, [], "x" * 10_000, 3, {"spec": {}}, {1: 2}])
def test_what_is_no_document_is_refused(value: object) -> None:
    with pytest.raises(BadDocument):
        PolicyDocument.parse(value)
