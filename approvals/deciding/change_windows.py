"""ChangeWindow: when changes may be made. One that allows them opens, one that denies them closes. PURE."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from approvals.deciding.kinds import DecidingKind, FormField
from approvals.deciding.recurrence import AHEAD, Schedule
from approvals.deciding.selector import Selector
from approvals.deciding.spec_fields import SpecFields
from approvals.policy.expression import MAX_EXPRESSION

MAX_WINDOWS = 200


class WindowType(StrEnum):
    ALLOW = "Allow"
    DENY = "Deny"


class HeldChange(StrEnum):
    """What a window is about. To put back what failed is none of these: no window holds that."""

    APPLY = "Apply"
    DRIFT_CORRECTION = "DriftCorrection"
    RESTORE = "Restore"  # a rollback that somebody requests


class OnClose(StrEnum):
    FINISH = "Finish"
    STOP_BETWEEN_PHASES = "StopBetweenPhases"


@dataclass(frozen=True, slots=True)
class ChangeWindow(DecidingKind):
    """Without `schedule` it is always active."""

    kind: ClassVar[str] = "ChangeWindow"
    plural: ClassVar[str] = "changewindows"
    slug: ClassVar[str] = "change-windows"
    words: ClassVar[str] = "change window"
    about: ClassVar[str] = "A change window says when approved requests are applied, and when they wait."
    asks: ClassVar[str] = "Definition"
    after_deletion: ClassVar[str] = (
        "Approved requests that wait for it are applied as soon as no other change window holds them."
    )
    form: ClassVar[tuple[FormField, ...]] = (
        FormField(
            "type",
            "Type",
            "Deny holds changes while it is active. Where Allow windows select a deployment, one must be active.",
            choices=(("Deny", "Deny"), ("Allow", "Allow")),
            is_required=True,
        ),
        FormField("dtstart", "Begins", "In the time zone below, such as 2026-12-04T18:00:00. Empty: active always."),
        FormField("timeZone", "Time zone", "An IANA time zone, such as Europe/Berlin."),
        FormField("rrule", "Repeats", "A rule of RFC 5545, such as FREQ=WEEKLY;BYDAY=FR. Empty: once."),
        FormField("duration", "Duration", "Days, hours and minutes, such as 2d12h. Empty: no end."),
        FormField(
            "appliesTo",
            "Applies to",
            "Default: changes that are applied.",
            is_list=True,
            choices=(
                ("Apply", "Changes that are applied"),
                ("DriftCorrection", "Corrections of drift"),
                ("Restore", "Earlier revisions that someone restores"),
            ),
        ),
        FormField(
            "onClose",
            "When it closes",
            "By default, an apply that has started finishes.",
            choices=(("Finish", "Finish"), ("StopBetweenPhases", "Stop before the next phase")),
        ),
    )

    description: str
    selector: Selector
    when: str
    type: WindowType
    schedule: Schedule | None = None
    applies_to: frozenset[HeldChange] = frozenset({HeldChange.APPLY})
    on_close: OnClose = OnClose.FINISH

    @classmethod
    def parse(cls, spec: Mapping[str, Any]) -> ChangeWindow:
        fields = SpecFields(spec)
        kind = fields.choice("type", tuple(WindowType), default="")
        if not kind:
            raise fields.refuse("type", "is missing; expected Allow or Deny")
        applies_to = fields.texts("appliesTo", allowed=tuple(HeldChange))
        found = cls(
            description=fields.text("description", default="", longest=1000),
            selector=Selector.read(fields.inner("selector")),
            when=fields.text("when", default="", longest=MAX_EXPRESSION),
            type=WindowType(kind),
            schedule=Schedule.read(fields),
            applies_to=frozenset(map(HeldChange, applies_to or (HeldChange.APPLY,))),
            on_close=OnClose(fields.choice("onClose", tuple(OnClose), default=OnClose.FINISH)),
        )
        fields.end()
        if found.type is WindowType.ALLOW and (found.schedule is None or found.schedule.duration is None):
            raise fields.refuse("type", "is Allow, which needs spec.dtstart and spec.duration: when it is open")
        return found

    @property
    def is_stop(self) -> bool:
        """Whether it denies, always and without an end."""
        return self.type is WindowType.DENY and self.schedule is None

    @property
    def summary(self) -> str:
        if self.schedule is None:
            return f"{self.type}, always"
        rule = f", {self.schedule.rule}" if self.schedule.rule else ""
        lasts = f" for {self.schedule.lasts}" if self.schedule.lasts else ""
        return f"{self.type} from {self.schedule.start:%Y-%m-%d %H:%M} {self.schedule.zone}{lasts}{rule}"

    def state(self, now: datetime) -> str:
        """In the window's own zone, as its definition is."""
        zone = self.schedule.zone if self.schedule else "UTC"
        is_active, until = self.active_until(now)
        at = until if is_active else self.next_transition(now)
        if at is None:
            return "active, no end" if is_active else "no longer active"
        when = f"{at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} {zone}"
        return f"active until {when}" if is_active else f"not active, next at {when}"

    def status(self, now: datetime) -> Mapping[str, Any]:
        is_active, until = self.active_until(now)
        because = f"until {until:%Y-%m-%d %H:%M} UTC" if until else "it has no end"
        turn = self.next_transition(now)
        return {
            "active": is_active,
            "activeBecause": because if is_active else "",
            **({"nextTransition": f"{turn:%Y-%m-%dT%H:%M:%SZ}"} if turn else {}),
        }

    def next_change(self, now: datetime) -> datetime | None:
        """Also where the next transition is too far away to be known: it is looked for again before it comes."""
        return self.next_transition(now) or (now + AHEAD / 2 if self.schedule else None)

    def next_transition(self, now: datetime) -> datetime | None:
        """When it next becomes active or stops being so; None where that is not within AHEAD."""
        return next((at for at, _ in openings([SelectingWindow("", self)], now) if at > now), None)

    def active_until(self, at: datetime) -> tuple[bool, datetime | None]:
        """Whether it is active at this instant, and until when; None: it has no end."""
        if self.schedule is None:
            return True, None
        until = at
        for start, end in self.schedule.spans(at):
            if start > until:
                break
            if end is None:
                return True, None
            until = max(until, end)
        return until > at, until if until > at else None


