"""A process of its own: one look at one row under a claim that its worker took. Forked from project.fork_server.

It holds on to the claim itself, so that one that hangs loses it. It ends with its worker: where that is gone, nobody
watches over it any more. It gives the claim back then, so that the death is not counted on its row.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection, parent_process
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import structlog
from django.conf import settings
from django.db import DatabaseError, connections

from approvals import instruments
from approvals.ledger import claims
from approvals.ledger.process_claims import HELD
from approvals.working import background, linux
from approvals.working.heartbeat import STOP_SECONDS, Heartbeat
from approvals.working.work import Work

logger = logging.getLogger(__name__)

# How it ends by itself; whatever else it ends with is a death.
ENDED, RAISED, OUT_OF_MEMORY, STOOD_STILL, NOT_BEGUN, STOPPED = 0, 70, 71, 72, 73, 75
# From so many seconds of processor time on, a process has so low a priority (nice): most are done within the first
# step, and what takes longer gives way to what has just begun.
NICENESS = ((2.0, 16), (0.6, 10), (0.2, 5))
AGE_SECONDS = 0.1
READY = b"ready"
RESTS = b"rests"


@dataclass(frozen=True, slots=True)
class Order:
    """Look at the row of the work that `make` returns under the claim of `holder`, with at most `most_mib` of memory.

    `group_used` is the processor time (s) that its group has used lately. `facts` go into every log line; `known` is
    what its worker hands over (Work.handover).
    """

    make: Callable[[], Work]
    holder: str
    most_mib: float
    group_used: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)
    known: object = None


def main(order: Order, told: Connection[bytes, bytes]) -> NoReturn:
    """Say READY through `told`, look, say what was counted, and end with one of the codes above."""
    # A group of its own, not a session: Linux shares the processor among sessions first, whatever their priorities.
    os.setpgrp()
    linux.end_with_parent()
    linux.be_killed_first()
    signal.signal(signal.SIGTERM, _stop)
    # Before anything else: of ten that start at once, nine would be as urgent as everybody's until the first look.
    linux.give_way([os.getpid()], niceness(order.group_used))
    structlog.contextvars.bind_contextvars(**order.facts)
    try:
        work = order.make()
        work.take_over(order.known)
        is_ours = claims.adopt(work.rows, order.holder)
    except Exception:  # what fails here, such as the way to the database, is no death
        logger.exception("could not begin", extra={"work": str(order.make)})
        _end(NOT_BEGUN)
    threading.Thread(target=_end_with_worker, args=(order.group_used,), daemon=True, name="tether").start()
    Heartbeat(on_still=_stand_still, on_stopped=lambda: _end(STOPPED)).start()
    # What counts is what was allocated; a limit of addresses would count what nobody uses, such as stacks.
    most = int(order.most_mib * linux.MIB)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _tell(told, READY)

    def tell_that_it_rests() -> None:
        with contextlib.suppress(OSError):  # the worker is gone, and so is whoever could use the place
            told.send_bytes(RESTS)

    with background.telling(tell_that_it_rests):
        code = _look(work, order.holder) if is_ours else STOPPED
    _tell(told, json.dumps(instruments.counted()).encode())
    connections.close_all()
    _end(code)


def _tell(told: Connection[bytes, bytes], message: bytes) -> None:
    """Where the worker is gone, end here: it gives the claim back when this has ended, and now nobody else does."""
    try:
        told.send_bytes(message)
    except OSError:
        try:
            HELD.let_go(claims.let_go)
        except DatabaseError as exc:
            logger.warning("could not give the claim back, so that it lapses", extra={"error": str(exc)})
        _end(STOPPED)


def _look(work: Work, holder: str) -> int:
    try:
        work.look(holder)
        work.come_through(holder)
    except MemoryError:
        return OUT_OF_MEMORY
    except Exception:  # a crash of the work, told to the parent by the exit code, and no death of the process
        logger.exception("work failed with an unexpected error", extra={"task": work.task, "row": work.key})
        return RAISED
    return ENDED


def _end_with_worker(group_used: float) -> None:
    """Stop when the worker is gone, and until then give way to younger processes and to groups that have used less.

    Where not even this thread continues, the kernel ends the process: its claim is lost.
    """
    worker = parent_process()
    assert worker is not None
    # Time enough to stop, too, without a word from here.
    hung_seconds, priority = 2 * settings.PRATIQUE["CLAIM_SECONDS"] + int(STOP_SECONDS), 0
    while True:
        signal.alarm(hung_seconds)
        if connection.wait([worker.sentinel], AGE_SECONDS):
            HELD.is_stopping = True
            return
        used = group_used + sum(map(linux.cpu_seconds, linux.family(os.getpid())))
        if (wanted := niceness(used)) > priority:
            priority = wanted
            linux.give_way(linux.family(os.getpid()), priority)


def niceness(cpu_seconds: float) -> int:
    """Return the priority (nice) of a process that, with its group lately, has used so much of the processor."""
    return next((steps for seconds, steps in NICENESS if cpu_seconds >= seconds), 0)


def _stop(number: int, _: object) -> None:
    HELD.is_stopping = True


def _stand_still(holders: Sequence[str]) -> None:
    _end(STOOD_STILL)


def _end(code: int) -> NoReturn:
    """Without waiting for threads: one of them may be what hangs."""
    logging.shutdown()
    os._exit(code)
