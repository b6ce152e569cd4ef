"""What is done for one row under its claim: what each kind of work says of itself. `claim_loop.do` works on it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import QuerySet

from approvals.ledger import claims
from provisioner.errors import TryLater, WorkerDied

logger = logging.getLogger(__name__)

REMEDY = (
    "It will not be retried. Make the bundle smaller or simpler, or ask the operator to raise "
    "PRATIQUE_ALONE_MEMORY_MIB; then request it again"
)
REST_SECONDS = 3600.0
REST_WORDS = (
    "It will be retried in an hour. Make the bundle smaller or simpler, or ask the operator to raise "
    "PRATIQUE_ALONE_MEMORY_MIB"
)


@dataclass(frozen=True, slots=True)
class WorkStep:
    """What a look at a row does, in words, after "while"; `is_long` where it may wait for minutes.

    `is_foreign` where it is the first to read what strangers wrote: workers do that in a process of its own.
    """

    words: str
    is_long: bool = False
    is_foreign: bool = False


class Work(ABC):
    """What is done for one row under its claim."""

    remedy = REMEDY

    def __init__(self, task: str, key: int, rows: QuerySet[Any]):
        self.task, self.key, self.rows = task, key, rows

    @property
    def remake(self) -> Callable[[], Work]:
        """What makes it anew in a subprocess; it is pickled."""
        kind: Callable[[int], Work] = type(self)
        return partial(kind, self.key)

    @abstractmethod
    def look(self, worker: str) -> bool:
        """Do what is due, in this process; True where more may be due."""

    @abstractmethod
    def step(self) -> WorkStep:
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

    def handover(self) -> object:
        """What this process knows and a process of its own would have to find out again; to be pickled, and small."""
        return None

    def take_over(self, known: object) -> None:  # noqa: B027 - most need nothing
        """In a process of its own: what its worker handed over."""

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
