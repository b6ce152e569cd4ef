"""What follows from a look at a reference that may move, and when the next one is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from approvals.bundle_spec import UpgradePolicy
from approvals.policy.source_changes import (
    Answer,
    FollowerFacts,
    SpecFacts,
    UpgradeFacts,
    answer_of,
    answer_upgrade,
    end_of_wait,
    interval_of,
    next_look,
    rest_of,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MOVED = FollowerFacts(seen="b", pin="a", answered="")
OFFERED = UpgradeFacts(is_offered=True)
FREE = SpecFacts()


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, Answer.ASK),
        ({"seen": "a"}, Answer.NOTHING),
        ({"seen": ""}, Answer.NOTHING),
        ({"is_fresh": False}, Answer.NOTHING),
        # Back to what an earlier request was made because of: the pin counts.
        ({"answered": "b"}, Answer.ASK),
        # A request that could not be prepared has no pin.
        ({"pin": ""}, Answer.REMEMBER),
        ({"pin": "", "answered": "b"}, Answer.NOTHING),
        ({"pin": "", "answered": "a"}, Answer.ASK),
    ],
    ids=str,
)
def test_a_move_asks_for_a_request_where_the_latest_one_is_not_for_it(changes: dict[str, Any], answer: Answer) -> None:
    assert answer_of(replace(MOVED, **changes), FREE) is answer


IN_BETWEEN = [
    ({"is_stopped": True}, Answer.NOTHING),
    ({"is_other_spec": True}, Answer.NOTHING),
    ({"is_pinning": True}, Answer.WAIT),
    ({"is_held": True}, Answer.WAIT),
    ({"is_too_soon": True}, Answer.WAIT),
]


@pytest.mark.parametrize(("changes", "answer"), IN_BETWEEN, ids=str)
def test_a_move_and_an_offer_alike_ask_only_where_nothing_stands_in_between(
    changes: dict[str, Any], answer: Answer
) -> None:
    assert answer_of(MOVED, SpecFacts(**changes)) is answer
    assert answer_upgrade(OFFERED, SpecFacts(**changes)) is answer


@pytest.mark.parametrize("changes", [changes for changes, _ in IN_BETWEEN if "is_pinning" not in changes], ids=str)
def test_what_is_no_news_waits_for_nothing(changes: dict[str, Any]) -> None:
    assert answer_of(replace(MOVED, seen="a"), SpecFacts(**changes)) is Answer.NOTHING
    assert answer_upgrade(replace(OFFERED, is_asked=True), SpecFacts(**changes)) is Answer.NOTHING
    assert answer_upgrade(replace(OFFERED, policy=UpgradePolicy.MANUAL), SpecFacts(**changes)) is Answer.NOTHING


@pytest.mark.parametrize(
    ("asked", "default", "seconds"), [(None, 600, 600), (None, 0, 0), (5, 600, 60), (0, 600, 0), (90, 0, 90)], ids=str
)
def test_the_operator_sets_the_default_and_the_floor(asked: int | None, default: int, seconds: int) -> None:
    assert interval_of(asked, default=default, least=60) == seconds


@pytest.mark.parametrize(
    ("failures", "wait", "seconds"),
    [(0, 0.0, 600), (1, 0.0, 1200), (2, 0.0, 2400), (9, 0.0, 3600), (1, 1800.0, 1800), (1, 1e9, 3600)],
    ids=str,
)
def test_a_source_that_is_down_is_asked_less_often_but_within_an_hour(failures: int, wait: float, seconds: int) -> None:
    until = end_of_wait(NOW, asked_to_wait=wait)
    found = next_look(NOW, interval=600, failures=failures, not_before=until)
    assert found - NOW == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, Answer.ASK),
        ({"policy": UpgradePolicy.AUTOMATIC}, Answer.ASK),
        ({"policy": UpgradePolicy.MANUAL}, Answer.NOTHING),
        ({"is_offered": False}, Answer.NOTHING),
        ({"is_asked": True}, Answer.NOTHING),
    ],
)
def test_what_an_offer_calls_for(changes: dict[str, Any], answer: Answer) -> None:
    assert answer_upgrade(replace(OFFERED, **changes), FREE) is answer


@pytest.mark.parametrize(
    ("minutes_ago", "most", "minutes"),
    [([], 2, None), ([5], 2, None), ([5, 50], 2, 10), ([5, 70], 2, None), ([1, 2, 30], 2, 58), ([1, 2, 3], 0, None)],
    ids=str,
)
def test_what_moves_too_often_rests_until_an_hour_after_the_first_of_so_many(
    minutes_ago: list[int], most: int, minutes: int | None
) -> None:
    until = rest_of([NOW - timedelta(minutes=one) for one in minutes_ago], most=most, now=NOW)
    assert until == (None if minutes is None else NOW + timedelta(minutes=minutes))
