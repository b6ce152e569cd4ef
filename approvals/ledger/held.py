"""The claims that this process holds: renewed while it lives, and given back when it is told to stop.

A claim that lapses means that its holder died, and that is counted (ledger.claims). So a step that merely takes long
has its claim renewed by a thread beside it (working.heartbeat), and a worker that is told to stop lets go of what it
has. A step without a sign of progress for STEP_MINUTES stands still: its claim lapses as if its worker had died.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

logger = logging.getLogger(__name__)

# How many times a claim is renewed before it would lapse.
BEATS = 4


@dataclass
class Holding:
    """`rows` is the claimed row while it is the holder's; `sign_at` is when the step itself last renewed its claim."""

    rows: QuerySet[Any]
    renewed_at: float = field(default_factory=time.monotonic)
    sign_at: float = field(default_factory=time.monotonic)
    is_over: bool = False

    def stands_still(self, now: float) -> bool:
        return bool(now - self.sign_at > settings.PRATIQUE["STEP_MINUTES"] * 60.0)


class Held:
    """By the name of the holder, which is another one for each claim."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holdings: dict[str, Holding] = {}
        # Set by a signal handler: a plain value, because whoever is interrupted may hold any lock.
        self.is_stopping = False

    def note(self, worker: str, own: QuerySet[Any]) -> None:
        with self._lock:
            self._holdings[worker] = Holding(own)

    def sign(self, worker: str) -> None:
        """The step itself renewed its claim: it goes on."""
        with self._lock:
            if holding := self._holdings.get(worker):
                holding.renewed_at = holding.sign_at = time.monotonic()

    def drop(self, worker: str) -> None:
        with self._lock:
            self._holdings.pop(worker, None)

    def owe(self, worker: str) -> None:
        """The claim is done with, but the database did not take it back: a beat does when it answers again."""
        with self._lock:
            if holding := self._holdings.get(worker):
                holding.is_over = True

    def beat(
        self, now: float, renew: Callable[[QuerySet[Any]], bool], free: Callable[[QuerySet[Any]], object]
    ) -> list[str]:
        """Renew what is due, free what is owed; the holders that stand still."""
        still = []
        for worker, holding in self._all():
            if holding.is_over:
                free(holding.rows)
                self.drop(worker)
            elif holding.stands_still(now):
                still.append(worker)
            elif now - holding.renewed_at >= settings.PRATIQUE["CLAIM_SECONDS"] / BEATS:
                renew(holding.rows)
                holding.renewed_at = now
        return still

    def let_go(self, free: Callable[[QuerySet[Any]], object], but: frozenset[str] = frozenset()) -> None:
        """Give back every claim but those of the holders `but`; who works under one finds it lost at its next look."""
        for worker, holding in self._all():
            if worker not in but:
                free(holding.rows)
                self.drop(worker)
                logger.info("let go of a claim to stop", extra={"worker": worker})

    def _all(self) -> list[tuple[str, Holding]]:
        with self._lock:
            return list(self._holdings.items())


HELD = Held()
