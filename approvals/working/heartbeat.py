"""A thread that holds on to the claims of its process while that lives, and gives them back when it is told to stop."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from django.db import DatabaseError, close_old_connections

from approvals.ledger import claims
from approvals.ledger.process_claims import HELD, clock

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.5
# What ends within this after the word to stop ends as ever; Kubernetes kills after 30 s, Docker after 10 s.
STOP_SECONDS = 4.0


class Heartbeat:
    """`on_still` is called with the holders that made no progress, `on_stopped` once every claim is given back.

    `on_turn` is called at each beat, also where the database does not answer.
    """

    def __init__(
        self,
        on_still: Callable[[Sequence[str]], None],
        on_stopped: Callable[[], None] = lambda: None,
        on_turn: Callable[[], None] = lambda: None,
    ):
        self._on_still = on_still
        self._on_stopped = on_stopped
        self._on_turn = on_turn
        self._stop_at: float | None = None

    def start(self) -> None:
        HELD.is_kept = True
        threading.Thread(target=self._run, daemon=True, name="heartbeat").start()

    def _run(self) -> None:
        took = 0.0
        while True:
            time.sleep(self.pause(took))
            began = clock()
            try:
                close_old_connections()
                self.beat(clock())
            except DatabaseError as exc:
                logger.warning("the database does not answer", extra={"error": str(exc)})
            except Exception:  # a claim that nobody holds on to would count as a death of what is worked on
                logger.exception("the heartbeat missed a beat")
            self._on_turn()
            took = clock() - began

    def pause(self, took: float) -> float:
        """After a beat that took so long, s: where the database is slow there is no time to lose."""
        return max(TICK_SECONDS - took, 0.0)

    def beat(self, now: float) -> None:
        is_stopping = HELD.is_stopping
        if is_stopping and self._stop_at is None:
            self._stop_at = now + STOP_SECONDS
        if self._stop_at is not None and now >= self._stop_at:
            HELD.let_go(claims.let_go)
            self._on_stopped()
            return
        still = HELD.beat(now, claims.renew_held, claims.let_go)
        if still and not is_stopping:
            self._on_still(still)
