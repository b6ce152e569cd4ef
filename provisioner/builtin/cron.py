"""Schedules of CronJobs. Source: robfig/cron v3 ParseStandard, with the zone rules of Kubernetes.

Five fields: minute, hour, day of month, month, day of week; or a word such as @daily. Kubernetes takes no zone in the
schedule itself: CRON_TZ= and TZ= are refused.
"""

from __future__ import annotations

import re
import zoneinfo

from provisioner.builtin.changes import quoted

_MONTHS = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_DAYS = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)
_WORDS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_EVERY = "@every "
_DURATION = re.compile(r"[+-]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+|[+-]?0")
_LARGEST = 2**63 - 1


def problem_of_schedule(text: str) -> str:
    """Why `text` is no schedule, "" for one."""
    if "TZ" in text:
        return "names a time zone, which belongs to `timeZone`"
    if text.startswith("@"):
        if text.startswith(_EVERY):
            return "" if _DURATION.fullmatch(text.removeprefix(_EVERY)) else "must name a duration after @every"
        return "" if text in _WORDS else f"is no schedule: {text.split(maxsplit=1)[0]} is not known"
    parts = text.split()
    if len(parts) != len(_FIELDS):
        return f"must have 5 fields, and has {len(parts)}"
    for part, field in zip(parts, _FIELDS, strict=True):
        for one in part.split(","):
            if one and (words := _of_range(one, field)):
                return words
    return ""


def _of_range(text: str, field: tuple[str, int, int, dict[str, int]]) -> str:
    name, least, most, names = field
    span, slash, step = text.partition("/")
    ends = span.split("-")
    if len(ends) > 2 or "/" in step:
        return f"has {quoted(text)} as {name}, which cannot be read"
    if ends[0] in ("*", "?"):
        low, high = least, most
    else:
        numbers = [_number(one, names) for one in ends]
        if None in numbers:
            return f"has {quoted(text)} as {name}, which cannot be read"
        low, high = (numbers[0] or 0), (numbers[-1] or 0)
        high = most if slash and len(ends) == 1 else high
    if slash and not _is_step(step):
        return f"has {quoted(text)} as {name}, of which the step cannot be read or is 0"
    if low < least or high > most:
        return f"has {quoted(text)} as {name}, which must be from {least} to {most}"
    return f"has {quoted(text)} as {name}, which begins after its end" if low > high else ""


def _number(text: str, names: dict[str, int]) -> int | None:
    known = names.get(text.lower())
    if known is not None:
        return known
    is_number = re.fullmatch(r"\+?[0-9]+", text) is not None and len(text) < 19
    return int(text) if is_number else None


def _is_step(text: str) -> bool:
    step = _number(text, {})
    return step is not None and 0 < step <= _LARGEST


def is_time_zone(name: str) -> bool | None:
    """Whether the server knows a zone; None where this machine has no database of zones to look into."""
    if not name or name.lower() == "local" or name.startswith("/") or ".." in name:
        return False
    return True if _is_known(name) else False if _is_known("Europe/Berlin") else None


def _is_known(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
