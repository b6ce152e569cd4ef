"""Filters of the pages: times and durations in the words that people read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django import template
from django.utils.dateparse import parse_datetime
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from approvals.clock import database_now

register = template.Library()

UNITS = ((86400, "day"), (3600, "h"), (60, "min"))


@register.filter
def ago(at: datetime | None) -> SafeString:
    """How long ago, or how far ahead, with the exact time on hover."""
    if at is None:
        return SafeString("never")
    gap = database_now() - at
    soon = "just now" if gap >= timedelta(0) else "within a minute"
    words = soon if abs(gap) < timedelta(minutes=1) else _span(gap)
    return format_html('<time datetime="{0}" title="{0}">{1}</time>', at.strftime("%Y-%m-%dT%H:%M:%SZ"), words)


@register.filter
def lasting(at: datetime) -> SafeString:
    """How long something has lasted: `for 2 min`, with the exact time on hover."""
    seconds = (database_now() - at).total_seconds()
    words = f"for {_in_units(int(seconds), spare=0)}" if seconds >= 60 else "for less than a minute"
    return format_html('<time datetime="{0}" title="since {0}">{1}</time>', at.strftime("%Y-%m-%dT%H:%M:%SZ"), words)


@register.filter
def moment(at: datetime) -> SafeString:
    """The exact time in UTC, and how long ago that is."""
    return format_html("{} UTC · {}", at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S"), ago(at))


@register.filter
def ago_of(text: str) -> SafeString:
    """The same of a time as Kubernetes writes it; what is none stays as it is."""
    try:
        at = parse_datetime(text)
    except ValueError:
        at = None
    return ago(at) if at and at.tzinfo else escape(text)


def _span(gap: timedelta) -> str:
    """Whole units, rounded down: what ends "in 3 h" lasts at least that long, but for a 24th of the unit.

    Thirty days that began a moment ago are 30 days, not 29.
    """
    seconds = int(abs(gap).total_seconds())
    if gap > timedelta(0):
        return f"{_in_units(seconds, spare=0)} ago"
    return f"in {_in_units(seconds, spare=24)}"


def _in_units(seconds: int, *, spare: int) -> str:
    """`seconds`, at least 60, in the largest unit of which it holds one; what lacks 1/`spare` of it counts, too."""
    for size, unit in UNITS:
        number = (seconds + (size // spare if spare else 0)) // size
        if number:
            return f"{number} {unit}{'s' if unit == 'day' and number > 1 else ''}"
    return f"{seconds // 60} min"


@register.filter
def milliseconds(number: float) -> str:
    """`0.4 ms`, `12 ms`, `3.2 s`."""
    if number >= 1000:
        return f"{number / 1000:.1f} s"
    return f"{number:.0f} ms" if number >= 1 else f"{number:.1f} ms"
