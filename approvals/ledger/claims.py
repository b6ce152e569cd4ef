"""Claims that lapse: one worker at a time on a request or a deployment, one watcher at a time on a cluster.

A claim that lapsed without being released means that its holder died: whoever takes it over counts that on the row, in
the same UPDATE. Progress, such as a move of the request, sets the count back to 0 (security.md S26).
"""

from __future__ import annotations

import logging
import os
import socket
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import DatabaseError
from django.db.models import Case, F, Q, QuerySet, When
from django.utils import timezone

from approvals.ledger.held import HELD
from approvals.ledger.locks import for_change
from approvals.lifecycle import WORKABLE
from approvals.models import BundleDeployment, Cluster, Request, TaskClaim
from provisioner.errors import TryLater

logger = logging.getLogger(__name__)

# The task of looking after a deployment; its other claim is that of drift correction.
LOOK_AFTER = "look_after"
# A watcher holds on to its clusters several times within this; a dead one's clusters are free afterwards.
WATCH_CLAIM_SECONDS = 20


class LostClaim(TryLater):
    """Another worker has taken over what this one was working on: it stops at once, and writes nothing any more."""

    code = "lost-claim"


class Busy(TryLater):
    """Drift correction writes for the deployment; an apply or a restore starts when that is done."""

    code = "busy"


def new_holder_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def claim(request_id: int, worker: str) -> bool:
    """Take the request if nobody holds it; the claim lapses after CLAIM_SECONDS unless renewed.

    Where somebody does, the row is marked as woken and they look once more before going (`release`): what changed
    while a step was at work is acted on at once, not at the next sweep.
    """
    return _claim(Request.objects.filter(pk=request_id), worker, state__in=WORKABLE)


def renew(request_id: int, worker: str) -> bool:
    """Hold on for another CLAIM_SECONDS; False where the claim has passed to somebody else: stop at once."""
    return _renew(Request.objects.filter(pk=request_id), worker)


def check_held(request_id: int, worker: str) -> None:
    """Raise LostClaim where the claim has passed to somebody else; in a transaction, and until its end nobody takes it.

    For what must not be written by a worker that stood still for too long: `renew` before it would say less.
    """
    _check_held(Request.objects.filter(pk=request_id, claimed_by=worker))


def release(request_id: int, worker: str) -> bool:
    """Give the request back; True where it was woken meanwhile, so that another look is due."""
    return _release(Request.objects.filter(pk=request_id), worker)


def claim_deployment(deployment_id: int, worker: str) -> bool:
    """Take the deployment to look for drift, as `claim` takes a request."""
    return _claim(BundleDeployment.objects.filter(pk=deployment_id), worker)


def renew_deployment(deployment_id: int, worker: str) -> bool:
    return _renew(BundleDeployment.objects.filter(pk=deployment_id), worker)


def release_deployment(deployment_id: int, worker: str) -> bool:
    return _release(BundleDeployment.objects.filter(pk=deployment_id), worker)


def rows_of_task(task: str, key: int) -> QuerySet[TaskClaim]:
    """The claim of a task on a row without one; made where there is none yet."""
    TaskClaim.objects.get_or_create(task=task, key=key)
    return TaskClaim.objects.filter(task=task, key=key)


def forget_task(rows: QuerySet[TaskClaim]) -> None:
    """The task is done: nobody asks for its claim any more."""
    rows.filter(claimed_by="", worker_deaths=0).delete()


def take(rows: QuerySet[Any], worker: str) -> bool:
    """Take any claimed row, as `claim` takes a request."""
    return _claim(rows, worker)


def adopt(rows: QuerySet[Any], worker: str) -> bool:
    """Go on under a claim that another process took in the name of `worker`; False where it has passed to others."""
    HELD.note(worker, rows.filter(claimed_by=worker))
    return is_held(rows, worker)


def give_back(rows: QuerySet[Any], worker: str) -> bool:
    """Release any claimed row, as `release` does a request."""
    return _release(rows, worker)


def is_held(rows: QuerySet[Any], worker: str) -> bool:
    return bool(rows.filter(claimed_by=worker, claimed_until__gte=timezone.now()).exists())


def deaths_of(rows: QuerySet[Any]) -> int:
    """How many workers died in the present step of this row."""
    return int(rows.values_list("worker_deaths", flat=True).first() or 0)


def count_death(rows: QuerySet[Any], worker: str) -> int:
    """Count the death of a process that worked under this claim, which stays `worker`'s; how many there are by now."""
    rows.filter(claimed_by=worker).update(worker_deaths=F("worker_deaths") + 1)
    return deaths_of(rows)


def note_progress(rows: QuerySet[Any], worker: str) -> None:
    """The step came through, or further than ever: what its workers died of is behind it."""
    rows.filter(claimed_by=worker, worker_deaths__gt=0).update(worker_deaths=0)


