"""The claims that this process holds: renewed while it lives, and given back when it is told to stop.

Each is known to be ours until a moment by a clock of this machine that does not stop with the process: CLAIM_SECONDS
after the last renewal was sent. Past it somebody else may have the claim, so nothing is sent to a cluster before it is
known to be ours again (`wait_until_sure`). A process that stood still finds that out before its next write.

A claim that lapses means that its holder died, and that is counted (ledger.claims). So a step that merely takes long
has its claim renewed by a thread beside it (working.heartbeat), and a worker that is told to stop lets go of what it
has. A step without a sign of progress for STEP_MINUTES stands still: its claim lapses as if its worker had died.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db.models import Model, QuerySet

logger = logging.getLogger(__name__)

# How many times a claim is renewed before it would lapse.
BEATS = 4
LOOK_SECONDS = 0.02

# Who of these holders has its row still, of those that are renewed in one statement.
Renew = Callable[[type[Model], Collection[str]], Collection[str]]


def clock() -> float:
    """Seconds that pass while this process is stopped, and while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def claim_seconds() -> float:
    return float(settings.PRATIQUE["CLAIM_SECONDS"])


@dataclass
class HeldClaim:
    """`rows` is the claimed row while it is the holder's; `sign_at` is when the step itself last renewed its claim.

    Nobody else has it before `sure_until`, a time of `clock`. `is_lost` where it is another holder's now.
    """

    rows: QuerySet[Any]
    renewed_at: float
    sure_until: float
    sign_at: float = field(default_factory=clock)
    is_over: bool = False
    is_lost: bool = False

    def stands_still(self, now: float) -> bool:
        return bool(now - self.sign_at > settings.PRATIQUE["STEP_MINUTES"] * 60.0)

    def is_due(self, now: float) -> bool:
        return not self.is_lost and now - self.renewed_at >= claim_seconds() / BEATS


class HeldClaims:
    """By the name of the holder, which is another one for each claim."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holdings: dict[str, HeldClaim] = {}
        # Set by a signal handler: a plain value, because whoever is interrupted may hold any lock.
        self.is_stopping = False
        # Whether a heartbeat renews here. Elsewhere, as in a shell, nobody can say how long a claim is sure.
        self.is_kept = False

    def note(self, worker: str, own: QuerySet[Any], asked_at: float) -> None:
        """`asked_at` is when the claim was asked for, by `clock`: it lapses CLAIM_SECONDS later, or after that."""
        with self._lock:
            self._holdings[worker] = HeldClaim(own, asked_at, asked_at + claim_seconds())

    def sign(self, worker: str) -> None:
        """The step itself renewed its claim: it continues. Its transaction may fail, so that proves nothing more."""
        with self._lock:
            if holding := self._holdings.get(worker):
                holding.sign_at = clock()

    def wait_until_sure(self, worker: str) -> bool:
        """Whether the claim is known to be ours now; waits as long as nobody knows, a claim's time at most."""
        end = clock() + claim_seconds()
        while self.is_kept:
            with self._lock:
                holding = self._holdings.get(worker)
            if holding is None or holding.is_lost:
                return False
            if (now := clock()) < holding.sure_until:
                return True
            if now > end:
                return False
            time.sleep(LOOK_SECONDS)
        return True

    def drop(self, worker: str) -> None:
        with self._lock:
            self._holdings.pop(worker, None)

    def owe(self, worker: str) -> None:
        """The claim is done with, but the database did not take it back: a beat does when it answers again."""
        with self._lock:
            if holding := self._holdings.get(worker):
                holding.is_over = True

    def beat(self, now: float, renew: Renew, free: Callable[[QuerySet[Any]], object]) -> list[str]:
        """Renew and release claims; return the holders that made no progress."""
        still: list[str] = []
        due: dict[type[Model], dict[str, HeldClaim]] = defaultdict(dict)
        for worker, holding in self._all():
            if holding.is_over:
                free(holding.rows)
                self.drop(worker)
            elif holding.stands_still(now):
                still.append(worker)
            elif holding.is_due(now):
                due[holding.rows.model][worker] = holding
        for model, holdings in due.items():
            _renew(model, holdings, renew)
        return still

    def let_go(self, free: Callable[[QuerySet[Any]], object], but: frozenset[str] = frozenset()) -> None:
        """Give back every claim but those of the holders `but`; who works under one finds it lost at its next look."""
        for worker, holding in self._all():
            if worker not in but:
                free(holding.rows)
                self.drop(worker)
                logger.info("let go of a claim to stop", extra={"worker": worker})

    def _all(self) -> list[tuple[str, HeldClaim]]:
        with self._lock:
            return list(self._holdings.items())


def _renew(model: type[Model], holdings: dict[str, HeldClaim], renew: Renew) -> None:
    """All of one table at once: where the database is slow, one after the other would come too late."""
    asked_at = clock()
    ours = renew(model, list(holdings))
    for worker, holding in holdings.items():
        holding.is_lost = worker not in ours
        if not holding.is_lost:
            holding.renewed_at, holding.sure_until = asked_at, asked_at + claim_seconds()


HELD = HeldClaims()
