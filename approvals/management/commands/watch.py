"""`pratique-manage watch`: watch every registered cluster until told to stop."""

from __future__ import annotations

import logging
import signal
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from django.core.management.base import BaseCommand
from django.db import OperationalError, close_old_connections

from approvals import health_endpoints, metrics
from approvals.ledger import claims
from approvals.rights.missing_rights import tell_what_is_missing
from approvals.rights.needs import Process
from approvals.watch.loop import Watches

logger = logging.getLogger(__name__)

# How often new clusters are looked for, and claims on clusters renewed.
LOOK_SECONDS = 5.0


class Command(BaseCommand):
    help = "Watch the BundleDeployments of every registered cluster. Run several: each cluster is watched by one."

    def handle(self, *args: Any, **options: Any) -> None:
        # Not an Event: a handler that sets it while this thread is about to wait for it waits for its lock, for ever.
        stopping: SimpleQueue[int] = SimpleQueue()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: stopping.put(number))
        metrics.serve("watch")
        tell_what_is_missing(Process.WATCH)
        watches = Watches(claims.new_holder_name())
        try:
            is_stopping = False
            while not is_stopping:
                close_old_connections()
                try:
                    watches.look()
                except OperationalError as exc:
                    logger.warning("the database is not responding", extra={"error": type(exc).__name__})
                health_endpoints.note_turn()
                with suppress(Empty):
                    is_stopping = bool(stopping.get(timeout=LOOK_SECONDS))
        finally:
            watches.end()
