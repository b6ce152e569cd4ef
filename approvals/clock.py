"""The database's clock, by which processes on several machines compare times: their own may be hours apart.

What is written for other processes to compare with the present, and what is compared so, goes by it: expiry, waits,
looks, retention. What is only shown, and what one process compares with its own times alone, need not.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection
from django.utils import timezone

_QUESTIONS = {"postgresql": "SELECT clock_timestamp()", "sqlite": "SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')"}


def database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute(_QUESTIONS[connection.vendor])
        (found,) = cursor.fetchone()
    return found if isinstance(found, datetime) else datetime.fromisoformat(found).replace(tzinfo=UTC)


def on_own_clock(at: datetime) -> datetime:
    """The moment `at` of the database's clock, as the clock of this process has it."""
    return at + (timezone.now() - database_now())
