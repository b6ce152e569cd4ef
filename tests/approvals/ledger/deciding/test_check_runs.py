"""Runs of external checks: what counts of several, and what may have changed since it was read."""

from __future__ import annotations

import pytest
from django.db import transaction

from approvals.deciding.external_checks import CheckOutcome, ExternalCheck, SelectedCheck
from approvals.ledger.deciding import check_runs
from approvals.ledger.deciding.check_runs import CheckAnswer
from approvals.ledger.moves import locked
from approvals.models import CheckRun, Request

CHECK = ExternalCheck.parse({"url": "https://checks.example.com/tickets"})


def ask(request: Request) -> CheckRun:
    with transaction.atomic():
        return check_runs.ask(locked(request.pk), CHECK, uid="u-1", name="tickets")


def answer(run: CheckRun, outcome: CheckOutcome) -> None:
    with transaction.atomic():
        check_runs.take_answer(locked(run.request_id), run, CheckAnswer(outcome, run.subject_digest))


@pytest.mark.parametrize("change", ["failed", "asked again", "another round", None])
def test_S49_nothing_is_decided_on_an_answer_that_is_another_one_by_now(request_: Request, change: str | None) -> None:
    run = ask(request_)
    answer(run, CheckOutcome.PASSED)
    read = [SelectedCheck("tickets", "u-1", CHECK, run=check_runs.facts_of(run)), SelectedCheck("other", "u-2", CHECK)]
    if change == "failed":
        answer(run, CheckOutcome.FAILED)
    elif change == "asked again":
        assert ask(request_).number == 2
    elif change:
        Request.objects.update(round=2, subject_digest="sha256:2")
    assert check_runs.are_as_read(Request.objects.get(), read) == (change is None)


def test_what_another_run_of_the_same_check_moves_meanwhile_is_delivered_all_the_same(request_: Request) -> None:
    first, second = ask(request_), ask(request_)
    for run in (first, second):
        check_runs.begin_sending(run)
    check_runs.note_sent(first, "unreachable")
    check_runs.note_sent(second, "")
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.delivered_at, second.send_at) == (None, None)
    assert first.send_at and second.delivered_at
