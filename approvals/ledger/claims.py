"""Claims that lapse: one worker at a time on a request, one watcher at a time on a cluster."""

from __future__ import annotations

import os
import socket
import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from approvals.lifecycle import WORKABLE
from approvals.models import Cluster, Request

# A watcher holds on to its clusters several times within this; a dead one's clusters are free afterwards.
WATCH_CLAIM_SECONDS = 20


def new_holder_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def claim(request_id: int, worker: str) -> bool:
    """Take the request if nobody holds it; the claim lapses after CLAIM_SECONDS unless renewed.

    Where somebody does, the row is marked as woken and they look once more before going (`release`): what changed
    while a step was at work is acted on at once, not at the next sweep.
    """
    workable = Request.objects.filter(pk=request_id, state__in=WORKABLE)
    now = timezone.now()
    held = Q(claimed_until__gte=now)
    while not workable.exclude(held).update(claimed_by=worker, claimed_until=_until(now), is_woken=False):
        if workable.filter(held).update(is_woken=True) or not workable.exists():
            return False
    return True


def renew(request_id: int, worker: str) -> bool:
    """Hold on for another CLAIM_SECONDS; False where the claim has passed to somebody else: stop at once."""
    kept = Request.objects.filter(pk=request_id, claimed_by=worker).update(claimed_until=_until(timezone.now()))
    return kept == 1


def release(request_id: int, worker: str) -> bool:
    """Give the request back; True where it was woken meanwhile, so that another look is due."""
    own = Request.objects.filter(pk=request_id, claimed_by=worker)
    free = {"claimed_by": "", "claimed_until": None}
    return not own.filter(is_woken=False).update(**free) and own.update(**free) == 1


def hold_watch(cluster_id: int, watcher: str) -> bool:
    """Take the cluster's watch, or hold on to it, for WATCH_CLAIM_SECONDS; False where another watcher has it."""
    now = timezone.now()
    own_or_free = Q(watched_by=watcher) | Q(watched_until__isnull=True) | Q(watched_until__lt=now)
    until = now + timedelta(seconds=WATCH_CLAIM_SECONDS)
    held = Cluster.objects.filter(own_or_free, pk=cluster_id).update(watched_by=watcher, watched_until=until)
    return held == 1


def let_go_of_watches(watcher: str) -> None:
    Cluster.objects.filter(watched_by=watcher).update(watched_by="", watched_until=None)


def _until(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.PRATIQUE["CLAIM_SECONDS"])