@dataclass(frozen=True, slots=True)
class SelectingWindow:
    """A window that selects what is to be changed. Not `is_sure`: by some of the labels that the deployment had, or
    nobody could find out, so that it closes and does not open."""

    name: str
    window: ChangeWindow
    is_sure: bool = True


@dataclass(frozen=True, slots=True)
class WindowState:
    """Whether a change may begin. `why` says which windows are against it, `opens_at` when it may begin next: None
    where it may now, or not within AHEAD. Not `is_read`: somebody has to correct one of them."""

    is_open: bool
    why: str = ""
    opens_at: datetime | None = None
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class Windows:
    """Those of a cluster that select a request; `unread` says of each that nobody can parse what is wrong."""

    selecting: tuple[SelectingWindow, ...] = ()
    unread: tuple[str, ...] = field(default=())

    def judge(self, change: HeldChange, at: datetime) -> WindowState:
        """Open if no Deny is active and, where there are Allows, one is."""
        return self._judge([each for each in self.selecting if change in each.window.applies_to], at)

    def judge_between_phases(self, change: HeldChange, at: datetime) -> WindowState:
        """Whether what has begun may go on: only windows with `onClose: StopBetweenPhases` stop it.

        Under which of several Allows it began nobody knows: where one of them lets it finish, it may.
        """
        concerned = [each for each in self.selecting if change in each.window.applies_to]
        stops = {kind: [each for each in concerned if each.window.type is kind] for kind in WindowType}
        denies = [each for each in stops[WindowType.DENY] if each.window.on_close is OnClose.STOP_BETWEEN_PHASES]
        allows = stops[WindowType.ALLOW]
        if any(each.window.on_close is OnClose.FINISH for each in allows):
            allows = []
        return Windows((*denies, *allows))._judge([*denies, *allows], at)

    def _judge(self, concerned: Sequence[SelectingWindow], at: datetime) -> WindowState:
        if len(concerned) > MAX_WINDOWS:
            why = f"{len(concerned)} change windows select it, and at most {MAX_WINDOWS} are read"
            return WindowState(False, why, is_read=False)
        if self.unread:
            return WindowState(False, "; ".join(self.unread), is_read=False)
        why = _why_closed(concerned, at)
        opens_at = (moment for moment, is_open in openings(concerned, at) if is_open and moment > at)
        return WindowState(False, why, next(opens_at, None)) if why else WindowState(True)


def openings(windows: Iterable[SelectingWindow], after: datetime) -> Iterator[tuple[datetime, bool]]:
    """Whether it is open at `after`, and each instant within AHEAD of that at which it opens or closes, in order."""
    windows, last = list(windows), after + AHEAD
    has_allows = any(each.window.type is WindowType.ALLOW for each in windows)
    active = {WindowType.ALLOW: 0, WindowType.DENY: 0}
    edges = heapq.merge(*(_edges(each, after, last) for each in windows))
    told: bool | None = None
    # What ends and what begins at one instant is one change, or none.
    for at, together in groupby(chain([(after, WindowType.DENY, 0)], edges), key=itemgetter(0)):
        for _, kind, step in together:
            active[kind] += step
        is_open = not active[WindowType.DENY] and (active[WindowType.ALLOW] > 0 or not has_allows)
        if is_open is not told:
            yield at, is_open
            told = is_open


def _edges(each: SelectingWindow, after: datetime, last: datetime) -> list[tuple[datetime, WindowType, int]]:
    """Where a window begins (1) and ends (-1), in order; what has begun before begins at `after`."""
    window = each.window
    if window.schedule is None:
        return [(after, window.type, 1)]
    if window.type is WindowType.ALLOW and not each.is_sure:
        return []
    found = []
    for start, end in window.schedule.spans(after):
        found.append((max(start, after), window.type, 1))
        if end is not None:
            found.append((end, window.type, -1))
    return sorted(edge for edge in found if edge[0] <= last)


def _why_closed(windows: Sequence[SelectingWindow], at: datetime) -> str:
    """Which windows are against it, and until when each of them is; "" where none is."""
    words, allows, has_open = [], [], False
    for each in sorted(windows, key=lambda each: each.name):
        is_active, until = each.window.active_until(at)
        if each.window.type is WindowType.ALLOW:
            allows.append(each.name)
            has_open |= is_active and each.is_sure
        elif is_active:
            end = f"until {until:%Y-%m-%d %H:%M} UTC" if until else "without an end"
            reason = f" ({each.window.description})" if each.window.description else ""
            words.append(f"change window {each.name} holds it {end}{reason}")
    if allows and not has_open:
        words.append(f"none of these change windows is open: {', '.join(allows)}")
    return "; ".join(words)
