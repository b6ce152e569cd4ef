"""Which writes met policies that stood all the time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from approvals.admission import MARGIN, InForce, StampedWrite, met

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
STOOD = InForce(sure_from=100, seen_until=200, since=NOW)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (StampedWrite(after=100, by=101), True),
        (StampedWrite(after=150, by=200), True),
        (StampedWrite(after=99, by=150), False),
        (StampedWrite(after=150, by=201), False),
        (StampedWrite(after=0, by=150), False),
        (StampedWrite(after=0, by=150, created_at=NOW + MARGIN), False),
        (StampedWrite(after=0, by=150, created_at=NOW + MARGIN + timedelta(seconds=1)), True),
        (StampedWrite(after=0, by=201, created_at=NOW + timedelta(hours=1)), False),
        (StampedWrite(after=120, by=150, created_at=NOW - timedelta(hours=1)), True),
    ],
    ids=[
        "just after",
        "until the last look",
        "perhaps before",
        "perhaps after the last look",
        "nobody knows since when",
        "made too early",
        "made later",
        "made after the last look",
        "made earlier and changed now",
    ],
)
def test_S05_a_write_is_proved_only_between_two_looks(written: StampedWrite, expected: bool) -> None:
    assert met(written, STOOD) is expected
