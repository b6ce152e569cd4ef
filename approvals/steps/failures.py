"""What becomes of a request whose step could not be taken or came too late: it waits, fails or expires."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction

from approvals.access.sight import deployment_ref
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.errors import ASK_ANEW, Awaits, Full, TooManyLooks
from approvals.gate import Refusal, Waiting
from approvals.ledger import claims, moves, references, retries
from approvals.ledger.moves import locked, move
from approvals.lifecycle import Event, State, may
from approvals.models import Request
from provisioner.errors import BadBundle, PratiqueError, TryLater, WorkerDied
from provisioner.review.base.record import ref_record

logger = logging.getLogger(__name__)

# What a format says of the config is kept from who may not read it.
KEPT_WORDS = "The page of the request shows the reason to people who can get the BundleDeployment"
# An approved request is looked at soon after what it waits for has come.
LONGEST_APPROVED_SECONDS = 30


@transaction.atomic(durable=True)
def expire_request(request_id: int) -> None:
    """End a request whose time is over, unless it has moved on meanwhile."""
    request = locked(request_id)
    if request.expires_at <= database_now() and may(State(request.state), Event.EXPIRE):
        until, waited = f"{request.expires_at:%Y-%m-%d %H:%M} UTC", request.problem
        words = f"it was not settled before {until}" + (f"; what it waited for: {waited}" if waited else "")
        remedy = ASK_ANEW.format(name=request.deployment.name)
        move(request, Event.EXPIRE, actor=MACHINE, problem=words, problem_code="expired", remedy=remedy)


@transaction.atomic(durable=True)
def postpone_request(request: Request, error: TryLater) -> None:
    """Have a request wait for another try. Nothing is lost: the sweeper wakes it when its time has come."""
    row = locked(request.pk)
    claims.check_same_holder(row, request)
    if isinstance(error, Waiting) and error.awaits in (Awaits.WINDOW, Awaits.RING):
        retries.hold_until(row, error, error.due_at, database_now())
        return
    is_costly = isinstance(error, Waiting) and error.is_costly
    is_soon = (row.state == State.APPROVED and not is_costly) or error.code in (Full.code, TooManyLooks.code)
    longest = LONGEST_APPROVED_SECONDS if is_soon else retries.LONGEST_SECONDS
    wait = retries.postpone(row, error, database_now(), longest=longest)
    logger.warning("will try later", extra={"request_id": row.pk, "code": error.code, "seconds": round(wait, 1)})


@transaction.atomic(durable=True)
def fail_request(request: Request, error: PratiqueError) -> None:
    """End a request whose step failed, where the error settles it; else have it wait with its reason shown."""
    row = locked(request.pk)
    if row.state != request.state:
        return
    claims.check_same_holder(row, request)
    facts = {"code": error.code, "why": str(error)}
    if row.state in (State.PREPARING, State.STALE):
        references.note_resolved(row, error.resolved)
        words, problem = [], str(error)
        if isinstance(error, BadBundle) and error.server_words:
            # A format quotes the config, and what it or the sources name in the cluster. Of a Secret a chart is told
            # no value.
            also = [ref_record(ref) for ref in row.bundle_spec.reads() if ref.kind != "Secret"]
            about = ref_record(deployment_ref(row.deployment.name))
            words = [{"ref": about, "also": also, "words": error.server_words}]
            problem = f"{error}. {KEPT_WORDS}"
        move(
            row,
            Event.COULD_NOT_PREPARE,
            actor=MACHINE,
            facts=facts,
            problem_code=error.code,
            problem=problem,
            remedy=error.remedy if isinstance(error, Refusal) else "",
            server_words=words,
        )
    elif row.state == State.APPROVED and moves.is_end(error):
        moves.end(row, error)
    elif isinstance(error, WorkerDied):
        move(row, Event.GIVE_UP, actor=MACHINE, facts=facts, problem_code=error.code, problem=str(error))
    else:
        # In review or approved: "could not find out" is never a verdict.
        retries.hold(row, error, database_now() + timedelta(seconds=retries.LONGEST_SECONDS))
