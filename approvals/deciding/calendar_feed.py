"""Change windows as a calendar (iCalendar, RFC 5545), for people who plan. PURE.

Every time that a window is active is an event of its own, in UTC: what a calendar shows is what Pratique does, also
where a calendar has other rules of when clocks change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from icalendar import Calendar, Event

from approvals.deciding.change_windows import ChangeWindow

MOST_EVENTS = 5000
BEFORE, AFTER = timedelta(days=7), timedelta(days=92)


def write_calendar(cluster: str, windows: Mapping[str, ChangeWindow], now: datetime) -> str:
    """The calendar of a cluster's windows by name, from a week ago for three months; the first MOST_EVENTS of it."""
    calendar = Calendar()
    calendar.add("version", "2.0")
    calendar.add("prodid", "-//Pratique//Change windows//EN")
    calendar.add("x-wr-calname", f"Change windows of {cluster}")
    for start, end, name in sorted(_list_events(windows, now))[:MOST_EVENTS]:
        window, event = windows[name], Event()
        # One without a schedule began at no known time: it is the same event each time that the calendar is read.
        begins = f"{start:%Y%m%dT%H%M%SZ}" if window.schedule else "always"
        event.add("uid", f"{name}-{begins}@{cluster}.pratique")
        event.add("dtstamp", now)
        event.add("dtstart", start)
        event.add("dtend", end)
        event.add("summary", f"{window.type}: {name}")
        event.add("description", ". ".join(filter(None, [window.selector.words, window.description])))
        event.add("transp", "TRANSPARENT")
        calendar.add_component(event)
    return str(calendar.to_ical(), "utf-8")


def _list_events(windows: Mapping[str, ChangeWindow], now: datetime) -> Iterator[tuple[datetime, datetime, str]]:
    first, last = now - BEFORE, now + AFTER
    for name, window in windows.items():
        spans = window.schedule.spans(first) if window.schedule else [(now, None)]
        for start, end in spans:
            if start < last:
                yield start, end or last, name
