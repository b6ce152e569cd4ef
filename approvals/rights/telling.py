"""Each process asks by itself, at its start and from time to time, whether it has its rights, and says so."""

from __future__ import annotations

import logging
import threading

from django.db import DatabaseError, close_old_connections

from approvals.access.port import connect
from approvals.health_endpoints import startup_checks
from approvals.models import Cluster
from approvals.rights.missing import missing_of_self, words_of
from approvals.rights.needs import Process
from provisioner.errors import PratiqueError

logger = logging.getLogger(__name__)

EVERY_SECONDS = 600.0
# While a right is missing: the note goes soon after somebody has given it.
AGAIN_SECONDS = 20.0


def tell_what_is_missing(process: Process) -> threading.Thread:
    """Begin to ask, in a thread that ends with the process; nothing waits for the answers.

    What is missing is logged, once as long as it stays the same, and stands in the notes of `/readyz`. A process that
    lacks a right on one cluster still works for the others, so it is ready all the same.
    """
    thread = threading.Thread(target=_tell, args=(process, threading.Event()), daemon=True, name="rights")
    thread.start()
    return thread


def _tell(process: Process, stop: threading.Event) -> None:
    told: dict[str, str] = {}
    while True:
        try:
            found = look(process)
        except DatabaseError as exc:
            logger.warning("the database is not responding", extra={"error": type(exc).__name__})
        else:
            for cluster in sorted(found.keys() - {name for name, words in told.items() if words == found.get(name)}):
                logger.warning("rights are missing", extra={"cluster": cluster, "words": found[cluster]})
            told = found
        finally:
            close_old_connections()
        if stop.wait(AGAIN_SECONDS if told else EVERY_SECONDS):
            return


def look(process: Process) -> dict[str, str]:
    """The words about each cluster where a right is missing; clusters that do not answer have trouble of their own."""
    found = {}
    for cluster in Cluster.objects.order_by("name"):
        try:
            words = words_of(cluster.name, process, missing_of_self(cluster, connect(cluster), process))
        except PratiqueError as exc:
            logger.info("could not ask about our rights", extra={"cluster": cluster.name, "code": exc.code})
            continue
        if words:
            found[cluster.name] = words
    startup_checks.put_notes("rights", found)
    return found
