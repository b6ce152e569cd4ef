"""Specs of change windows that tests share."""

from __future__ import annotations

_BERLIN = {"timeZone": "Europe/Berlin"}
WEEKEND = {
    "type": "Deny",
    "dtstart": "2026-12-04T18:00:00",
    "rrule": "FREQ=WEEKLY;BYDAY=FR",
    "duration": "2d12h",
    **_BERLIN,
}
NIGHT = {"type": "Allow", "dtstart": "2026-01-01T22:00:00", "rrule": "FREQ=DAILY", "duration": "8h", **_BERLIN}
NOON = {"type": "Allow", "dtstart": "2026-01-01T12:00:00", "rrule": "FREQ=DAILY", "duration": "1h", **_BERLIN}
STOP = {"type": "Deny", "description": "incident 7"}
