"""The document of a policy: what it is as a row and as an expression."""

from __future__ import annotations

from approvals.policy.document import PolicyDocument, PolicyEffect, Validation


def test_a_document_and_its_row_say_the_same() -> None:
    document = PolicyDocument(
        "nights",
        PolicyEffect.GRANT,
        (Validation('worst == "safe"', "only what is safe"),),
        clusters=("prod",),
        names=("strim*",),
        labels={"team": "kafka"},
        is_enforced=True,
        allows_known_powers=True,
    )
    columns = {**document.columns(), "cluster": "prod"}
    assert (columns["kind"], columns["mode"]) == ("grant", "enforce")
    assert PolicyDocument.of_columns(columns) == document


def test_several_validations_must_all_hold_and_a_comment_takes_no_parenthesis() -> None:
    validations = (Validation("a || b // or so", "first"), Validation("c", "first"), Validation("d", "last"))
    document = PolicyDocument("x", PolicyEffect.GUARD, validations)
    assert document.expression == "(a || b // or so\n) && (c) && (d)"
    assert document.columns()["message"] == "first; last"
