"""What windows say: Allow and Deny, what they apply to, what closes midway, and when it opens next."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.deciding.change_windows import ChangeWindow, HeldChange, SelectingWindow, Windows, openings
from approvals.deciding.spec_fields import UnreadableObject
from tests.support.approvals.windows import NIGHT, NOON, STOP, WEEKEND

day = datetime.fromisoformat


def named(name: str, spec: dict[str, Any], **more: Any) -> SelectingWindow:
    return SelectingWindow(name, ChangeWindow.parse({**spec, **more}))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


FRIDAY, SATURDAY = "2026-12-04T12:00", "2026-12-05T12:00"


@pytest.mark.parametrize(
    ("windows", "now", "why", "opens"),
    [
        pytest.param([], SATURDAY, "", None, id="none"),
        pytest.param([named("w", WEEKEND)], FRIDAY, "", None, id="before a Deny"),
        pytest.param(
            [named("w", WEEKEND)],
            SATURDAY,
            "change window w holds it until 2026-12-07 05:00 UTC",
            "2026-12-07T05:00",
            id="in a Deny",
        ),
        pytest.param([named("w", WEEKEND)], "2026-12-07T05:00", "", None, id="a Deny is over at its end"),
        pytest.param(
            [named("n", NIGHT)], FRIDAY, "none of these change windows is open: n", "2026-12-04T21:00", id="no Allow"
        ),
        pytest.param([named("n", NIGHT)], "2026-12-04T23:00", "", None, id="in an Allow"),
        pytest.param([named("n", NIGHT), named("o", NOON)], "2026-12-04T11:30", "", None, id="one Allow is enough"),
        pytest.param(
            [named("n", NIGHT), named("w", WEEKEND)],
            "2026-12-04T23:00",
            "change window w holds it until 2026-12-07 05:00 UTC",
            "2026-12-07T21:00",
            id="a Deny wins over an Allow, and it opens when both let it",
        ),
        pytest.param(
            [named("s", STOP)], FRIDAY, "change window s holds it without an end (incident 7)", None, id="a stop"
        ),
        pytest.param(
            [named("a", WEEKEND), named("b", WEEKEND, dtstart="2026-12-07T06:00:00", rrule="", duration="2h")],
            SATURDAY,
            "change window a holds it until 2026-12-07 05:00 UTC",
            "2026-12-07T07:00",
            id="what closes when another ends stays closed",
        ),
        pytest.param(
            [replace(named("n", NIGHT), is_sure=False)],
            "2026-12-04T23:00",
            "none of these change windows is open: n",
            None,
            id="an Allow that selects by an earlier label closes and does not open",
        ),
        pytest.param(
            [named("w", WEEKEND, appliesTo=["DriftCorrection"])], SATURDAY, "", None, id="about something else"
        ),
        pytest.param(
            [named("n", NIGHT, dtstart="2030-01-01T00:00:00")],
            FRIDAY,
            "none of these change windows is open: n",
            None,
            id="an Allow that opens after more than a year",
        ),
    ],
)
def test_whether_it_is_open(windows: list[SelectingWindow], now: str, why: str, opens: str | None) -> None:
    state = Windows(tuple(windows)).judge(HeldChange.APPLY, at(now))
    assert (state.is_open, state.why) == (not why, why)
    assert state.opens_at == (at(opens) if opens else None)


STOPS = {"onClose": "StopBetweenPhases"}


@pytest.mark.parametrize(
    ("windows", "goes_on"),
    [
        pytest.param([named("w", WEEKEND)], True, id="what has begun is finished"),
        pytest.param([named("w", WEEKEND, **STOPS)], False, id="unless the Deny stops between phases"),
        pytest.param([named("o", NOON, **STOPS)], False, id="or the only Allow"),
        pytest.param([named("o", NOON, **STOPS), named("n", NIGHT)], True, id="not where another Allow lets it finish"),
        pytest.param([named("n", NIGHT), named("w", WEEKEND, **STOPS)], False, id="a Deny stops it all the same"),
    ],
)
def test_a_window_that_closes_midway_lets_it_finish(windows: list[SelectingWindow], goes_on: bool) -> None:
    found = Windows(tuple(windows), unread=("change window x cannot be read",))
    assert found.judge_between_phases(HeldChange.APPLY, at(SATURDAY)).is_open is goes_on


def test_what_cannot_be_read_holds_and_so_do_too_many() -> None:
    unread = Windows((), ("change window x cannot be read: spec.type is missing",))
    assert unread.judge(HeldChange.APPLY, at(FRIDAY)).why == "change window x cannot be read: spec.type is missing"
    many = Windows(tuple(named(f"w{number}", NIGHT) for number in range(201)))
    assert (
        many.judge(HeldChange.APPLY, at("2026-12-04T23:00")).why
        == "201 change windows select it, and at most 200 are read"
    )


def test_its_status_says_how_it_stands_and_is_shown_again_before_it_changes() -> None:
    weekend, now = ChangeWindow.parse(WEEKEND), at(SATURDAY)
    assert weekend.status(now) == {
        "active": True,
        "activeBecause": "until 2026-12-07 05:00 UTC",
        "nextTransition": "2026-12-07T05:00:00Z",
    }
    assert weekend.next_change(now) == at("2026-12-07T05:00")
    assert weekend.state(now) == "active until 2026-12-07 06:00 Europe/Berlin"
    assert weekend.state(at(FRIDAY)) == "not active, next at 2026-12-04 18:00 Europe/Berlin"
    assert ChangeWindow.parse(STOP).state(now) == "active, no end"
    assert ChangeWindow.parse(STOP).status(now) == {"active": True, "activeBecause": "it has no end"}
    assert ChangeWindow.parse(STOP).next_change(now) is None
    later = ChangeWindow.parse({**NIGHT, "dtstart": "2030-01-01T00:00:00"})
    assert later.status(now) == {"active": False, "activeBecause": ""}
    assert now < (later.next_change(now) or now) < at("2027-12-01")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, "spec.type is missing; expected Allow or Deny"),
        ({"type": "Allow"}, "spec.type is Allow, which needs spec.dtstart and spec.duration"),
        ({**NIGHT, "duration": "", "rrule": ""}, "which needs spec.dtstart and spec.duration"),
        ({**STOP, "appliesTo": ["Everything"]}, "spec.appliesTo is 'Everything'; expected one of Apply"),
        ({**STOP, "onClose": "Abort"}, "spec.onClose is 'Abort'; expected one of Finish"),
        ({**STOP, "exdate": "2026"}, "spec has the field 'exdate', which this version of Pratique does not know"),
    ],
)
def test_what_is_no_window_is_refused(spec: dict[str, Any], words: str) -> None:
    with pytest.raises(UnreadableObject) as refused:
        ChangeWindow.parse(spec)
    assert words in str(refused.value)


@given(
    st.lists(
        st.tuples(st.sampled_from([WEEKEND, NIGHT, NOON, STOP]), st.integers(1, 28), st.integers(0, 23)), max_size=4
    ),
    st.datetimes(day("2026-12-01"), day("2026-12-20"), timezones=st.just(UTC)),
)
def test_it_is_open_where_the_next_openings_say_so(drawn: list[tuple[dict[str, Any], int, int]], now: datetime) -> None:
    """The two ways to the same answer: looking at one instant, and going through all that begins and ends."""
    windows = [
        named(f"w{number}", {**spec, **({"dtstart": f"2026-11-{day:02}T{hour:02}:00:00"} if "dtstart" in spec else {})})
        for number, (spec, day, hour) in enumerate(drawn)
    ]
    state, told = Windows(tuple(windows)).judge(HeldChange.APPLY, now), list(openings(windows, now))
    assert told[0] == (now, state.is_open)
    for (moment, is_open), (_, before) in zip(told[1:20], told[:20], strict=False):
        assert is_open is not before
        assert Windows(tuple(windows)).judge(HeldChange.APPLY, moment).is_open is is_open
