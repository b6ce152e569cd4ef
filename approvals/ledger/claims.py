"""Claims that lapse: one worker at a time on a request or a deployment, one watcher at a time on a cluster.

A claim that lapsed without being released means that its holder died: whoever takes it over counts that on the row, in
the same UPDATE. Progress, such as a move of the request, sets the count back to 0 (security-rules.md S26).

Whether a claim has lapsed the database's clock says, so that workers whose clocks differ agree. The name of a holder is
new for each claim, and is asked for in every transaction that records what the holder does: one that has lost its claim
records nothing more. What it sends to a cluster no database can hold back; for that there is `sure_sending`.
"""

from __future__ import annotations

import logging
import os
import socket
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import DatabaseError
from django.db.models import Case, DateTimeField, Expression, ExpressionWrapper, F, Model, Q, QuerySet, When
from django.db.models.functions import Now

from approvals.errors import Busy, GivesWay, LostClaim
from approvals.ledger.process_claims import HELD, claim_seconds, clock
from approvals.lifecycle import AT_WORK, WORKABLE, State
from approvals.locks import for_change
from approvals.models import BundleDeployment, Cluster, Request, TaskClaim

logger = logging.getLogger(__name__)

# Where no worker comes for a request that met Busy, drift is corrected all the same.
GIVE_WAY_SECONDS = 60

# The task of looking after a deployment; its other claim is that of drift correction.
LOOK_AFTER = "look_after"
# A watcher holds on to its clusters several times within this; a dead one's clusters are free afterwards.
WATCH_CLAIM_SECONDS = 20


def new_holder_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def claim(request_id: int, worker: str) -> bool:
    """Take the request if nobody holds it, as `take` does any claimed row."""
    return take(Request.objects.filter(pk=request_id), worker, state__in=WORKABLE)


def renew(request_id: int, worker: str) -> bool:
    """Hold on for another CLAIM_SECONDS; False where the claim has passed to somebody else: stop at once."""
    return _renew(Request.objects.filter(pk=request_id), worker)


def check_held(request_id: int, worker: str) -> None:
    """Raise LostClaim where the claim has passed to somebody else; in a transaction, and until its end nobody takes it.

    For what must not be written by a worker that stood still for too long: `renew` before it would say less.
    """
    _check_held(Request.objects.filter(pk=request_id, claimed_by=worker))


def check_same_holder(row: Request, request: Request) -> None:
    """Raise LostClaim where the locked `row` is not held by whom it was when `request` was read under its claim."""
    if row.claimed_by != request.claimed_by:
        raise LostClaim


def sure_sending(worker: str) -> Callable[[], None]:
    """What is asked right before each write is sent to a cluster: it raises LostClaim where it must not be."""
    return lambda: _check_sure(worker)


def release(request_id: int, worker: str) -> bool:
    """Give the request back; True where it was woken meanwhile, so that another look is due."""
    return give_back(Request.objects.filter(pk=request_id), worker)


def renew_deployment(deployment_id: int, worker: str) -> bool:
    return _renew(BundleDeployment.objects.filter(pk=deployment_id), worker)


def rows_of_task(task: str, key: int) -> QuerySet[TaskClaim]:
    """The claim of a task on a row without one; made where there is none yet."""
    TaskClaim.objects.get_or_create(task=task, key=key)
    return TaskClaim.objects.filter(task=task, key=key)


def forget_task(rows: QuerySet[TaskClaim]) -> None:
    """The task is done: nobody asks for its claim any more."""
    rows.filter(claimed_by="", worker_deaths=0).delete()


def forget_tasks(task: str, *, but: QuerySet[Any]) -> None:
    """The rows that this task was for are no more, but these keys: nobody asks for the claims of the others."""
    TaskClaim.objects.filter(~held() | Q(claimed_until__isnull=True), task=task).exclude(key__in=but).delete()


