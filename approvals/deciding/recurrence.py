"""When something that recurs begins and ends: RFC 5545 in the wall-clock time of a zone. PURE.

python-dateutil says on which days it begins; zoneinfo, at which instant. A local time that a change of the clocks
leaves out is read with the offset before it, and one that comes twice is the first (RFC 5545, section 3.3.5). The
duration is elapsed time. The time of day is that of `dtstart`, so that it begins once a day at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import takewhile
from zoneinfo import ZoneInfo, available_timezones

from dateutil.rrule import rrule, rrulestr

from approvals.deciding.spec_fields import SpecFields

MAX_RULE_LENGTH = 500
# What lasts longer is no recurrence: it has no end, and somebody takes it away.
LONGEST = timedelta(days=31)
# So far ahead is looked; what begins later counts as what never does.
AHEAD = timedelta(days=366)
_YEARS = range(2000, 2200)
_DURATION = re.compile(r"(?:([0-9]{1,2})d)?(?:([0-9]{1,3})h)?(?:([0-9]{1,5})m)?")
_NUMBER = re.compile(r"[1-9][0-9]{0,3}")
_UNTIL_FORM = "%Y%m%dT%H%M%SZ"
_FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
# The parts of a rule, with the frequencies with which they mean something (RFC 5545, section 3.3.10).
_PARTS = {
    "FREQ": _FREQUENCIES,
    "INTERVAL": _FREQUENCIES,
    "COUNT": _FREQUENCIES,
    "UNTIL": _FREQUENCIES,
    "WKST": _FREQUENCIES,
    "BYMONTH": _FREQUENCIES,
    "BYDAY": _FREQUENCIES,
    "BYMONTHDAY": ("DAILY", "MONTHLY", "YEARLY"),
    "BYSETPOS": ("WEEKLY", "MONTHLY", "YEARLY"),
    "BYYEARDAY": ("YEARLY",),
    "BYWEEKNO": ("YEARLY",),
}
# After so many years dates have the same weekdays again, unless a year such as 2100 lies between them.
_CALENDAR_YEARS = 28


@dataclass(frozen=True, slots=True)
class Schedule:
    """`start` is wall-clock time in `zone`. Without `rule` it begins once, without `duration` it does not end."""

    start: datetime
    zone: str
    rule: str = ""
    duration: timedelta | None = None

    @property
    def lasts(self) -> str:
        """The duration as it is written, such as 2d12h; "" where it has no end."""
        minutes = int(self.duration.total_seconds()) // 60 if self.duration else 0
        parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "m"))
        return "".join(f"{number}{unit}" for number, unit in parts if number)

    @classmethod
    def read(cls, fields: SpecFields) -> Schedule | None:
        """From `dtstart`, `timeZone`, `rrule` and `duration`, None where all are left out; raises UnreadableObject."""
        texts = {name: fields.text(name, default="") for name in ("dtstart", "timeZone", "duration")}
        rule = fields.text("rrule", default="", longest=MAX_RULE_LENGTH)
        if not texts["dtstart"]:
            for name, text in {**texts, "rrule": rule}.items():
                if text:
                    raise fields.refuse(name, "needs spec.dtstart: when it begins for the first time")
            return None
        if texts["timeZone"] not in _zones():
            raise fields.refuse(
                "timeZone", f"is {texts['timeZone'][:60]!r}; expected an IANA time zone such as Europe/Berlin"
            )
        try:
            start = datetime.strptime(texts["dtstart"], "%Y-%m-%dT%H:%M:%S")  # noqa: DTZ007 - the zone is a field of its own
        except ValueError:
            start = None
        if start is None or start.year not in _YEARS:
            found, years = texts["dtstart"][:60], f"{_YEARS[0]} to {_YEARS[-1]}"
            raise fields.refuse(
                "dtstart", f"is {found!r}; expected a local time from {years}, such as 2026-12-04T18:00:00"
            )
        schedule = cls(start, texts["timeZone"], rule, _parse_duration(fields, texts["duration"]))
        if rule:
            _check_rule(fields, schedule)
        return schedule

    def spans(self, after: datetime) -> Iterator[tuple[datetime, datetime | None]]:
        """Each start and end in UTC, in order, of which the end is after this instant: all within AHEAD of it, and
        perhaps some later ones. A span is over at its end."""
        at = after.astimezone(UTC)
        for start in _starts(self, at.year, at.month):
            end = start + self.duration if self.duration is not None else None
            if end is None or end > after:
                yield start, end


def _parse_duration(fields: SpecFields, text: str) -> timedelta | None:
    if not text:
        return None
    found = _DURATION.fullmatch(text)
    days, hours, minutes = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    duration = timedelta(days=days, hours=hours, minutes=minutes)
    if not timedelta() < duration <= LONGEST:
        expected = f"days, hours and minutes such as 2d12h or 90m, up to {LONGEST.days}d"
        raise fields.refuse("duration", f"is {text[:60]!r}; expected {expected}")
    return duration


def _check_rule(fields: SpecFields, schedule: Schedule) -> None:
    """Raise UnreadableObject unless the rule is a recurrence by days or longer that names a day."""
    if schedule.duration is None:
        raise fields.refuse("rrule", "needs spec.duration: how long it lasts each time")
    if not re.fullmatch(r"[A-Z0-9=;,+-]+", schedule.rule):
        raise fields.refuse("rrule", f"is {schedule.rule[:60]!r}; expected parts such as FREQ=WEEKLY;BYDAY=FR")
    parts = [part.partition("=")[::2] for part in schedule.rule.split(";")]
    values = dict(parts)
    frequency = values.get("FREQ", "")
    if frequency not in _FREQUENCIES:
        raise fields.refuse("rrule", f"has FREQ={frequency[:60]}; expected one of {', '.join(_FREQUENCIES)}")
    allowed = sorted(name for name, frequencies in _PARTS.items() if frequency in frequencies)
    for name, value in parts:
        if name not in allowed or [each for each, _ in parts].count(name) > 1:
            raise fields.refuse("rrule", f"has {name[:60]!r}; expected each of {', '.join(allowed)} at most once")
        if name in ("INTERVAL", "COUNT") and not _NUMBER.fullmatch(value):
            raise fields.refuse("rrule", f"has {name}={value[:60]}; expected a number from 1 to 9999")
        if name.startswith("BY") and re.search(r"\b0+\b", value):
            raise fields.refuse("rrule", f"has {name}={value[:60]}; expected no 0")
        if name == "BYDAY" and frequency in ("DAILY", "WEEKLY") and re.search("[0-9]", value):
            raise fields.refuse("rrule", f"has BYDAY={value[:60]}; numbered days need FREQ=MONTHLY or YEARLY")
    if "UNTIL" in values and "COUNT" in values:
        raise fields.refuse("rrule", "has UNTIL and COUNT; expected one of them")
    try:
        if not _ever_begins(schedule):
            raise fields.refuse(
                "rrule", f"is {schedule.rule[:60]!r}, which names no day in the next {_CALENDAR_YEARS} years"
            )
    except (ValueError, TypeError, IndexError, KeyError, OverflowError) as exc:
        raise fields.refuse("rrule", f"is {schedule.rule[:60]!r}; expected a rule of RFC 5545: {exc}") from exc


def _read_rule(schedule: Schedule, start: datetime) -> tuple[rrule, datetime | None]:
    """The rule from this local time on, and the instant that UNTIL names, by which the caller has to end it.

    dateutil compares UNTIL with local times, in which an hour may come twice.
    """
    parts = schedule.rule.split(";")
    until = next((part.removeprefix("UNTIL=") for part in parts if part.startswith("UNTIL=")), "")
    found = rrulestr(";".join(part for part in parts if not part.startswith("UNTIL=")), dtstart=start)
    assert isinstance(found, rrule)  # one rule, as _check_rule lets nothing else pass
    return found, datetime.strptime(until, _UNTIL_FORM).replace(tzinfo=UTC) if until else None


@lru_cache(maxsize=4096)
def _ever_begins(schedule: Schedule) -> bool:
    """Whether the rule names any day within _CALENDAR_YEARS. dateutil looks until the year 9999, which takes seconds if
    it finds none; so the same days are asked for in a year near to that."""
    first, last = schedule.start.year, 9999 - _CALENDAR_YEARS
    same = (year for year in range(last, last - _CALENDAR_YEARS, -1) if _has_same_days(year, first))
    found, _ = _read_rule(schedule, schedule.start.replace(year=next(same)))
    return next(iter(found), None) is not None


def _has_same_days(year: int, other: int) -> bool:
    return year % 4 == other % 4 and date(year, 1, 1).weekday() == date(other, 1, 1).weekday()


# As many as the windows of a cluster that are read. These are some hundred instants each.
@lru_cache(maxsize=1024)
def _starts(schedule: Schedule, year: int, month: int) -> tuple[datetime, ...]:
    """The starts, in UTC and in order, from LONGEST before this month until AHEAD of its end."""
    zone = ZoneInfo(schedule.zone)
    if not schedule.rule:
        return (_instant(schedule.start, zone),)
    turn = datetime(year, month, 1)  # noqa: DTZ001 - a local time without a zone, as rrule gives what it is compared with
    first, last = turn - LONGEST - timedelta(days=2), turn + AHEAD + timedelta(days=33)
    found, until = _read_rule(schedule, _later_start(schedule, first))
    near = takewhile(lambda local: local <= last, found.xafter(first, inc=True))
    return tuple(start for start in (_instant(local, zone) for local in near) if until is None or start <= until)


def _later_start(schedule: Schedule, first: datetime) -> datetime:
    """From where the same recurrence goes on: some whole intervals after its start, and more than one before `first`.

    dateutil counts from the start each time, which takes long if that was years ago. With COUNT nothing else is right.
    """
    parts = dict(part.split("=", 1) for part in schedule.rule.split(";"))
    start, interval = schedule.start, int(parts.get("INTERVAL", "1"))
    if "COUNT" in parts or first <= start:
        return start
    if days := {"DAILY": 1, "WEEKLY": 7}.get(parts["FREQ"]):
        step = timedelta(days=days * interval)
        return start + max((first - start) // step - 1, 0) * step
    months = interval * (12 if parts["FREQ"] == "YEARLY" else 1)
    passed = (first.year - start.year) * 12 + first.month - start.month
    for count in range(passed // months - 1, 0, -1):
        year, month = divmod(start.year * 12 + start.month - 1 + count * months, 12)
        with suppress(ValueError):  # that month has fewer days
            return start.replace(year=year, month=month + 1)
    return start


def _instant(local: datetime, zone: ZoneInfo) -> datetime:
    return local.replace(tzinfo=zone).astimezone(UTC)


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
