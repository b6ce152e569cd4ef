"""A process of its own for one look at one row: bounded in memory, niced, and watched.

Started, not forked: a worker has threads, and a fork of it might inherit locks that nobody gives back.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings

from approvals.ledger import claims
from approvals.ledger.held import BEATS, HELD
from provisioner.errors import TryLater

if TYPE_CHECKING:
    from approvals.working.work import Work

logger = logging.getLogger(__name__)

# How such a process ends by itself; whatever else it ends with is a death.
ENDED, RAISED, OUT_OF_MEMORY, STOOD_STILL, STOPPED = 0, 70, 71, 72, 75
COMMAND = "work_alone"
READY = b"ready"
START_SECONDS = 120.0
POLL_SECONDS = 0.1
# One at a time, so that two cannot use up the memory together; what waits for minutes does not hold up what does not.
_turns = {False: threading.Lock(), True: threading.Lock()}


class CouldNotStart(TryLater):
    """No process could be started for work that has to be done alone. Nobody died."""

    code = "could-not-start"


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended: with its look `is_done`, or by a `death` in words after "it", or without either."""

    is_done: bool = False
    death: str = ""


def run_alone(work: Work, worker: str, *, is_long: bool) -> End | None:
    """Have a process of its own look at the row once, under this claim; None where another one has the turn.

    Raises CouldNotStart where no process came up.
    """
    turn = _turns[is_long]
    if not turn.acquire(blocking=False):
        return None
    try:
        code = _exit_code(work, worker)
        return End(code == ENDED, _words(code))
    except CouldNotStart:
        if HELD.is_stopping:
            return None
        raise
    finally:
        turn.release()


def _exit_code(work: Work, worker: str) -> int:
    # From here on it is the process that holds on to the claim: where it stands still, nobody else may.
    HELD.drop(worker)
    mine, its = os.pipe()
    with open(mine, "rb", buffering=0) as told:
        try:
            process = _started(work, worker, its)
        except OSError as exc:
            raise CouldNotStart(f"no process could be started for it: {exc}") from exc
        finally:
            os.close(its)
        try:
            _wait_until_ready(work, worker, process, told.fileno())
            return _watched(work, worker, process)
        finally:
            _end(process)


def _started(work: Work, worker: str, ready: int) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "django", COMMAND, work.task, work.key, worker, "--ready", ready]
    about = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": os.environ.get("DJANGO_SETTINGS_MODULE", "approvals.project.settings"),
        # Each arena of malloc is 64 MiB of addresses for a thread that may need one.
        "MALLOC_ARENA_MAX": "2",
    }
    # In a session of its own: what kills the worker's group does not kill what comes through here.
    return subprocess.Popen(  # noqa: S603 - our own command
        [str(word) for word in words],
        stdin=subprocess.DEVNULL,
        env=about,
        pass_fds=(ready,),
        start_new_session=True,
    )


def _wait_until_ready(work: Work, worker: str, process: subprocess.Popen[bytes], told: int) -> None:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end and not HELD.is_stopping:
        is_told, _, _ = select.select([told], [], [], POLL_SECONDS * 10)
        if not is_told:
            claims.renew_held(work.rows.filter(claimed_by=worker))
            continue
        if os.read(told, len(READY)) == READY:
            return
        raise CouldNotStart(f"the process that was started for it ended at once, with exit code {process.wait()}")
    raise CouldNotStart("the process that was started for it did not come up")


def _watched(work: Work, worker: str, process: subprocess.Popen[bytes]) -> int:
    """Its exit code. It is killed where it no longer holds on to its claim: it hangs, so that not even that is done."""
    seconds = settings.PRATIQUE["CLAIM_SECONDS"] / BEATS
    ask_at = time.monotonic() + seconds
    while process.poll() is None:
        time.sleep(POLL_SECONDS)
        if HELD.is_stopping:
            process.send_signal(signal.SIGTERM)
            return process.wait()
        if time.monotonic() > ask_at:
            if not claims.is_held(work.rows, worker) and process.poll() is None:
                process.kill()
                process.wait()
                return STOOD_STILL
            ask_at = time.monotonic() + seconds
    return process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()


def _words(code: int) -> str:
    about = settings.PRATIQUE
    known = {
        ENDED: "",
        RAISED: "",
        STOPPED: "",
        OUT_OF_MEMORY: f"needed more than {about['ALONE_MEMORY_MIB']} MiB of memory (PRATIQUE_ALONE_MEMORY_MIB)",
        STOOD_STILL: f"made no progress for {about['STEP_MINUTES']} minutes (PRATIQUE_STEP_MINUTES)",
        -signal.SIGKILL: "was killed by signal 9 (SIGKILL), as Linux does where memory runs out",
    }
    if code in known:
        return known[code]
    if code > 0:
        return f"ended with exit code {code}"
    return f"was killed by signal {-code} ({signal.strsignal(-code)})"
