"""The phases of an apply, or of what undoes one: how many objects, and how long it took."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from approvals.lifecycle import AT_WORK
from approvals.models import Outcome, Request

WORDS_OF_STEP = {
    Outcome.Step.APPLY: "Applied",
    Outcome.Step.RESTORE: "Restored",
    Outcome.Step.OPTIONAL: "Created later",
}
DONE = frozenset({"done", "unchanged"})


@dataclass(frozen=True, slots=True)
class ActivityPhase:
    """One phase of an apply: how many of its objects are done, failed or were not tried, and how long it took."""

    words: str
    done: int
    failed: int
    skipped: int
    began: datetime
    took: str


def rows_of(request: Request) -> Iterable[Outcome]:
    return request.outcomes.only("step", "phase", "action", "state", "at", "request").order_by("position")


def has_lost_its_worker(request: Request, now: datetime) -> bool:
    """Whether the worker that wrote for it has died, and no other one has taken it up yet."""
    if request.state not in AT_WORK or not request.claimed_by or request.claimed_until is None:
        return False
    return request.claimed_until < now


def phases(outcomes: Iterable[Outcome]) -> list[ActivityPhase]:
    """The phases of all steps, in the order in which they began. PURE

    A phase lasts until its last object, and begins where the one before it in its step ended: what it waited for is
    part of it. What was deleted is a phase of its own, and so is what was written before phases were kept.
    """
    found: dict[tuple[str, str, bool], list[Outcome]] = {}
    for one in outcomes:
        found.setdefault((one.step, one.phase, one.action == "delete"), []).append(one)
    ended: dict[str, datetime] = {}
    made = []
    for (step, name, is_deleted), rows in sorted(found.items(), key=lambda one: min(row.at for row in one[1])):
        first, last = min(one.at for one in rows), max(one.at for one in rows)
        began = min(ended.get(step, first), first)
        ended[step] = max(ended.get(step, last), last)
        made.append(_phase(_words(step, name, is_deleted=is_deleted), rows, began, last))
    return made


def _words(step: str, name: str, *, is_deleted: bool) -> str:
    if is_deleted and not name:
        return "Deleted"
    return f"{WORDS_OF_STEP[Outcome.Step(step)]}{f' phase {name}' if name else ''}"


def _phase(words: str, rows: list[Outcome], began: datetime, ended: datetime) -> ActivityPhase:
    done, failed = (sum(one.state in states for one in rows) for states in (DONE, {"failed"}))
    return ActivityPhase(words, done, failed, len(rows) - done - failed, began, words_of_span(ended - began))


def words_of_span(span: timedelta) -> str:
    """`3 s`, `4 min 5 s`, `2 h 10 min`: two units, whole, rounded down."""
    seconds = max(int(span.total_seconds()), 0)
    if seconds < 60:
        return f"{seconds} s" if seconds else "under 1 s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
