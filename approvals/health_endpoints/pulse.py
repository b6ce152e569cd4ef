"""Whether the main loop of a worker, beat or watch still turns: it says so each time, `/healthz` asks how long ago."""

from __future__ import annotations

import time

# A turn takes seconds at most, also where database or queue are away: a restart would not bring them back.
STILL_SECONDS = 60.0
_turned_at: list[float] = []


def note_turn() -> None:
    _turned_at[:] = [time.monotonic()]


def still_seconds() -> float:
    """For how long it has not turned, 0.0 for a process without such a loop or before its first turn."""
    return time.monotonic() - _turned_at[0] if _turned_at else 0.0
