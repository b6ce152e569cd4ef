"""When a deployment may be applied next, by the change windows of its cluster as the watch saw them last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db.models import F

from approvals.clock import database_now
from approvals.deciding.change_windows import HeldChange, Windows, openings
from approvals.errors import NotFound, TooManyRules
from approvals.gate.deciding_objects import seen_windows
from approvals.lifecycle import OPEN
from approvals.models import BundleDeployment, Request

MOST_OPENINGS = 5


@dataclass(frozen=True, slots=True)
class Opening:
    """`ends_at` is None where that is not within a year."""

    begins_at: datetime
    ends_at: datetime | None


@dataclass(frozen=True, slots=True)
class NextOpenings:
    """`why` says what is against it now; the first of `openings` has begun where it `is_open`. `request` is the number
    of the request that the windows were asked about."""

    request: int
    is_open: bool
    why: str
    openings: tuple[Opening, ...]


def next_openings(deployment: BundleDeployment) -> NextOpenings:
    """By the latest request that has a report, for windows select by what is in it. Raises NotFound where none has."""
    known = deployment.requests.filter(reports__round=F("round"), cleared_at=None)
    request = known.select_related("deployment__cluster").order_by("-number").first()
    if request is None:
        raise NotFound(f"no request of {deployment.name} has a report yet, so nobody knows which windows select it")
    is_waiting, now = request.state in OPEN, database_now()
    is_restore = is_waiting and request.purpose == Request.Purpose.ROLLBACK
    change = HeldChange.RESTORE if is_restore else HeldChange.APPLY
    try:
        windows = seen_windows(request)
    except TooManyRules as exc:
        return NextOpenings(request.number, False, str(exc), ())
    is_later = is_waiting and request.apply_at is not None and request.apply_at > now
    begin = request.apply_at if is_later and request.apply_at else now
    state = windows.judge(change, begin)
    later = f"it is to be applied at {begin:%Y-%m-%d %H:%M} UTC" if is_later else ""
    why = "; ".join(filter(None, (later, state.why)))
    found = tuple(islice(_openings(windows, change, begin), MOST_OPENINGS)) if state.is_read else ()
    return NextOpenings(request.number, state.is_open and not is_later, why, found)


def _openings(windows: Windows, change: HeldChange, now: datetime) -> Iterator[Opening]:
    begun: datetime | None = None
    for at, is_open in openings([each for each in windows.selecting if change in each.window.applies_to], now):
        if is_open:
            begun = at
        elif begun is not None:
            yield Opening(begun, at)
            begun = None
    if begun is not None:
        yield Opening(begun, None)
