"""Somebody who fights is answered more and more rarely."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from provisioner.cluster.drift.backoff import LONGEST_PAUSE, PATIENCE, PEACE, Strikes

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def after(count: int, *, every: timedelta = timedelta(seconds=1)) -> Strikes:
    strikes, now = Strikes(), NOON
    for _ in range(count):
        now = strikes.may_correct_at(now + every)
        strikes = strikes.after_correction(now)
    return strikes


@pytest.mark.parametrize(
    ("count", "seconds", "is_contested"),
    [(0, 0, False), (1, 0, False), (2, 0, False), (3, 10, True), (4, 20, True), (6, 80, True), (40, 3600, True)],
)
def test_the_pause_doubles_from_the_third_correction_in_a_row(count: int, seconds: int, is_contested: bool) -> None:
    strikes = after(count)
    assert (strikes.count, strikes.pause.total_seconds(), strikes.is_contested) == (count, seconds, is_contested)


def test_an_hour_of_fighting_every_second_is_answered_less_than_twelve_times() -> None:
    strikes, now, corrections = Strikes(), NOON, 0
    while now < NOON + timedelta(hours=1):
        if strikes.may_correct_at(now) <= now:
            strikes, corrections = strikes.after_correction(now), corrections + 1
        now += timedelta(seconds=1)
    assert PATIENCE < corrections < 12


def test_peace_begins_only_after_the_pause_has_passed_as_well() -> None:
    strikes = after(40)
    assert strikes.last is not None
    assert not strikes.is_peace(strikes.last + LONGEST_PAUSE)
    later = strikes.last + LONGEST_PAUSE + PEACE + timedelta(seconds=1)
    assert strikes.may_correct_at(later) == later
    assert strikes.after_correction(later) == Strikes(1, later)


def test_corrections_that_are_far_apart_are_no_fight() -> None:
    assert after(20, every=PEACE + timedelta(seconds=1)).count == 1
