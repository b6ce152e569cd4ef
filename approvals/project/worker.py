"""What a worker process does besides its tasks: it holds on to its claims, and gives them back when it stops."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence

from celery.signals import worker_ready, worker_shutdown, worker_shutting_down

from approvals import health_endpoints
from approvals.ledger import claims
from approvals.ledger.process_claims import HELD
from approvals.rights.missing_rights import tell_what_is_missing
from approvals.rights.needs import Process
from approvals.working import Heartbeat, begin
from provisioner import confinement

logger = logging.getLogger(__name__)


@worker_ready.connect
def hold_on_to_claims(**_: object) -> None:
    Heartbeat(on_still=end_at_once, on_turn=health_endpoints.note_turn).start()


@worker_ready.connect
def tell_missing_rights(**_: object) -> None:
    tell_what_is_missing(Process.WORKER)


@worker_ready.connect
def tell_broken_plugins(**_: object) -> None:
    health_endpoints.tell_broken_plugins()


@worker_ready.connect
def tell_content_store(**_: object) -> None:
    health_endpoints.tell_content_store()


@worker_ready.connect
def tell_weak_confinement(**_: object) -> None:
    if words := confinement.weakness():
        logger.warning("the kernel confines no charts", extra={"problem": words})
        health_endpoints.put_notes("charts", {"kernel": words})


@worker_ready.connect
def work_apart(**_: object) -> None:
    begin()


@worker_shutting_down.connect
def let_go_of_claims(**_: object) -> None:
    """Have the heartbeat give back what this worker does not end soon. In a signal handler: no lock may be taken."""
    HELD.is_stopping = True


@worker_shutdown.connect
def let_go_of_the_rest(**_: object) -> None:
    """The worker's own threads have ended; what still waits for a cluster ends with the process, and is no death."""
    HELD.is_stopping = True
    HELD.let_go(claims.let_go)


def end_at_once(holders: Sequence[str]) -> None:
    """A thread that hangs cannot be ended, and takes the time of the others. Whoever supervises starts a new worker.

    The claims of the others are given back; that of what hangs lapses, and counts as a death.
    """
    logger.critical("a step makes no progress: this worker stops", extra={"holders": list(holders)})
    HELD.is_stopping = True
    HELD.let_go(claims.let_go, but=frozenset(holders))
    logging.shutdown()
    os._exit(1)
