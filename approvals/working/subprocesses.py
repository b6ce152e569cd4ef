"""One look at one row in a process of its own, as the worker sees it: started, listened to, and ended with it.

The processes are forked from one that has loaded the code and has no threads (project.fork_server): a fork of the
worker might inherit locks that nobody gives back, and a start from nothing takes seconds.
"""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import signal
import threading
import time
from dataclasses import dataclass
from multiprocessing import connection, forkserver
from multiprocessing.connection import Connection
from typing import Any

import structlog
from django.conf import settings
from django.db import connections

from approvals import instruments
from approvals.errors import CouldNotStart
from approvals.ledger.process_claims import HELD
from approvals.working import background, linux, memory, subprocess_main
from approvals.working.background import Pledge
from approvals.working.memory import MEMORY, WatchedProcess
from approvals.working.places import Places, RecentUse, Visitor
from approvals.working.subprocess_main import (
    ENDED,
    NOT_BEGUN,
    OUT_OF_MEMORY,
    RAISED,
    READY,
    RESTS,
    STOOD_STILL,
    STOPPED,
)
from approvals.working.work import Work, WorkStep

logger = logging.getLogger(__name__)

PRELOADED = "approvals.project.fork_server"
POLL_SECONDS = 0.25
# What a try to start a process counts for: of ten that one requester has at once, the last gives way to others.
LEAST_USE_SECONDS = 0.2
ABOUT_AS_MUCH_SECONDS = 1.0
MAX_TOLD = 1024 * 1024
# What multiprocessing says where the process that it forks from is gone, and with it all that it forked.
SERVER_GONE = 255
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload([PRELOADED])
# Where one is started, the library looks at all others; two that look at one at once would read its exit code twice.
_library = threading.Lock()
_fresh = Places(lambda: int(settings.PRATIQUE["PREPARATIONS_AT_ONCE"]))
# Suspects one at a time, so that two cannot use up the memory together; those that may take minutes by themselves.
_suspects = {False: Places(lambda: 1), True: Places(lambda: 1)}
_recent_use = RecentUse()
_begun = threading.Event()


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended: with its look `is_done`, or by a `death` in words after "it", or without either."""

    is_done: bool = False
    death: str = ""


def begin() -> None:
    """For workers: from now on what reads foreign content is done apart. Loads the code that all are forked from."""
    _begun.set()
    forkserver.ensure_running()


def has_begun() -> bool:
    return _begun.is_set()


def run_apart(work: Work, worker: str, step: WorkStep, *, is_suspect: bool) -> End | None:
    """Have a process of its own look at the row once, under this claim; None where it has to wait: it is called.

    Raises CouldNotStart where no process came up.
    """
    places = _suspects[step.is_long] if is_suspect else _fresh
    visitor = Visitor((work.task, work.key), work.group(), work.call)
    if not places.take(visitor, time.monotonic()):
        return None
    try:
        # One that waits for the cluster uses up no memory: the next one may be tried.
        with background.pledged(Pledge(lambda: places.leave(visitor))):
            return _run_in_subprocess(work, worker, visitor.group, is_suspect=is_suspect)
    finally:
        places.leave(visitor)


def _run_in_subprocess(work: Work, worker: str, group: str, *, is_suspect: bool) -> End:
    most = settings.PRATIQUE["ALONE_MEMORY_MIB"] if is_suspect else memory.most_mib()
    facts = structlog.contextvars.get_contextvars()
    used = _recent_use.seconds(group, time.monotonic())
    _recent_use.add(group, LEAST_USE_SECONDS, time.monotonic())
    # What has just begun goes first, but for a stream of new ones whose requester has used more than the others.
    MEMORY.give_way(lambda other: used <= 2 * _recent_use.seconds(other, time.monotonic()) + ABOUT_AS_MUCH_SECONDS)
    order = subprocess_main.Order(work.remake, worker, most, used, facts, work.handover())
    mine, its = _processes.Pipe(duplex=False)
    with mine:
        with its:
            # Daemons of this library are ended where the worker ends by itself.
            process = _processes.Process(target=subprocess_main.main, args=(order, its), daemon=True)
            try:
                with _library:
                    process.start()
            except (OSError, EOFError) as exc:
                raise CouldNotStart(f"no process could be started for it: {exc or type(exc).__name__}") from exc
        watched = WatchedProcess(int(process.pid or 0), is_suspect, lambda: _kill(process), group)
        try:
            MEMORY.add(watched)
            # The process has its own connections: where many run, those of threads that only listen would be the
            # database's last ones.
            for database in connections.all(initialized_only=True):
                if not database.in_atomic_block:
                    database.close()
            _listen(process, mine, worker, group)
        finally:
            MEMORY.remove(watched)
            code = _end(process)
    if HELD.is_stopping and code != ENDED:
        return End()
    if code == SERVER_GONE:
        raise CouldNotStart("the process from which it was started has ended")
    if code == NOT_BEGUN:
        raise CouldNotStart("its process could not begin, which the worker's log tells more of")
    words = describe_exit(code)
    if watched.was_too_large:
        words = (
            f"was the largest when the processes of its worker came near to {memory.most_mib():.0f} MiB of memory"
            " (PRATIQUE_WORKER_MEMORY_MIB, else the container's limit)"
        )
    return End(code == ENDED, words)


def _listen(process: Any, told: Connection[bytes, bytes], worker: str, group: str) -> None:
    """Take its messages until it has ended, and count the processor time that it and its children use for its group."""
    is_stopping, open_ends, counted = False, [told, process.sentinel], LEAST_USE_SECONDS
    while process.sentinel not in (ready := connection.wait(open_ends, POLL_SECONDS)):
        if told in ready and not _heard(told, worker):
            open_ends.remove(told)
        used = sum(map(linux.cpu_seconds, linux.family(process.pid)))
        if used > counted:
            _recent_use.add(group, used - counted, time.monotonic())
            counted = used
        if HELD.is_stopping and not is_stopping:
            is_stopping = True
            _signal(process, signal.SIGTERM)
    while told in open_ends and told.poll():
        if not _heard(told, worker):
            break


def _heard(told: Connection[bytes, bytes], worker: str) -> bool:
    """Take one message; False where there is no more to come."""
    try:
        message = told.recv_bytes(MAX_TOLD)
    except (OSError, EOFError):
        return False
    if message == READY:
        # From here on it is the process that holds on to the claim: where it stands still, nobody else may.
        HELD.drop(worker)
    elif message == RESTS:
        background.rest(math.inf)
    else:
        instruments.count(json.loads(message))
    return True


def _kill(process: Any) -> None:
    _signal(process, signal.SIGKILL)


def _signal(process: Any, number: signal.Signals) -> None:
    with _library:
        if process.exitcode is None:
            (process.kill if number is signal.SIGKILL else process.terminate)()


def _end(process: Any) -> int:
    """Its exit code; of one that still runs, because listening to it failed, after its death."""
    _kill(process)
    connection.wait([process.sentinel])
    with _library:
        process.join()
        code = int(process.exitcode)
        process.close()
    return code


def describe_exit(code: int) -> str:
    """How a process died that ended with this code, in words after "it"; "" for one that did not die."""
    about = settings.PRATIQUE
    known = {
        ENDED: "",
        RAISED: "",
        STOPPED: "",
        OUT_OF_MEMORY: f"needed more than {about['ALONE_MEMORY_MIB']} MiB of memory (PRATIQUE_ALONE_MEMORY_MIB)",
        STOOD_STILL: f"made no progress for {about['STEP_MINUTES']} minutes (PRATIQUE_STEP_MINUTES)",
        -signal.SIGALRM: f"hung, so that its claim lapsed after {about['CLAIM_SECONDS']} s (PRATIQUE_CLAIM_SECONDS)",
        -signal.SIGKILL: "was killed by signal 9 (SIGKILL), as Linux does where memory runs out",
    }
    if code in known:
        return known[code]
    if code > 0:
        return f"ended with exit code {code}"
    return f"was killed by signal {-code} ({signal.strsignal(-code)})"
