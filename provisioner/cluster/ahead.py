"""What is asked before each phase (S25), asked while the last writes of the phase before it are under way."""

from __future__ import annotations

import time
from collections.abc import Callable

from provisioner.errors import PratiqueError

FRESH_SECONDS = 1.0


class Permits:
    """Whether phases may begin. `ask` raises where one may not.

    Only a yes is kept, and for the phase that begins next, at once: not for longer than FRESH_SECONDS, and not where
    something was waited for meanwhile. Else it is asked again.
    """

    def __init__(self, ask: Callable[[str], None]):
        self._ask = ask
        self._granted, self._at = "", 0.0

    def ask_ahead(self, phase: str) -> None:
        """Ask for `phase`, which is to begin soon; a no is heard when it begins."""
        at = time.monotonic()
        try:
            self._ask(phase)
        except PratiqueError:
            return
        self._granted, self._at = phase, at

    def forget(self) -> None:
        """What was granted counts no more: it is not at once that a phase begins."""
        self._granted = ""

    def begin(self, phase: str) -> None:
        """Raise what `ask` says against `phase`."""
        is_granted = self._granted == phase and time.monotonic() - self._at < FRESH_SECONDS
        self.forget()
        if not is_granted:
            self._ask(phase)
