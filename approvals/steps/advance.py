"""One look at a request: do what its state calls for, until nothing more is due."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Lock

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from approvals.audit import MACHINE
from approvals.ledger import claims
from approvals.ledger.moves import locked, move
from approvals.lifecycle import AT_WORK, Event, State
from approvals.models import Request
from approvals.steps import deploy, evaluate, prepare, restore
from provisioner.errors import PratiqueError, TryLater

logger = logging.getLogger(__name__)


class Crashed(TryLater):
    """A bug of ours; the log has it in full, with the request's id."""

    code = "crashed"


class Full(TryLater):
    """As many are applied as one worker process may: some of its threads are kept for reports and the sweep."""

    code = "full"


STEPS: dict[str, Callable[[Request, str], None]] = {
    State.PREPARING: prepare.run,
    State.STALE: prepare.run,
    State.IN_REVIEW: evaluate.run,
    State.APPROVED: deploy.run,
    State.APPLYING: deploy.run,
    State.RESTORING: restore.run,
}
# How a step ends that cannot go on, where more has to be settled than the request itself.
GIVE_UP: dict[str, Callable[[Request, PratiqueError], None]] = {
    State.APPLYING: deploy.give_up,
    State.RESTORING: restore.give_up,
}
# What a step that keeps failing for a passing reason waits between tries: 2, 4, 8 … 300 seconds.
LONGEST_WAIT_SECONDS = 300
# What is approved goes on soon after what it waits for has come.
LONGEST_APPROVED_SECONDS = 30
_applying: set[int] = set()
_applying_lock = Lock()


def advance(request_id: int) -> None:
    """Claim the request and work on it; returns at once where another worker holds it or nothing is due."""
    worker = claims.new_holder_name()
    seen: set[tuple[str, int]] = set()
    is_due = True
    while is_due and claims.claim(request_id, worker):
        try:
            is_due = _look(request_id, worker, seen)
        finally:
            if claims.release(request_id, worker):
                seen.clear()
                is_due = True


def _look(request_id: int, worker: str, seen: set[tuple[str, int]]) -> bool:
    """Take the step that the row calls for; False where it was taken already and changed nothing."""
    request = Request.objects.select_related("deployment__cluster", "content", "from_revision").get(pk=request_id)
    if (request.state, request.round) in seen:
        return False
    seen.add((request.state, request.round))
    _take_step(request, worker)
    return True


def _take_step(request: Request, worker: str) -> None:
    if request.state not in AT_WORK and request.expires_at <= timezone.now():
        _expire(request.pk)
        return
    try:
        with _room_for(request):
            STEPS[request.state](request, worker)
    except claims.LostClaim:
        # The row is another worker's: nothing is written down about it here.
        logger.warning("another worker has taken over", extra={"request_id": request.pk, "worker": worker})
    except TryLater as exc:
        _try_later(request, exc)
    except PratiqueError as exc:
        give_up = GIVE_UP.get(request.state, _fail)
        give_up(request, exc)
    except Exception as exc:
        logger.exception("a step crashed", extra={"request_id": request.pk, "state": request.state})
        _try_later(request, Crashed(f"a step failed in a way that nobody foresaw ({type(exc).__name__})"))


@contextmanager
def _room_for(request: Request) -> Iterator[None]:
    """Raise Full where this process applies enough: an apply may wait for minutes, with a thread of its own."""
    if request.state != State.APPROVED and request.state not in AT_WORK:
        yield
        return
    most = settings.PRATIQUE["APPLIES_AT_ONCE"]
    with _applying_lock:
        if len(_applying) >= most:
            raise Full(f"{len(_applying)} of {most} are being applied: this one goes on when one of them is done")
        _applying.add(request.pk)
    try:
        yield
    finally:
        with _applying_lock:
            _applying.discard(request.pk)


@transaction.atomic(durable=True)
def _expire(request_id: int) -> None:
    request = locked(request_id)
    if request.expires_at <= timezone.now():
        move(request, Event.EXPIRE, actor=MACHINE)


@transaction.atomic(durable=True)
def _try_later(request: Request, error: TryLater) -> None:
    """Nothing is lost: the sweeper wakes the request again when its time has come."""
    row = locked(request.pk)
    row.attempts += 1
    is_soon = row.state == State.APPROVED or isinstance(error, Full)
    longest = LONGEST_APPROVED_SECONDS if is_soon else LONGEST_WAIT_SECONDS
    wait = min(2**row.attempts, longest)
    _wait(row, error, wait)
    logger.warning("will try later", extra={"request_id": row.pk, "code": error.code, "seconds": wait})


@transaction.atomic(durable=True)
def _fail(request: Request, error: PratiqueError) -> None:
    row = locked(request.pk)
    if row.state != request.state:
        return
    if row.state in (State.PREPARING, State.STALE):
        facts = {"code": error.code, "problem": str(error)}
        move(
            row,
            Event.COULD_NOT_PREPARE,
            actor=MACHINE,
            facts=facts,
            problem_code=error.code,
            problem=str(error),
        )
        return
    # In review or approved: "could not find out" is never a verdict; it waits, with its reason shown.
    _wait(row, error, LONGEST_WAIT_SECONDS)


def _wait(row: Request, error: PratiqueError, seconds: int) -> None:
    """Keep what is waited for, and have the cluster shown it where that is news."""
    row.look_again_at = timezone.now() + timedelta(seconds=seconds)
    if (row.problem_code, row.problem) != (error.code, str(error)):
        row.mirrored_at = None
    row.problem_code, row.problem = error.code, str(error)
    row.save(update_fields=["attempts", "look_again_at", "problem_code", "problem", "mirrored_at"])
