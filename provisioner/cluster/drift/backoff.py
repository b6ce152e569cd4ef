"""How soon an object may be restored again: at once, then more and more rarely where somebody changes it back. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

# So many corrections of one object follow each other at once; from there on the object is contested.
PATIENCE = 3
FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(hours=1)
# An object that stays as it is for this long after its pause is contested no longer.
PEACE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Strikes:
    """How often in a row an object was restored, and when last."""

    count: int = 0
    last: datetime | None = None

    def after_correction(self, now: datetime) -> Strikes:
        return Strikes(1 if self.is_peace(now) else self.count + 1, now)

    def is_peace(self, now: datetime) -> bool:
        return self.last is None or now - self.last > self.pause + PEACE

    @property
    def is_contested(self) -> bool:
        return self.count >= PATIENCE

    @property
    def pause(self) -> timedelta:
        """How long to wait after the last correction before the next one."""
        if not self.is_contested:
            return timedelta(0)
        doublings: int = 2 ** min(self.count - PATIENCE, 20)
        return min(FIRST_PAUSE * doublings, LONGEST_PAUSE)

    def may_correct_at(self, now: datetime) -> datetime:
        """`now`, or the later moment at which the object may be restored again."""
        if self.last is None or self.is_peace(now):
            return now
        return max(now, self.last + self.pause)
