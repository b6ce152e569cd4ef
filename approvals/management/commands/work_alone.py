"""`django work_alone TASK KEY HOLDER`: one look at one row in this process alone. Workers start it (working.alone)."""

from __future__ import annotations

import logging
import os
import resource
import signal
from collections.abc import Sequence
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from approvals.jobs import JOBS
from approvals.ledger import claims
from approvals.ledger.held import HELD
from approvals.working import Heartbeat, Work
from approvals.working.alone import ENDED, OUT_OF_MEMORY, RAISED, READY, STOOD_STILL, STOPPED

logger = logging.getLogger(__name__)

MIB = 1024 * 1024
NICENESS = 5


class Command(BaseCommand):
    help = "Look once at one row under a claim that a worker took. For workers, not for people."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("task", choices=sorted(JOBS))
        parser.add_argument("key", type=int)
        parser.add_argument("holder")
        parser.add_argument("--ready", type=int, required=True, help="a pipe to say so when the work begins")

    def handle(self, *args: Any, **options: Any) -> None:
        signal.signal(signal.SIGTERM, _stop)
        work, holder = JOBS[options["task"]](options["key"]), options["holder"]
        is_ours = claims.adopt(work.rows, holder)
        Heartbeat(on_still=_stand_still, on_stopped=lambda: _end(STOPPED)).start()
        _limit()
        os.write(options["ready"], READY)
        os.close(options["ready"])
        _end(_look(work, holder) if is_ours else STOPPED)


def _look(work: Work, holder: str) -> int:
    try:
        work.look(holder)
        work.come_through(holder)
    except MemoryError:
        return OUT_OF_MEMORY
    except Exception:  # a crash of the work, told to the parent by the exit code, and no death of the process
        logger.exception("work failed in a way that nobody foresaw", extra={"task": work.task, "row": work.key})
        return RAISED
    return ENDED


def _limit() -> None:
    """What counts is what was allocated; a limit of addresses would count what nobody uses, such as stacks.

    The kernel's score of this process is left as it is: where a fresh row in the worker uses up the memory, the largest
    process should go, and that is not this one. What is too large in here meets its own limit.
    """
    most = settings.PRATIQUE["ALONE_MEMORY_MIB"] * MIB
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICENESS)


def _stop(number: int, _: object) -> None:
    HELD.is_stopping = True


def _stand_still(holders: Sequence[str]) -> None:
    _end(STOOD_STILL)


def _end(code: int) -> NoReturn:
    """Without waiting for threads: one of them may be what hangs."""
    logging.shutdown()
    os._exit(code)