@contextmanager
def place(task: str, key: int, places: int) -> Iterator[bool]:
    """Whether there was one of so many places for this task on this row, over all workers; it is given back after.

    A dead worker's lapses as its claims do.
    """
    worker = new_holder_name()
    places_of_task = (rows_of_task(f"{task} {number}", key) for number in range(places))
    rows = next((rows for rows in places_of_task if take(rows, worker)), None)
    try:
        yield rows is not None
    finally:
        if rows is not None:
            give_back(rows, worker)


def take(rows: QuerySet[Any], worker: str, **only: object) -> bool:
    """Take the row if nobody holds it; the claim lapses after CLAIM_SECONDS unless renewed.

    Where somebody does, the row is marked as woken and they look once more before going (`give_back`): what changed
    while a step was at work is acted on at once, not at the next sweep. `only` is what else has to be so of the row to
    be taken, not to be held on to.
    """
    if HELD.is_stopping:
        return False
    rests = Q(rests_until__gte=Now())
    # Who releases a claim clears the name: one that still stands there is a dead worker's.
    deaths = Case(When(claimed_by="", then=F("worker_deaths")), default=F("worker_deaths") + 1)
    taken = {"claimed_by": worker, "claimed_until": _lapses_at(), "is_woken": False, "worker_deaths": deaths}
    may, asked_at = rows.filter(**only), clock()
    while not may.exclude(held() | rests).update(**taken):
        if may.filter(held()).update(is_woken=True) or not may.exclude(rests).exists():
            return False
        asked_at = clock()
    HELD.note(worker, rows.filter(claimed_by=worker), asked_at)
    return True


def adopt(rows: QuerySet[Any], worker: str) -> bool:
    """Go on under a claim that another process took in the name of `worker`; False where it has passed to others."""
    asked_at = clock()
    HELD.note(worker, rows.filter(claimed_by=worker), asked_at)
    return rows.filter(claimed_by=worker).update(claimed_until=_lapses_at()) == 1


def give_back(rows: QuerySet[Any], worker: str) -> bool:
    """Release the claimed row; True where it was woken meanwhile, so that another look is due."""
    own, free = rows.filter(claimed_by=worker), {"claimed_by": "", "claimed_until": None}
    try:
        is_woken = not own.filter(is_woken=False).update(**free) and own.update(**free) == 1
    except DatabaseError:
        HELD.owe(worker)
        raise
    HELD.drop(worker)
    return is_woken


def is_held(rows: QuerySet[Any], worker: str) -> bool:
    return bool(rows.filter(held(), claimed_by=worker).exists())


def check_still_held(rows: QuerySet[Any], worker: str) -> None:
    """As `check_held`, for the claim of a task."""
    _check_held(rows.filter(claimed_by=worker))


def held() -> Q:
    """Rows that somebody holds at this moment."""
    return Q(claimed_until__gte=Now())


def lapsed() -> Q:
    """Rows whose holder died, or stands still."""
    return Q(claimed_until__lt=Now())


def deaths_of(rows: QuerySet[Any]) -> int:
    """How many workers died in the present step of this row."""
    return int(rows.values_list("worker_deaths", flat=True).first() or 0)


def count_death(rows: QuerySet[Any], worker: str) -> int:
    """Count the death of a process that worked under this claim, which stays `worker`'s; how many there are now."""
    rows.filter(claimed_by=worker).update(worker_deaths=F("worker_deaths") + 1)
    return deaths_of(rows)


def note_progress(rows: QuerySet[Any], worker: str) -> None:
    """The step came through, or further than ever: what its workers died of is behind it."""
    rows.filter(claimed_by=worker, worker_deaths__gt=0).update(worker_deaths=0)


def rest(rows: QuerySet[Any], seconds: float) -> None:
    """Have nobody claim the row for a while; then it is tried again, alone."""
    rows.update(rests_until=_in(seconds), worker_deaths=1)


