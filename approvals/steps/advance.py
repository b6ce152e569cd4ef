"""One look at a request: do what its state calls for, until nothing more is due."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from approvals import instruments, wake
from approvals.access.port import discovered, learn_discovered
from approvals.clock import database_now
from approvals.errors import Crashed, LostClaim
from approvals.ledger import claims
from approvals.lifecycle import AT_WORK, State
from approvals.models import Request
from approvals.steps import apply, evaluate, prepare, restore, shared_reads
from approvals.steps.apply_limit import apply_place
from approvals.steps.failures import expire_request, fail_request, postpone_request
from approvals.working import Work, WorkStep, do, has_begun, run_aside
from provisioner.errors import PratiqueError, TryLater, WorkerDied

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class StateStep:
    """What is done in one state of a request.

    `name` is how it is counted and timed. `give_up` ends it where it fails for good; by default nothing but the request
    itself has to be settled then.
    """

    name: str
    run: Callable[[Request, str], None]
    work: WorkStep
    give_up: Callable[[Request, PratiqueError], None] = fail_request


STEPS: dict[str, StateStep] = {
    State.PREPARING: StateStep("prepare", prepare.run, WorkStep("preparing its report", is_foreign=True)),
    State.STALE: StateStep("prepare", prepare.run, WorkStep("preparing its report again", is_foreign=True)),
    State.IN_REVIEW: StateStep("evaluate", evaluate.run, WorkStep("evaluating policies and counting reviews")),
    State.APPROVED: StateStep("apply", apply.begin_apply, WorkStep("checking it again before applying", is_long=True)),
    State.APPLYING: StateStep("apply", apply.resume_apply, WorkStep("applying it", is_long=True), apply.give_up),
    State.RESTORING: StateStep(
        "restore", restore.run, WorkStep("restoring the previous revision", is_long=True), restore.give_up
    ),
}
# The others are tried again: how long they took says nothing of the work.
ENDED = frozenset({"done", "failed"})


class Advance(Work):
    """Take the steps that a request calls for."""

    task = "advance"

    def __init__(self, request_id: int):
        super().__init__(self.task, request_id, Request.objects.filter(pk=request_id))
        self._seen: set[tuple[str, int]] = set()

    def claim(self, worker: str) -> bool:
        return claims.claim(self.key, worker)

    def is_new(self) -> bool:
        at = self.rows.values_list("state", "round").get()
        is_new = at not in self._seen
        self._seen.add(at)
        return is_new

    def come_through(self, worker: str) -> None:
        """What is tried later has not come through; of what has, `_take_step` knows."""

    def wake(self) -> None:
        self._seen.clear()

    def look(self, worker: str) -> bool:
        _take_step(self._request(), worker)
        return True

    def step(self) -> WorkStep:
        return STEPS[self.rows.values_list("state", flat=True).get()].work

    def group(self) -> str:
        """The first of those who asked, where that is known, on their cluster."""
        cluster, people = self.rows.values_list("deployment__cluster_id", "requesters").get()
        return f"{cluster} {people[0]['username'] if people else ''}"

    def handover(self) -> object:
        """What the cluster serves, and what each preparation asks: to read it takes longer than a small preparation."""
        request = self._request()
        with suppress(PratiqueError):
            answers = shared_reads.answers_for(request)
            return discovered(request.deployment.cluster), answers
        return None

    def take_over(self, known: Any) -> None:
        with suppress(PratiqueError):
            if known:
                cluster, (served, answers) = self._request().deployment.cluster, known
                shared_reads.hand_over(answers, cluster)
                if served:
                    learn_discovered(cluster, served)

    def call(self) -> None:
        wake.request(self.key)

    def postpone(self, error: TryLater) -> None:
        postpone_request(self._request(), error)

    def give_up(self, error: WorkerDied) -> None:
        request = self._request()
        settle = STEPS[request.state].give_up if request.state in STEPS else fail_request
        settle(request, error)

    def _request(self) -> Request:
        return Request.objects.select_related("deployment__cluster", "content", "from_revision").get(pk=self.key)


def advance(request_id: int) -> None:
    """Claim the request and work on it; returns at once where another worker holds it or nothing is due."""
    work = partial(do, Advance(request_id))
    if not has_begun():
        work()
        return
    run_aside(work)


def _take_step(request: Request, worker: str) -> None:
    """Take the step that the state calls for, settle what it raises, and count how it ended."""
    if request.state not in AT_WORK and request.expires_at <= database_now():
        expire_request(request.pk)
        return
    name, began = STEPS[request.state].name, time.perf_counter()
    try:
        outcome = _try_step(request, worker)
    except LostClaim:
        # The row is another worker's: nothing is written down about it here.
        logger.warning("another worker has taken over", extra={"request_id": request.pk, "worker": worker})
        instruments.lost_claims.labels("request").inc()
        outcome = "lost_claim"
    instruments.steps.labels(name, outcome).inc()
    if outcome in ENDED:
        instruments.step_seconds.labels(name).observe(time.perf_counter() - began)


def _try_step(request: Request, worker: str) -> str:
    """Take the step and settle what it raises, which may raise LostClaim as well; return how it ended, as a label."""
    step = STEPS[request.state]
    is_apply = request.state == State.APPROVED or request.state in AT_WORK
    try:
        with apply_place(request.pk) if is_apply else nullcontext():
            step.run(request, worker)
        if request.worker_deaths:
            claims.note_progress(Request.objects.filter(pk=request.pk), worker)
    except (LostClaim, MemoryError):  # want of memory is a death, no bug of ours (working)
        raise
    except TryLater as exc:
        postpone_request(request, exc)
        return "waiting"
    except PratiqueError as exc:
        step.give_up(request, exc)
        return "failed"
    except Exception as exc:  # a bug of ours: the request waits, the worker goes on
        logger.exception("a step crashed", extra={"request_id": request.pk, "state": request.state})
        postpone_request(request, Crashed(f"an unexpected error occurred ({type(exc).__name__})"))
        return "crashed"
    return "done"
