"""What is asked before each phase (S25), asked while the last writes of the phase before it are under way."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

FRESH_SECONDS = 1.0


class Permits:
    """Whether phases may begin. `ask` raises where one may not.

    Only a yes is kept, and for FRESH_SECONDS at most, counted from before it was asked for; else it is asked again.
    """

    def __init__(self, ask: Callable[[str], None]):
        self._ask = ask
        self._granted, self._at = "", 0.0

    def ask_ahead(self, phase: str) -> None:
        """Ask for `phase`, which begins next; whatever is raised is heard when it does, if it still is raised then."""
        at = time.monotonic()
        with contextlib.suppress(Exception):
            self._ask(phase)
            self._granted, self._at = phase, at

    def begin(self, phase: str) -> None:
        """Raise what `ask` says against `phase`."""
        is_granted = self._granted == phase and time.monotonic() - self._at < FRESH_SECONDS
        self._granted = ""
        if not is_granted:
            self._ask(phase)
