"""How much work the proofs of one comparison may take in all: each is bounded, but a CRD has room for thousands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

MAX_WORK = 8_000_000  # steps of states, some six seconds; large CRDs that people wrote take a hundredth


class Exhausted(Exception):
    """Nothing is left; what is asked now stays undecided."""


_left: ContextVar[list[int] | None] = ContextVar("left", default=None)


@contextmanager
def limited(work: int = MAX_WORK) -> Iterator[None]:
    """Let all that is proved inside take so much work together."""
    token = _left.set([work])
    try:
        yield
    finally:
        _left.reset(token)


def spend(work: int) -> None:
    """Note work that was done; raises Exhausted once it is more than there was. Outside of `limited` nothing is."""
    left = _left.get()
    if left is None:
        return
    left[0] -= work
    if left[0] < 0:
        raise Exhausted
