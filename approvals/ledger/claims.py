"""Claims that lapse: one worker at a time on a request or a deployment, one watcher at a time on a cluster."""

from __future__ import annotations

import os
import socket
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone

from approvals.ledger.locks import for_change
from approvals.lifecycle import WORKABLE
from approvals.models import BundleDeployment, Cluster, Request
from provisioner.errors import TryLater

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
    return _claim(Request.objects.filter(pk=request_id, state__in=WORKABLE), worker)


def renew(request_id: int, worker: str) -> bool:
    """Hold on for another CLAIM_SECONDS; False where the claim has passed to somebody else: stop at once."""
    return _renew(Request.objects.filter(pk=request_id, claimed_by=worker))


def check_held(request_id: int, worker: str) -> None:
    """Raise LostClaim where the claim has passed to somebody else; in a transaction, and until its end nobody takes it.

    For what must not be written by a worker that stood still for too long: `renew` before it would say less.
    """
    _check_held(Request.objects.filter(pk=request_id, claimed_by=worker))


def release(request_id: int, worker: str) -> bool:
    """Give the request back; True where it was woken meanwhile, so that another look is due."""
    return _release(Request.objects.filter(pk=request_id, claimed_by=worker))


def claim_deployment(deployment_id: int, worker: str) -> bool:
    """Take the deployment to look for drift, as `claim` takes a request."""
    return _claim(BundleDeployment.objects.filter(pk=deployment_id), worker)


def renew_deployment(deployment_id: int, worker: str) -> bool:
    return _renew(BundleDeployment.objects.filter(pk=deployment_id, claimed_by=worker))


def release_deployment(deployment_id: int, worker: str) -> bool:
    return _release(BundleDeployment.objects.filter(pk=deployment_id, claimed_by=worker))


def hold_off_drift(deployment_id: int) -> None:
    """In the transaction that starts an apply or a restore: raise Busy while somebody holds the deployment for drift.

    Else nobody takes it before the commit, and then they see the apply; a holder whose claim lapsed has lost it. So an
    apply and a correction of one deployment exclude each other, and those of several go on side by side.
    """
    row = for_change(BundleDeployment.objects.filter(pk=deployment_id)).get()
    if row.claimed_until and row.claimed_until >= timezone.now():
        raise Busy(f"what runs of {row.name} is being corrected at this moment: it goes on right after that")
    if row.claimed_by:
        BundleDeployment.objects.filter(pk=deployment_id).update(claimed_by="", claimed_until=None)


def check_held_deployment(deployment_id: int, worker: str) -> None:
    _check_held(BundleDeployment.objects.filter(pk=deployment_id, claimed_by=worker))


def hold_watch(cluster_id: int, watcher: str) -> bool:
    """Take the cluster's watch, or hold on to it, for WATCH_CLAIM_SECONDS; False where another watcher has it."""
    now = timezone.now()
    own_or_free = Q(watched_by=watcher) | Q(watched_until__isnull=True) | Q(watched_until__lt=now)
    until = now + timedelta(seconds=WATCH_CLAIM_SECONDS)
    held = Cluster.objects.filter(own_or_free, pk=cluster_id).update(watched_by=watcher, watched_until=until)
    return held == 1


def let_go_of_watches(watcher: str) -> None:
    Cluster.objects.filter(watched_by=watcher).update(watched_by="", watched_until=None)


def _claim(rows: QuerySet[Any], worker: str) -> bool:
    now = timezone.now()
    held = Q(claimed_until__gte=now)
    while not rows.exclude(held).update(claimed_by=worker, claimed_until=_until(now), is_woken=False):
        if rows.filter(held).update(is_woken=True) or not rows.exists():
            return False
    return True


def _renew(own: QuerySet[Any]) -> bool:
    return own.update(claimed_until=_until(timezone.now())) == 1


def _check_held(own: QuerySet[Any]) -> None:
    if not list(for_change(own).values_list("pk")):
        raise LostClaim("the claim has passed to another worker")


def _release(own: QuerySet[Any]) -> bool:
    free = {"claimed_by": "", "claimed_until": None}
    return not own.filter(is_woken=False).update(**free) and own.update(**free) == 1


def _until(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.PRATIQUE["CLAIM_SECONDS"])
