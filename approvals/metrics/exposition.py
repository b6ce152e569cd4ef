"""The text of one scrape."""

from __future__ import annotations

import os

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from approvals import instruments
from approvals.metrics.content_store import ContentStoreCollector
from approvals.metrics.queue import QueueCollector
from approvals.metrics.records import RecordsCollector
from approvals.metrics.sources import Kept

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
SOURCES = (
    Kept("database", RecordsCollector()),
    Kept("queue", QueueCollector()),
    Kept("content_store", ContentStoreCollector()),
)


def exposition(*, of_service: bool = True) -> tuple[bytes, str]:
    """(body, content type) in Prometheus' text format.

    With `of_service` also what SOURCES say, read at most every KEPT_SECONDS by this process; one that does not answer
    is told by pratique_database_up and its like, and never fails the scrape.
    """
    parts = [generate_latest(_of_processes())]
    if of_service:
        together = CollectorRegistry()
        for source in SOURCES:
            together.register(source)
        parts.append(generate_latest(together))
    return b"".join(parts), CONTENT_TYPE_LATEST


def _of_processes() -> CollectorRegistry:
    """What this process counted; where several share a folder (gunicorn), what all of them did."""
    if os.environ.get(SHARED_FOLDER):
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]  # the library has no types for it
        return together
    return instruments.registry


# Memory, processor time and open files of this process; of several nobody could tell which.
if not os.environ.get(SHARED_FOLDER):
    ProcessCollector(registry=instruments.registry)
