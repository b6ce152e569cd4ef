"""One loop for everything that is claimed: claim, look, release, until nothing more is due."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from approvals.errors import CouldNotStart
from approvals.ledger import claims
from approvals.working.apart import End, has_begun, run_apart
from provisioner.errors import TryLater, WorkerDied

logger = logging.getLogger(__name__)

# The second death is the row's own where it was seen to die alone. Where nobody saw it, as when a whole node went, it
# may have been another's; so it is tried once more.
MOST_SEEN, MOST_UNSEEN = 2, 3
REMEDY = (
    "It is not tried again by itself. Make the bundle smaller or simpler, or have the operator raise "
    "PRATIQUE_ALONE_MEMORY_MIB; then ask again"
)
REST_SECONDS = 3600.0
REST_WORDS = (
    "It is tried again in an hour. Make the bundle smaller or simpler, or have the operator raise "
    "PRATIQUE_ALONE_MEMORY_MIB"
)


@dataclass(frozen=True, slots=True)
class Step:
    """What a look at a row does, in words, after "while"; `is_long` where it may wait for minutes.

    `is_foreign` where it is the first to read what strangers wrote: workers do that in a process of its own.
    """

    words: str
    is_long: bool = False
    is_foreign: bool = False


class Work(ABC):
    """What is done for one row under its claim. `task` and `key` find it again in another process (approvals.jobs)."""

    remedy = REMEDY

    def __init__(self, task: str, key: int, rows: QuerySet[Any]):
        self.task, self.key, self.rows = task, key, rows

    @abstractmethod
    def look(self, worker: str) -> bool:
        """Do what is due, in this process; True where more may be due."""

    @abstractmethod
    def step(self) -> Step:
        """What a look at the row as it is now would do."""

    @abstractmethod
    def give_up(self, error: WorkerDied) -> None:
        """Stop working on the row, and say why where people look."""

    def claim(self, worker: str) -> bool:
        return claims.take(self.rows, worker)

    def come_through(self, worker: str) -> None:
        """A look that was done alone has ended as it should."""
        claims.note_progress(self.rows, worker)

    def is_new(self) -> bool:
        """False where the row is as it was at an earlier look, which changed nothing."""
        return True

    def wake(self) -> None:  # noqa: B027 - most keep nothing between two looks
        """Somebody changed something during the last look."""

    def group(self) -> str:
        """Whose work it is: where there are not enough places for all, groups take turns."""
        return ""

    def call(self) -> None:  # noqa: B027 - the sweep wakes the others
        """It has waited for a place, and one is free: have a worker come by."""

    def postpone(self, error: TryLater) -> None:
        """It could not be worked on alone just now: the sweep wakes it again."""
        logger.warning("will try later", extra={"task": self.task, "row": self.key, "error": str(error)})


class Recurring(Work):
    """What comes due again and again. Given up, it rests for a while; another revision ends that (claims.pardon)."""

    remedy = REST_WORDS

    @abstractmethod
    def say(self, error: WorkerDied) -> None:
        """Tell where people look that nobody works on the row for a while."""

    def give_up(self, error: WorkerDied) -> None:
        self.say(error)
        claims.rest(self.rows, REST_SECONDS)


def do(work: Work) -> None:
    """Work on the row until nothing more is due; returns at once where another worker holds it."""
    worker = claims.new_holder_name()
    is_due = True
    while is_due and work.claim(worker):
        try:
            is_due = _look(work, worker)
        finally:
            if claims.give_back(work.rows, worker):
                work.wake()
                is_due = True


def _look(work: Work, worker: str) -> bool:
    if not work.is_new():
        return False
    deaths, step = claims.deaths_of(work.rows), work.step()
    if deaths >= MOST_UNSEEN:
        _give_up(work, deaths, "")
        return False
    if deaths or (step.is_foreign and has_begun()):
        return _look_apart(work, worker, step, is_suspect=deaths > 0)
    return _look_here(work, worker)


def _look_here(work: Work, worker: str) -> bool:
    try:
        return work.look(worker)
    except MemoryError:
        # The process lives by luck; what it would die of is worked on alone.
        deaths = claims.count_death(work.rows, worker)
        logger.exception("out of memory", extra={"task": work.task, "row": work.key, "deaths": deaths})
        return False


def _look_apart(work: Work, worker: str, step: Step, *, is_suspect: bool) -> bool:
    """In a process of its own; False where it has to wait for a place."""
    try:
        end = run_apart(work, worker, step, is_suspect=is_suspect)
    except CouldNotStart as exc:
        work.postpone(exc)
        return False
    if end and end.death:
        return _count(work, worker, end)
    return end is not None and end.is_done


def _count(work: Work, worker: str, end: End) -> bool:
    """True where it is tried once more."""
    deaths = claims.count_death(work.rows, worker)
    logger.error("a process of its own died", extra={"task": work.task, "row": work.key, "how": end.death})
    if not work.rows.filter(claimed_by=worker).exists():
        return False
    if deaths >= MOST_SEEN:
        _give_up(work, deaths, end.death)
        return False
    work.wake()
    return True


def _give_up(work: Work, deaths: int, how: str) -> None:
    last = f"The last one was alone with it and {how}" if how else "Nobody saw what of"
    words = f"its worker died {deaths} times while {work.step().words}. {last}. {work.remedy}"
    logger.error("given up", extra={"task": work.task, "row": work.key, "deaths": deaths, "how": how})
    work.give_up(WorkerDied(words))