def pardon(deployment_id: int) -> None:
    """Another revision runs: what killed those who looked at the one before says nothing about it."""
    suspect = Q(worker_deaths__gt=0) | Q(rests_until__isnull=False)
    BundleDeployment.objects.filter(suspect, pk=deployment_id).update(worker_deaths=0, rests_until=None)
    TaskClaim.objects.filter(suspect, task=LOOK_AFTER, key=deployment_id).update(worker_deaths=0, rests_until=None)


def renew_held(model: type[Model], workers: Collection[str]) -> Collection[str]:
    """Hold on to what these holders of this process have, without a word from their steps; who still has its row."""
    own = model._default_manager.filter(claimed_by__in=workers)
    if own.update(claimed_until=_lapses_at()) == len(workers):
        return workers
    return set(own.values_list("claimed_by", flat=True))


def let_go(own: QuerySet[Any]) -> None:
    """Give back what is not done with: no death is counted, and the sweep wakes whoever goes on with it."""
    own.update(claimed_by="", claimed_until=None)


def hold_off_drift(deployment_id: int) -> None:
    """In the transaction that starts an apply or a restore: raise Busy while somebody holds the deployment for drift.

    Else nobody takes it before the commit, and then they see the apply; a holder whose claim lapsed has lost it. So an
    apply and a correction of one deployment exclude each other, and those of several go on side by side.
    """
    rows = BundleDeployment.objects.filter(pk=deployment_id)
    row = for_change(rows).get()
    if row.claimed_by and rows.filter(held()).exists():
        raise Busy(f"drift of {row.name} is being corrected: this continues afterwards")
    if row.claimed_by:
        rows.update(claimed_by="", claimed_until=None, worker_deaths=F("worker_deaths") + 1)


def held_up(deployment_id: int) -> QuerySet[Request]:
    """Requests of the deployment that met Busy: whoever holds it for drift gives way to them."""
    states = [State.APPROVED, *AT_WORK]
    return Request.objects.filter(
        deployment=deployment_id, state__in=states, problem_code=Busy.code, problem_since__gt=_in(-GIVE_WAY_SECONDS)
    )


def check_nobody_is_held_up(deployment_id: int) -> None:
    if held_up(deployment_id).exists():
        raise GivesWay("an approved request waits for this deployment")


def check_held_deployment(deployment_id: int, worker: str) -> None:
    _check_held(BundleDeployment.objects.filter(pk=deployment_id, claimed_by=worker))


def hold_watch(cluster_id: int, watcher: str) -> bool:
    """Take the cluster's watch, or hold on to it, for WATCH_CLAIM_SECONDS; False where another watcher has it.

    Taken over from one that died, the death is counted: from then on it is noted which object is looked at.
    """
    own_or_free = Q(watched_by=watcher) | Q(watched_until__isnull=True) | Q(watched_until__lt=Now())
    is_alive = Q(watched_by=watcher) | Q(watched_by="")
    deaths = Case(When(is_alive, then=F("watch_deaths")), default=F("watch_deaths") + 1)
    taken = {"watched_by": watcher, "watched_until": _in(WATCH_CLAIM_SECONDS), "watch_deaths": deaths}
    return Cluster.objects.filter(own_or_free, pk=cluster_id).update(**taken) == 1


def let_go_of_watches(watcher: str) -> None:
    Cluster.objects.filter(watched_by=watcher).update(watched_by="", watched_until=None)


def _renew(rows: QuerySet[Any], worker: str) -> bool:
    HELD.sign(worker)
    return rows.filter(claimed_by=worker).update(claimed_until=_lapses_at()) == 1


def _check_held(own: QuerySet[Any]) -> None:
    if not list(for_change(own).values_list("pk")):
        raise LostClaim


def _check_sure(worker: str) -> None:
    if not HELD.wait_until_sure(worker):
        raise LostClaim("the claim may have passed to another worker: nothing more is sent")


def _lapses_at() -> Expression:
    """By the database's clock, when it does it: never before CLAIM_SECONDS have passed since it was asked to."""
    return _in(claim_seconds())


def _in(seconds: float) -> Expression:
    return ExpressionWrapper(Now() + timedelta(seconds=seconds), output_field=DateTimeField())
