"""What happened to a request, in sentences, and the phases of its apply: how many objects, and how long they took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from approvals.events.occasions import words_of
from approvals.lifecycle import AT_WORK
from approvals.models import AuditEntry, Outcome, Request

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
    for outcome in outcomes:
        found.setdefault((outcome.step, outcome.phase, outcome.action == "delete"), []).append(outcome)
    ended: dict[str, datetime] = {}
    made = []
    for (step, name, is_deleted), rows in sorted(found.items(), key=lambda one: min(row.at for row in one[1])):
        first, last = min(row.at for row in rows), max(row.at for row in rows)
        began = min(ended.get(step, first), first)
        ended[step] = max(ended.get(step, last), last)
        done, failed = (sum(row.state in states for row in rows) for states in (DONE, {"failed"}))
        made.append(
            ActivityPhase(
                _phase_words(step, name, is_deleted=is_deleted),
                done,
                failed,
                len(rows) - done - failed,
                began,
                words_of_span(last - began),
            )
        )
    return made


def _phase_words(step: str, name: str, *, is_deleted: bool) -> str:
    if is_deleted and not name:
        return "Deleted"
    return f"{WORDS_OF_STEP[Outcome.Step(step)]}{f' phase {name}' if name else ''}"


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


@dataclass(frozen=True, slots=True)
class ActivityEntry:
    """One entry of the audit as a sentence; `took` is how long the state before it lasted, "" where it has none."""

    entry: AuditEntry
    words: str
    took: str

    @property
    def reason(self) -> str:
        return str(self.entry.facts.get("reason") or "")


def events(entries: Iterable[AuditEntry]) -> list[ActivityEntry]:
    """The entries in their order, each as a sentence."""
    made: list[ActivityEntry] = []
    moved_at: datetime | None = None
    for entry in entries:
        is_move = "from" in entry.facts
        took = words_of_span(entry.at - moved_at) if is_move and moved_at else ""
        made.append(ActivityEntry(entry, _sentence(entry.verb, entry.facts), took))
        moved_at = entry.at if is_move or moved_at is None else moved_at
    return made


def _sentence(verb: str, facts: Mapping[str, object]) -> str:
    number = facts.get("round")
    in_round = f" in round {number}" if isinstance(number, int) and number > 1 else ""
    return words_of(verb, facts) + in_round
