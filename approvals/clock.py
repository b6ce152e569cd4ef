"""The database's clock, by which processes on several machines compare times: their own may be hours apart.

What is written for other processes to compare with the present, and what is compared so, goes by it: expiry, waits,
looks, proofs, retention. What is only shown, and what one process compares with its own times alone, need not.

How far it is ahead is learned with each connection, which lives for a minute at most (`CONN_MAX_AGE`): asking costs no
query of its own, and a clock that is set meanwhile is noticed within that minute. SQLite has the clock of its machine.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

# What differs by less is how long the answer took.
SAME = timedelta(seconds=1)
_ahead = timedelta()


def database_now() -> datetime:
    return timezone.now() + _ahead


def learn(now: datetime) -> None:
    """The database's clock says that it is `now`."""
    global _ahead  # noqa: PLW0603 - of the process, as its clock is
    found = now - timezone.now()
    _ahead = found if abs(found) > SAME else timedelta()
