"""Change windows as a calendar (iCalendar, RFC 5545), for people who plan. PURE.

Every time that a window is active is an event of its own, in UTC: what a calendar shows is what Pratique does, also
where a calendar has other rules of when clocks change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from approvals.deciding.change_windows import ChangeWindow

MOST_EVENTS = 5000
BEFORE, AFTER = timedelta(days=7), timedelta(days=92)
_LINE_BYTES = 75
_ESCAPED = str.maketrans({"\\": r"\\", ";": r"\;", ",": r"\,", "\n": r"\n", "\r": None})


def write_calendar(cluster: str, windows: Mapping[str, ChangeWindow], now: datetime) -> str:
    """The calendar of a cluster's windows by name, from a week ago for three months; the first MOST_EVENTS of it."""
    events = sorted(_list_events(windows, now))[:MOST_EVENTS]
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Pratique//Change windows//EN", "CALSCALE:GREGORIAN"]
    lines.append(f"X-WR-CALNAME:{_text(f'Change windows of {cluster}')}")
    for start, end, name in events:
        window = windows[name]
        about = f"{window.selector.words}. {window.description}" if window.description else window.selector.words
        lines += [
            "BEGIN:VEVENT",
            f"UID:{name}-{_instant(start)}@{cluster}.pratique",
            f"DTSTAMP:{_instant(now)}",
            f"DTSTART:{_instant(start)}",
            f"DTEND:{_instant(end)}",
            f"SUMMARY:{_text(f'{window.type}: {name}')}",
            f"DESCRIPTION:{_text(about)}",
            "TRANSP:TRANSPARENT",
            "END:VEVENT",
        ]
    return "".join(f"{folded}\r\n" for folded in _fold([*lines, "END:VCALENDAR"]))


def _list_events(windows: Mapping[str, ChangeWindow], now: datetime) -> Iterator[tuple[datetime, datetime, str]]:
    first, last = now - BEFORE, now + AFTER
    for name, window in windows.items():
        spans = window.schedule.spans(first) if window.schedule else [(now, None)]
        for start, end in spans:
            if start < last:
                yield start, end or last, name


def _text(words: str) -> str:
    return words.translate(_ESCAPED)


def _instant(at: datetime) -> str:
    return f"{at:%Y%m%dT%H%M%SZ}"


def _fold(lines: Iterable[str]) -> Iterator[str]:
    """A line has at most 75 bytes, and goes on after a space; no character is cut in two."""
    for line in lines:
        part, size = "", 0
        for character in line:
            width = len(character.encode())
            if size + width > _LINE_BYTES:
                yield part
                part, size = " ", 1
            part, size = part + character, size + width
        yield part
