"""The calendar of change windows, as another library reads it."""

from __future__ import annotations

from datetime import UTC, datetime

import icalendar

from approvals.deciding.calendar_feed import MOST_EVENTS, write_calendar
from approvals.deciding.change_windows import ChangeWindow
from tests.support.approvals.windows import NIGHT, STOP, WEEKEND

NOW = datetime(2026, 12, 5, 12, tzinfo=UTC)


def test_another_library_reads_when_windows_are_active() -> None:
    words = "no changes; on weekends, ever\nBEGIN:VEVENT " + "ü" * 90
    weekend = ChangeWindow.parse({**WEEKEND, "description": words, "selector": {"names": ["payments-*"]}})
    text = write_calendar("prod", {"weekend": weekend, "stop": ChangeWindow.parse(STOP)}, NOW)
    assert max(len(line.encode()) for line in text.split("\r\n")) <= 75
    events = list(icalendar.Calendar.from_ical(text).walk("VEVENT"))
    found = [(str(event["SUMMARY"]), event.start, event.end) for event in events]
    assert found[0] == (
        "Deny: weekend",
        datetime(2026, 12, 4, 17, tzinfo=UTC),
        datetime(2026, 12, 7, 5, tzinfo=UTC),
    )
    assert str(events[0]["DESCRIPTION"]) == f"payments-*. {words}"
    assert [summary for summary, _, _ in found].count("Deny: stop") == 1
    assert len({str(event["UID"]) for event in events}) == len(events) == 15


def test_a_calendar_is_bounded() -> None:
    windows = {f"n{number}": ChangeWindow.parse(NIGHT) for number in range(100)}
    assert write_calendar("prod", windows, NOW).count("BEGIN:VEVENT") == MOST_EVENTS
