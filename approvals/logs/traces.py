"""An exception as text: where it happened and what it is, without what others wrote into it.

The API server's words quote objects (S27), and the database's quote whole rows, kubeconfigs included. Of both only the
kind of error stays. Local variables are never shown (promise 8).
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from types import TracebackType

from django.db import DatabaseError, InterfaceError, OperationalError

from provisioner.errors import ClusterError, PratiqueError

ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]
MAX_CHAIN = 20
_OURS = "psycopg"


def text_of(failure: ExcInfo) -> str:
    """The traceback, with all that led to it."""
    found = traceback.TracebackException(*failure, capture_locals=False)
    for shown, error in _chain(found, failure[1]):
        words = words_of(error)
        if words is not None:
            # There is no public way to give an exception other words in its own traceback.
            shown._str = words  # type: ignore[attr-defined]  # private to the library
    return "".join(found.format()).rstrip("\n")


def words_of(error: BaseException) -> str | None:
    """What may be said of an error in place of its own words; None where these may stand."""
    if isinstance(error, ClusterError):
        return f"(code {error.code}, status {error.status})"
    if isinstance(error, PratiqueError):
        return f"(code {error.code})"
    is_of_database = isinstance(error, DatabaseError | InterfaceError) or type(error).__module__.startswith(_OURS)
    if not is_of_database:
        return None
    # Whether the database is there, and why not, is told in its first line and quotes no row.
    return str(error).partition("\n")[0] if isinstance(error, OperationalError) else "(the database's words quote rows)"


def _chain(
    shown: traceback.TracebackException, error: BaseException
) -> Iterator[tuple[traceback.TracebackException, BaseException]]:
    """Each exception of the chain beside what is shown of it; at most MAX_CHAIN."""
    waiting: list[tuple[traceback.TracebackException | None, BaseException | None]] = [(shown, error)]
    for _ in range(MAX_CHAIN):
        if not waiting:
            return
        one, real = waiting.pop()
        if one is None or real is None:
            continue
        yield one, real
        waiting += [(one.__cause__, real.__cause__), (one.__context__, real.__context__)]
        if isinstance(real, BaseExceptionGroup) and one.exceptions:
            waiting += zip(one.exceptions, real.exceptions, strict=False)
