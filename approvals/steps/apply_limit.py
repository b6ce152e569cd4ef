"""How many requests this process applies at a time: PRATIQUE_APPLIES_AT_ONCE.

An apply that waits for the cluster is not counted meanwhile, so that another one may begin (working.pledged).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Condition

from django.conf import settings

from approvals.errors import Full
from approvals.working import Pledge, pledged

applied_now: set[int] = set()
# Notified whenever an apply leaves its place, so that one that has waited for the cluster takes it.
_place_left = Condition()


@contextmanager
def apply_place(request_id: int) -> Iterator[None]:
    """Hold one of the places for applying; raises Full where none is free."""
    if not take_place(request_id):
        most = settings.PRATIQUE["APPLIES_AT_ONCE"]
        raise Full(f"{most} of {most} requests are being applied: this one continues when one of them is finished")
    try:
        with pledged(Pledge(partial(leave_place, request_id), partial(await_place, request_id))):
            yield
    finally:
        leave_place(request_id)


def take_place(request_id: int) -> bool:
    """Take a place if one is free."""
    with _place_left:
        if len(applied_now) >= settings.PRATIQUE["APPLIES_AT_ONCE"]:
            return False
        applied_now.add(request_id)
        return True


def leave_place(request_id: int) -> None:
    """Give the place back and wake those that wait for one."""
    with _place_left:
        applied_now.discard(request_id)
        _place_left.notify_all()


def await_place(request_id: int) -> None:
    """Wait for a place: what the apply waited for is ready, so it comes before all that has not begun."""
    with _place_left:
        _place_left.wait_for(partial(take_place, request_id))
