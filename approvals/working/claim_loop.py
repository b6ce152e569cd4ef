"""One loop for everything that is claimed: claim, look, release, until nothing more is due."""

from __future__ import annotations

import logging

from approvals.errors import CouldNotStart
from approvals.ledger import claims
from approvals.working.subprocesses import has_begun, run_apart
from approvals.working.work import Work, WorkStep
from provisioner.errors import WorkerDied

logger = logging.getLogger(__name__)

# The second death is the row's own where it was seen to die alone. Where nobody saw it, as when a whole node went, it
# may have been another's; so it is tried once more.
MOST_SEEN, MOST_UNSEEN = 2, 3


def do(work: Work) -> None:
    """Work on the row until nothing more is due; returns at once where another worker holds it."""
    worker = claims.new_holder_name()
    is_due = True
    while is_due and work.claim(worker):
        try:
            is_due = _look(work, worker)
        finally:
            if claims.give_back(work.rows, worker):
                work.wake()
                is_due = True


def _look(work: Work, worker: str) -> bool:
    if not work.is_new():
        return False
    deaths, step = claims.deaths_of(work.rows), work.step()
    if deaths >= MOST_UNSEEN:
        _give_up(work, deaths, "")
        return False
    if deaths or (step.is_foreign and has_begun()):
        return _look_apart(work, worker, step, is_suspect=deaths > 0)
    try:
        return work.look(worker)
    except MemoryError:
        # The process lives by luck; what it would die of is worked on alone.
        deaths = claims.count_death(work.rows, worker)
        logger.exception("out of memory", extra={"task": work.task, "row": work.key, "deaths": deaths})
        return False


def _look_apart(work: Work, worker: str, step: WorkStep, *, is_suspect: bool) -> bool:
    """In a process of its own; False where it has to wait for a place."""
    try:
        end = run_apart(work, worker, step, is_suspect=is_suspect)
    except CouldNotStart as exc:
        work.postpone(exc)
        return False
    if end is None or not end.death:
        return end is not None and end.is_done
    # It is tried once more, unless somebody else has the row by now or it has died often enough.
    deaths = claims.count_death(work.rows, worker)
    logger.error("a process of its own died", extra={"task": work.task, "row": work.key, "how": end.death})
    if not work.rows.filter(claimed_by=worker).exists():
        return False
    if deaths >= MOST_SEEN:
        _give_up(work, deaths, end.death)
        return False
    work.wake()
    return True


def _give_up(work: Work, deaths: int, how: str) -> None:
    last = f"The last process worked on nothing else and {how}" if how else "The cause is unknown"
    words = f"the worker died {deaths} times while {work.step().words}. {last}. {work.remedy}"
    logger.error("given up", extra={"task": work.task, "row": work.key, "deaths": deaths, "how": how})
    work.give_up(WorkerDied(words))
