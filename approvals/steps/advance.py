"""One look at a request: do what its state calls for, until nothing more is due."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from threading import Condition
from typing import Any

from django.conf import settings
from django.db import transaction

from approvals import instruments, wake
from approvals.access.port import discovered, learn_discovered
from approvals.access.sight import deployment_ref
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.errors import ASK_ANEW, Crashed, Full, LostClaim, TooManyLooks
from approvals.gate import Refusal, Waiting
from approvals.ledger import claims, moves, references, waits
from approvals.ledger.moves import locked, move
from approvals.lifecycle import AT_WORK, Event, State, may
from approvals.models import Request
from approvals.steps import apply, evaluate, prepare, restore, shared_reads
from approvals.working import Pledge, Work, WorkStep, do, has_begun, pledged, run_aside
from provisioner.errors import BadBundle, PratiqueError, TryLater, WorkerDied
from provisioner.review.base.record import ref_record

logger = logging.getLogger(__name__)


STEPS: dict[str, Callable[[Request, str], None]] = {
    State.PREPARING: prepare.run,
    State.STALE: prepare.run,
    State.IN_REVIEW: evaluate.run,
    State.APPROVED: apply.begin_apply,
    State.APPLYING: apply.resume_apply,
    State.RESTORING: restore.run,
}
# What the step of a state is called where steps are counted and timed.
NAMES: dict[str, str] = {
    State.PREPARING: "prepare",
    State.STALE: "prepare",
    State.IN_REVIEW: "evaluate",
    State.APPROVED: "apply",
    State.APPLYING: "apply",
    State.RESTORING: "restore",
}
# How a step ends that cannot go on, where more has to be settled than the request itself.
GIVE_UP: dict[str, Callable[[Request, PratiqueError], None]] = {
    State.APPLYING: apply.give_up,
    State.RESTORING: restore.give_up,
}
# The others are tried again: how long they took says nothing of the work.
ENDED = frozenset({"done", "failed"})
# What a format says of the config is kept from who may not read it.
KEPT_WORDS = "The page of the request shows the reason to people who can get the BundleDeployment"
# What is approved goes on soon after what it waits for has come.
LONGEST_APPROVED_SECONDS = 30
_applying: set[int] = set()
# Whoever waits for room is woken when somebody leaves it.
_room = Condition()


WORDS: dict[str, WorkStep] = {
    State.PREPARING: WorkStep("preparing its report", is_foreign=True),
    State.STALE: WorkStep("preparing its report again", is_foreign=True),
    State.IN_REVIEW: WorkStep("evaluating policies and counting reviews"),
    State.APPROVED: WorkStep("checking it again before applying", is_long=True),
    State.APPLYING: WorkStep("applying it", is_long=True),
    State.RESTORING: WorkStep("restoring the previous revision", is_long=True),
}


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
        return WORDS[self.rows.values_list("state", flat=True).get()]

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
        _try_later(self._request(), error)

    def give_up(self, error: WorkerDied) -> None:
        request = self._request()
        GIVE_UP.get(request.state, _fail)(request, error)

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
    if request.state not in AT_WORK and request.expires_at <= database_now():
        _expire(request.pk)
        return
    name, began = NAMES[request.state], time.perf_counter()
    outcome = _try_step(request, worker)
    instruments.steps.labels(name, outcome).inc()
    if outcome in ENDED:
        instruments.step_seconds.labels(name).observe(time.perf_counter() - began)


def _try_step(request: Request, worker: str) -> str:
    """Take the step and settle what it raises; how it ended, as a label."""
    try:
        return _tried(request, worker)
    except LostClaim:
        # The row is another worker's: nothing is written down about it here.
        logger.warning("another worker has taken over", extra={"request_id": request.pk, "worker": worker})
        instruments.lost_claims.labels("request").inc()
        return "lost_claim"


def _tried(request: Request, worker: str) -> str:
    try:
        with _room_for(request):
            STEPS[request.state](request, worker)
        if request.worker_deaths:
            claims.note_progress(Request.objects.filter(pk=request.pk), worker)
    except MemoryError:
        raise  # a death, not a bug of ours (working)
    except LostClaim:
        raise
    except TryLater as exc:
        _try_later(request, exc)
        return "waiting"
    except PratiqueError as exc:
        give_up = GIVE_UP.get(request.state, _fail)
        give_up(request, exc)
        return "failed"
    except Exception as exc:
        logger.exception("a step crashed", extra={"request_id": request.pk, "state": request.state})
        _try_later(request, Crashed(f"an unexpected error occurred ({type(exc).__name__})"))
        return "crashed"
    return "done"


@contextmanager
def _room_for(request: Request) -> Iterator[None]:
    """Raise Full where this process applies enough. One that waits for the cluster is none of those meanwhile."""
    if request.state != State.APPROVED and request.state not in AT_WORK:
        yield
        return
    if not _has_room(request.pk):
        most = settings.PRATIQUE["APPLIES_AT_ONCE"]
        raise Full(f"{most} of {most} requests are being applied: this one continues when one of them is finished")
    try:
        with pledged(Pledge(partial(_leave_room, request.pk), partial(_await_room, request.pk))):
            yield
    finally:
        _leave_room(request.pk)


def _has_room(request_id: int) -> bool:
    with _room:
        if len(_applying) >= settings.PRATIQUE["APPLIES_AT_ONCE"]:
            return False
        _applying.add(request_id)
        return True


def _leave_room(request_id: int) -> None:
    with _room:
        _applying.discard(request_id)
        _room.notify_all()


def _await_room(request_id: int) -> None:
    """What it waited for is ready: it continues before anything else begins, so it need not wait for long."""
    with _room:
        _room.wait_for(partial(_has_room, request_id))


@transaction.atomic(durable=True)
def _expire(request_id: int) -> None:
    request = locked(request_id)
    if request.expires_at <= database_now() and may(State(request.state), Event.EXPIRE):
        until, waited = f"{request.expires_at:%Y-%m-%d %H:%M} UTC", request.problem
        words = f"it expired at {until} without a decision" + (f"; what it waited for: {waited}" if waited else "")
        remedy = ASK_ANEW.format(name=request.deployment.name)
        move(request, Event.EXPIRE, actor=MACHINE, problem=words, problem_code="expired", remedy=remedy)


@transaction.atomic(durable=True)
def _try_later(request: Request, error: TryLater) -> None:
    """Nothing is lost: the sweeper wakes the request again when its time has come."""
    row = locked(request.pk)
    claims.check_same_holder(row, request)
    is_costly = isinstance(error, Waiting) and error.is_costly
    is_soon = (row.state == State.APPROVED and not is_costly) or error.code in (Full.code, TooManyLooks.code)
    longest = LONGEST_APPROVED_SECONDS if is_soon else waits.LONGEST_SECONDS
    wait = waits.postpone(row, error, database_now(), longest=longest)
    logger.warning("will try later", extra={"request_id": row.pk, "code": error.code, "seconds": round(wait, 1)})


def _words_of_config(row: Request, error: PratiqueError) -> list[dict[str, Any]]:
    """What the words of a format quote: of the config, and of what it or the sources name in the cluster. Of a Secret a
    chart is told no value."""
    if not isinstance(error, BadBundle) or not error.server_words:
        return []
    also = [ref_record(one) for one in row.bundle_spec.reads() if one.kind != "Secret"]
    return [{"ref": ref_record(deployment_ref(row.deployment.name)), "also": also, "words": error.server_words}]


@transaction.atomic(durable=True)
def _fail(request: Request, error: PratiqueError) -> None:
    row = locked(request.pk)
    if row.state != request.state:
        return
    claims.check_same_holder(row, request)
    facts = {"code": error.code, "why": str(error)}
    if row.state in (State.PREPARING, State.STALE):
        references.note_resolved(row, error.resolved)
        words = _words_of_config(row, error)
        move(
            row,
            Event.COULD_NOT_PREPARE,
            actor=MACHINE,
            facts=facts,
            problem_code=error.code,
            problem=f"{error}. {KEPT_WORDS}" if words else str(error),
            remedy=error.remedy if isinstance(error, Refusal) else "",
            server_words=words,
        )
        return
    if row.state == State.APPROVED and moves.is_end(error):
        moves.end(row, error)
        return
    if isinstance(error, WorkerDied):
        move(row, Event.GIVE_UP, actor=MACHINE, facts=facts, problem_code=error.code, problem=str(error))
        return
    # In review or approved: "could not find out" is never a verdict; it waits, with its reason shown.
    waits.hold(row, error, database_now() + timedelta(seconds=waits.LONGEST_SECONDS))
