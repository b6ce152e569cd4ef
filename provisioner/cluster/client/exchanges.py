"""What an observer is told of each call to an API server: enough to measure it, nothing of what was said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exchange:
    """`verb` is one of ours (get, list, watch, create, replace, apply, patch, delete, read, ask).

    `status` is the HTTP status, 0 where none came, or the answer broke off. `seconds` go to the end of the answer; of a
    watch to its beginning.
    """

    verb: str
    status: int
    seconds: float


# Called in the thread of the call, after it. It must be quick, and raise nothing.
Observer = Callable[[Exchange], None]


def unobserved(exchange: Exchange) -> None:
    """For who measures nothing."""
