"""`manage.py watch`: watch every registered cluster until told to stop."""

from __future__ import annotations

import logging
import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand
from django.db import OperationalError, close_old_connections

from approvals.ledger import claims
from approvals.watch.loop import Watches

logger = logging.getLogger(__name__)

# New clusters are found, and those that are ours held on to, this often.
LOOK_SECONDS = 5.0


class Command(BaseCommand):
    help = "Watch the BundleDeployments of every registered cluster. Run several: each cluster is watched by one."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        watches = Watches(claims.new_holder_name())
        try:
            while not stop.is_set():
                close_old_connections()
                try:
                    watches.look()
                except OperationalError as exc:
                    logger.warning("the database does not answer", extra={"error": str(exc)})
                stop.wait(LOOK_SECONDS)
        finally:
            watches.end()
