"""The phases of an apply: what is done in each, and how long it took."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from approvals.models import Outcome, Request
from approvals.web.requests.activity import has_lost_its_worker, phases, words_of_span

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_a_phase_lasts_until_its_last_object() -> None:
    rows = [
        Outcome(step="apply", phase=phase, state=state, at=NOON + timedelta(seconds=at))
        for phase, state, at in (("crds", "done", 0), ("crds", "done", 4), ("workloads", "failed", 9))
    ]
    found = [(one.words, one.done, one.failed, one.took) for one in phases(rows)]
    assert found == [("Applied phase crds", 2, 0, "4 s"), ("Applied phase workloads", 0, 1, "5 s")]


def test_what_was_not_tried_is_not_done_and_deletions_are_told_apart() -> None:
    rows = [
        Outcome(step="apply", phase=phase, action=action, state=state, at=NOON + timedelta(seconds=at))
        for phase, action, state, at in (
            ("crds", "create", "unchanged", 0),
            ("crds", "create", "skipped", 1),
            ("", "delete", "done", 3),
            ("", "create", "done", 60),
        )
    ]
    rows.append(Outcome(step="restore", phase="crds", action="update", state="done", at=NOON + timedelta(seconds=90)))
    found = [(one.words, one.done, one.skipped, one.took) for one in phases(rows)]
    assert found == [
        ("Applied phase crds", 1, 1, "1 s"),
        ("Deleted", 1, 0, "2 s"),
        ("Applied", 1, 0, "57 s"),
        ("Restored phase crds", 1, 0, "under 1 s"),
    ]


@pytest.mark.parametrize(
    ("state", "holder", "seconds", "is_lost"),
    [
        ("applying", "w", -1, True),
        ("applying", "w", 1, False),
        ("applying", "", -1, False),
        ("approved", "w", -1, False),
    ],
    ids=["died", "at it", "given back", "nothing is written"],
)
def test_a_claim_that_has_lapsed_is_of_a_worker_that_died(state: str, holder: str, seconds: int, is_lost: bool) -> None:
    request = Request(state=state, claimed_by=holder, claimed_until=NOON + timedelta(seconds=seconds))
    assert has_lost_its_worker(request, NOON) is is_lost


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "under 1 s"), (0.2, "under 1 s"), (59, "59 s"), (60, "1 min"), (7500, "2 h 5 min"), (90_000, "1 d 1 h")],
)
def test_a_span_is_told_in_two_units(seconds: float, words: str) -> None:
    assert words_of_span(timedelta(seconds=seconds)) == words
