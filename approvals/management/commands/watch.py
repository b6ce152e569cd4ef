"""`manage.py watch`: watch every registered cluster until told to stop."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from approvals.models import Cluster
from approvals.watch.loop import watch_cluster

# New clusters are found this often.
LOOK_SECONDS = 5.0


class Command(BaseCommand):
    help = "Watch the BundleDeployments of every registered cluster; run one of these per installation."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        threads: dict[int, threading.Thread] = {}
        while not stop.is_set():
            for cluster in Cluster.objects.all():
                if cluster.pk not in threads or not threads[cluster.pk].is_alive():
                    thread = threading.Thread(
                        target=watch_cluster, args=(cluster, stop), daemon=True, name=cluster.name
                    )
                    threads[cluster.pk] = thread
                    thread.start()
            stop.wait(LOOK_SECONDS)
