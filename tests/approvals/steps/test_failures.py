"""What did not succeed of an apply, as the request says it."""

from __future__ import annotations

from approvals.steps.records.notes import words_of
from provisioner.values import Action, ObjectOutcome, ObjectRef, OutcomeState


def outcome(name: str, state: OutcomeState, message: str) -> ObjectOutcome:
    return ObjectOutcome(ObjectRef("", "v1", "ConfigMap", "shop", name), Action.CREATE, state, message)


def test_what_was_not_tried_is_counted_by_its_reason() -> None:
    failed = outcome("a", OutcomeState.FAILED, "the quota is used up")
    left = [outcome(f"c{number}", OutcomeState.SKIPPED, "not tried: phase config: it failed") for number in range(12)]
    assert words_of([failed, *left]) == (
        "ConfigMap shop/a: the quota is used up; 12 objects not tried: phase config: it failed"
    )


def test_objects_that_failed_for_one_reason_are_told_together() -> None:
    failed = [outcome(name, OutcomeState.FAILED, "refused") for name in "abcde"]
    assert words_of(failed) == "ConfigMap shop/a, ConfigMap shop/b, ConfigMap shop/c and 2 more objects: refused"


def test_only_the_first_reasons_are_told() -> None:
    failed = [outcome(str(number), OutcomeState.FAILED, f"reason {number}") for number in range(7)]
    assert words_of(failed).count("reason") == 5
