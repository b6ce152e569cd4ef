"""Claims with leases: one worker at a time works on a request; a dead worker's claim lapses."""

from __future__ import annotations

import os
import socket
import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from approvals.lifecycle import WORKABLE
from approvals.models import Request


def new_worker_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def claim(request_id: int, worker: str) -> bool:
    """Take the request if nobody holds it; the claim lapses after CLAIM_SECONDS unless renewed."""
    now = timezone.now()
    taken = (
        Request.objects.filter(pk=request_id, state__in=WORKABLE)
        .filter(Q(claimed_until__isnull=True) | Q(claimed_until__lt=now))
        .update(claimed_by=worker, claimed_until=_until(now))
    )
    return taken == 1


def renew(request_id: int, worker: str) -> bool:
    """Hold on for another CLAIM_SECONDS; False where the claim has passed to somebody else: stop at once."""
    kept = Request.objects.filter(pk=request_id, claimed_by=worker).update(claimed_until=_until(timezone.now()))
    return kept == 1


def release(request_id: int, worker: str) -> None:
    Request.objects.filter(pk=request_id, claimed_by=worker).update(claimed_by="", claimed_until=None)


def _until(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.PRATIQUE["CLAIM_SECONDS"])
