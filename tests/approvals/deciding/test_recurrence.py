"""Recurrence in a zone: the clocks' changes, what is refused, and the same answers as another library over 20 years."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import icalendar
import pytest
import recurring_ical_events
from dateutil.rrule import rrulestr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from approvals.deciding.recurrence import Schedule
from approvals.deciding.spec_fields import SpecFields, UnreadableObject

ZONES = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/Johannesburg",
    "America/Chicago",
    "America/Havana",
    "America/Los_Angeles",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Jerusalem",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Asia/Tehran",
    "Asia/Tokyo",
    "Atlantic/Azores",
    "Australia/Adelaide",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Europe/Berlin",
    "Europe/Dublin",
    "Europe/London",
    "Pacific/Apia",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "UTC",
]


day = datetime.fromisoformat


def schedule(start: str, zone: str = "Europe/Berlin", rule: str = "", duration: str = "1h") -> Schedule:
    found = Schedule.read(SpecFields({"dtstart": start, "timeZone": zone, "rrule": rule, "duration": duration}))
    assert found
    return found


def spans_of(found: Schedule, after: str, count: int) -> list[str]:
    spans = list(found.spans(datetime.fromisoformat(after).replace(tzinfo=UTC)))[:count]
    return [f"{start:%m-%d %H:%M} {end:%m-%d %H:%M}" if end else f"{start:%m-%d %H:%M}" for start, end in spans]


@pytest.mark.parametrize(
    ("found", "after", "expected"),
    [
        pytest.param(
            schedule("2026-12-04T18:00:00", rule="FREQ=WEEKLY;BYDAY=FR", duration="2d12h"),
            "2026-12-05",
            ["12-04 17:00 12-07 05:00", "12-11 17:00 12-14 05:00"],
            id="what has begun is told until it ends",
        ),
        pytest.param(
            schedule("2026-03-28T02:30:00", rule="FREQ=DAILY"),
            "2026-03-28",
            ["03-28 01:30 03-28 02:30", "03-29 01:30 03-29 02:30", "03-30 00:30 03-30 01:30"],
            id="a time that the clocks leave out is read with the offset before",
        ),
        pytest.param(
            schedule("2026-10-24T02:30:00", rule="FREQ=DAILY"),
            "2026-10-24",
            ["10-24 00:30 10-24 01:30", "10-25 00:30 10-25 01:30", "10-26 01:30 10-26 02:30"],
            id="of a time that comes twice it is the first",
        ),
        pytest.param(
            schedule("2026-10-24T20:00:00", rule="FREQ=DAILY", duration="10h"),
            "2026-10-24T12:00",
            ["10-24 18:00 10-25 04:00", "10-25 19:00 10-26 05:00"],
            id="a night in which the clocks change lasts as long as any other",
        ),
        pytest.param(schedule("2030-01-01T00:00:00", "UTC"), "2026-01-01", ["01-01 00:00 01-01 01:00"], id="once"),
        pytest.param(schedule("2026-01-01T00:00:00", "UTC"), "2026-01-01T01:00", [], id="it is over at its end"),
        pytest.param(schedule("2020-01-01T00:00:00", "UTC", duration=""), "2026-01-01", ["01-01 00:00"], id="no end"),
        pytest.param(
            schedule("2026-10-23T02:30:00", rule="FREQ=DAILY;UNTIL=20261025T003000Z"),
            "2026-10-24T12:00",
            ["10-25 00:30 10-25 01:30"],
            id="UNTIL is an instant",
        ),
        pytest.param(
            schedule("2026-01-01T00:00:00", rule="FREQ=DAILY;COUNT=2"), "2026-06-01", [], id="COUNT is used up"
        ),
    ],
)
def test_spans(found: Schedule, after: str, expected: list[str]) -> None:
    assert spans_of(found, after, max(len(expected), 1)) == expected


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"dtstart": "2026-12-04T18:00:00Z"}, "spec.dtstart is '2026-12-04T18:00:00Z'; expected a local time"),
        ({"dtstart": "1999-12-31T18:00:00"}, "from 2000 to 2199"),
        ({"timeZone": "Mars/Olympus"}, "spec.timeZone is 'Mars/Olympus'; expected an IANA time zone"),
        ({"timeZone": "../../etc/passwd"}, "expected an IANA time zone"),
        ({"duration": "0h"}, "spec.duration is '0h'; expected days, hours and minutes"),
        ({"duration": "32d"}, "up to 31d"),
        ({"duration": ""}, "spec.rrule needs spec.duration"),
        ({"dtstart": ""}, "spec.timeZone needs spec.dtstart"),
        ({"rrule": "FREQ=HOURLY"}, "has FREQ=HOURLY; expected one of DAILY, WEEKLY, MONTHLY, YEARLY"),
        ({"rrule": "FREQ=DAILY;BYMINUTE=1,2"}, "has 'BYMINUTE'; expected each of"),
        ({"rrule": "FREQ=DAILY\nEXRULE:FREQ=DAILY"}, "expected parts such as"),
        ({"rrule": "FREQ=DAILY;FREQ=DAILY"}, "at most once"),
        ({"rrule": "FREQ=DAILY;COUNT=0"}, "expected a number from 1 to 9999"),
        ({"rrule": "FREQ=DAILY;COUNT=2;UNTIL=20300101T000000Z"}, "has UNTIL and COUNT"),
        ({"rrule": "FREQ=DAILY;UNTIL=20300101"}, "expected a rule of RFC 5545"),
        ({"rrule": "FREQ=WEEKLY;BYDAY=1MO"}, "numbered days need FREQ=MONTHLY or YEARLY"),
        ({"rrule": "FREQ=MONTHLY;BYDAY=99999999999999999999MO"}, "expected a rule of RFC 5545"),
        ({"rrule": "FREQ=MONTHLY;BYMONTHDAY=0"}, "expected no 0"),
        ({"rrule": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"}, "names no day in the next 28 years"),
        ({"rrule": f"FREQ=DAILY;BYMONTH={','.join(['1'] * 300)}"}, "a text of at most 500 characters"),
    ],
)
def test_what_is_no_recurrence_is_refused_soon_and_says_what_was_expected(fields: dict[str, str], words: str) -> None:
    spec = {"dtstart": "2026-12-04T18:00:00", "timeZone": "Europe/Berlin", "rrule": "FREQ=DAILY", "duration": "1h"}
    began = time.monotonic()
    with pytest.raises(UnreadableObject, match=".*") as refused:
        Schedule.read(SpecFields({**spec, **fields}))
    assert words in str(refused.value)
    assert time.monotonic() - began < 5


_DAYS = st.lists(st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"]), min_size=1, max_size=4, unique=True).map(
    ",".join
)
_RULES = st.one_of(
    st.just("FREQ=DAILY"),
    st.builds("FREQ=DAILY;BYMONTH={}".format, st.integers(1, 12)),
    st.builds("FREQ=WEEKLY;BYDAY={};WKST={}".format, _DAYS, st.sampled_from(["MO", "SU"])),
    st.builds("FREQ=MONTHLY;BYMONTHDAY={}".format, st.sampled_from([*range(1, 32), -1, -2])),
    st.builds("FREQ=MONTHLY;BYDAY={}{}".format, st.sampled_from([1, 2, 5, -1]), st.sampled_from(["MO", "SU"])),
    st.builds("FREQ=MONTHLY;BYDAY={};BYSETPOS={}".format, _DAYS, st.sampled_from([1, -1])),
    st.builds("FREQ=YEARLY;BYMONTH={};BYDAY={}SU".format, st.integers(1, 12), st.sampled_from([1, -1])),
    st.builds("FREQ=YEARLY;BYYEARDAY={}".format, st.sampled_from([1, 100, 366, -1])),
    st.builds("FREQ=YEARLY;BYWEEKNO={};BYDAY=TU".format, st.integers(1, 53)),
)
_ENDS = st.one_of(
    st.just(""),
    st.builds(";COUNT={}".format, st.integers(1, 500)),
    st.datetimes(day("2025-01-01"), day("2050-01-01")).map(";UNTIL={:%Y%m%dT%H%M%SZ}".format),
)
_SCHEDULES = st.builds(
    lambda start, zone, rule, interval, end: (start, zone, f"{rule};INTERVAL={interval}{end}"),
    st.datetimes(day("2024-01-01"), day("2030-01-01")).map(lambda at: at.replace(second=0, microsecond=0)),
    st.sampled_from(ZONES),
    _RULES,
    st.integers(1, 4),
    _ENDS,
)


def compare_with_another_library(drawn: tuple[datetime, str, str], years: int) -> None:
    start, zone, rule = drawn
    try:
        ours = schedule(start.isoformat(), zone, rule)
    except UnreadableObject:
        return  # it names no day
    first = next(iter(ours.spans(datetime(start.year, 1, 1, tzinfo=UTC))), None)
    if first is None:
        return
    # Whether `dtstart` itself counts where the rule does not name it, RFC 5545 leaves open: ask from a day that it names.
    start = first[0].astimezone(ZoneInfo(zone)).replace(tzinfo=None, hour=start.hour, minute=start.minute)
    ours = schedule(start.isoformat(), zone, rule)
    event = icalendar.Event()
    event.add("dtstart", start.replace(tzinfo=ZoneInfo(zone)))
    event.add("duration", timedelta(hours=1))
    event.add("rrule", icalendar.vRecur.from_ical(rule))
    calendar = icalendar.Calendar()
    calendar.add_component(event)
    for year in range(2024, 2024 + years):
        begin, end = datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC)
        theirs = recurring_ical_events.of(calendar).between(begin, end)
        expected = sorted({event.start.astimezone(UTC) for event in theirs})
        found = [at for at, _ in ours.spans(begin) if begin <= at < end]
        assert found == [at for at in expected if begin <= at < end], (start, zone, rule, year)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_SCHEDULES)
def test_windows_begin_when_another_library_says(drawn: tuple[datetime, str, str]) -> None:
    compare_with_another_library(drawn, 3)


@pytest.mark.thorough
@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_SCHEDULES)
def test_windows_begin_when_another_library_says_for_20_years(drawn: tuple[datetime, str, str]) -> None:
    compare_with_another_library(drawn, 20)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.datetimes(day("2000-01-01"), day("2020-01-01")).map(lambda at: at.replace(second=0, microsecond=0)),
    st.one_of(_RULES, st.builds("FREQ=WEEKLY;BYDAY={};BYSETPOS={}".format, _DAYS, st.sampled_from([1, -1, 2]))),
    st.integers(1, 13),
    st.datetimes(day("2020-06-01"), day("2031-01-01")),
)
def test_what_began_long_ago_goes_on_as_if_it_was_counted_from_its_start(
    start: datetime, rule: str, interval: int, after: datetime
) -> None:
    rule = f"{rule};INTERVAL={interval}"
    try:
        found = schedule(start.isoformat(), "UTC", rule)
    except UnreadableObject:
        return  # it names no day
    last = after + timedelta(days=366)
    spans = [at.replace(tzinfo=None) for at, _ in found.spans(after.replace(tzinfo=UTC))]
    assert [at for at in spans if after <= at <= last] == rrulestr(rule, dtstart=start).between(after, last, inc=True)
