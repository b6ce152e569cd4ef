"""Whose write it was: the watch waits for a door of ours that is about to say so.

A door can name the author only once the API server has answered, and the watch may see the object before that. It
would then truly say "by unknown" and take it back a moment later. So a door announces its write first. The
announcement never says who: what nobody records afterwards stays unknown (security-rules.md S05).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from approvals.clock import database_now
from approvals.models import Cluster, OwnWrite

# No longer than this is waited for a door that died between its write and its row.
PATIENCE = timedelta(seconds=20)
LOOK_EVERY_SECONDS = 0.05


@contextmanager
def writing(*, cluster: Cluster, name: str) -> Iterator[None]:
    """Announce a write of this BundleDeployment; inside, write it and record by whom. Outside any transaction."""
    OwnWrite.objects.filter(cluster=cluster, started_at__lte=database_now() - PATIENCE).delete()
    own = OwnWrite.objects.create(cluster=cluster, name=name, started_at=database_now())
    try:
        yield
    finally:
        own.delete()


def await_one(*, cluster: Cluster, name: str) -> None:
    """Return when no door is writing this BundleDeployment, and in any case after PATIENCE."""
    until = time.monotonic() + PATIENCE.total_seconds()
    while is_being_written(cluster=cluster, name=name, now=database_now()) and time.monotonic() < until:
        time.sleep(LOOK_EVERY_SECONDS)


def is_being_written(*, cluster: Cluster, name: str, now: datetime) -> bool:
    return OwnWrite.objects.filter(cluster=cluster, name=name, started_at__gt=now - PATIENCE).exists()