def rest(rows: QuerySet[Any], seconds: float) -> None:
    """Have nobody claim the row for a while; then it is tried again, alone."""
    rows.update(rests_until=timezone.now() + timedelta(seconds=seconds), worker_deaths=1)


def pardon(deployment_id: int) -> None:
    """Another revision runs: what killed those who looked at the one before says nothing about it."""
    suspect = Q(worker_deaths__gt=0) | Q(rests_until__isnull=False)
    BundleDeployment.objects.filter(suspect, pk=deployment_id).update(worker_deaths=0, rests_until=None)
    TaskClaim.objects.filter(suspect, task=LOOK_AFTER, key=deployment_id).update(worker_deaths=0, rests_until=None)


def renew_held(own: QuerySet[Any]) -> bool:
    """Hold on to what this process has, without a word from the step; as `renew`."""
    return own.update(claimed_until=_until(timezone.now())) == 1


def let_go(own: QuerySet[Any]) -> None:
    """Give back what is not done with: no death is counted, and the sweep wakes whoever goes on with it."""
    own.update(claimed_by="", claimed_until=None)


def hold_off_drift(deployment_id: int) -> None:
    """In the transaction that starts an apply or a restore: raise Busy while somebody holds the deployment for drift.

    Else nobody takes it before the commit, and then they see the apply; a holder whose claim lapsed has lost it. So an
    apply and a correction of one deployment exclude each other, and those of several go on side by side.
    """
    row = for_change(BundleDeployment.objects.filter(pk=deployment_id)).get()
    if row.claimed_until and row.claimed_until >= timezone.now():
        raise Busy(f"what runs of {row.name} is being corrected at this moment: it goes on right after that")
    if row.claimed_by:
        lapsed = BundleDeployment.objects.filter(pk=deployment_id)
        lapsed.update(claimed_by="", claimed_until=None, worker_deaths=F("worker_deaths") + 1)


def check_held_deployment(deployment_id: int, worker: str) -> None:
    _check_held(BundleDeployment.objects.filter(pk=deployment_id, claimed_by=worker))


def hold_watch(cluster_id: int, watcher: str) -> bool:
    """Take the cluster's watch, or hold on to it, for WATCH_CLAIM_SECONDS; False where another watcher has it.

    Taken over from one that died, the death is counted: from then on it is noted which object is looked at.
    """
    now = timezone.now()
    own_or_free = Q(watched_by=watcher) | Q(watched_until__isnull=True) | Q(watched_until__lt=now)
    until = now + timedelta(seconds=WATCH_CLAIM_SECONDS)
    is_alive = Q(watched_by=watcher) | Q(watched_by="")
    deaths = Case(When(is_alive, then=F("watch_deaths")), default=F("watch_deaths") + 1)
    taken = {"watched_by": watcher, "watched_until": until, "watch_deaths": deaths}
    return Cluster.objects.filter(own_or_free, pk=cluster_id).update(**taken) == 1


def let_go_of_watches(watcher: str) -> None:
    Cluster.objects.filter(watched_by=watcher).update(watched_by="", watched_until=None)


def _claim(rows: QuerySet[Any], worker: str, **only: object) -> bool:
    """`only` is what else has to be so of these rows to be claimed, not to be held on to."""
    if HELD.is_stopping:
        return False
    now = timezone.now()
    held, rests = Q(claimed_until__gte=now), Q(rests_until__gte=now)
    # Who releases a claim clears the name: one that still stands there is a dead worker's.
    deaths = Case(When(claimed_by="", then=F("worker_deaths")), default=F("worker_deaths") + 1)
    taken = {"claimed_by": worker, "claimed_until": _until(now), "is_woken": False, "worker_deaths": deaths}
    may = rows.filter(**only)
    while not may.exclude(held | rests).update(**taken):
        if may.filter(held).update(is_woken=True) or not may.exclude(rests).exists():
            return False
    HELD.note(worker, rows.filter(claimed_by=worker))
    return True


def _renew(rows: QuerySet[Any], worker: str) -> bool:
    HELD.sign(worker)
    return renew_held(rows.filter(claimed_by=worker))


def _check_held(own: QuerySet[Any]) -> None:
    if not list(for_change(own).values_list("pk")):
        raise LostClaim("the claim has passed to another worker")


def _release(rows: QuerySet[Any], worker: str) -> bool:
    own, free = rows.filter(claimed_by=worker), {"claimed_by": "", "claimed_until": None}
    try:
        is_woken = not own.filter(is_woken=False).update(**free) and own.update(**free) == 1
    except DatabaseError:
        HELD.owe(worker)
        raise
    HELD.drop(worker)
    return is_woken


def _until(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.PRATIQUE["CLAIM_SECONDS"])
