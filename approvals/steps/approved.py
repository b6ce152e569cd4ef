"""APPROVED → APPLYING: the gate with all its questions, and the plan made again; then what was approved is applied."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from django.db import transaction
from django.db.models import Max

from approvals import gate, working
from approvals.access.port import connect
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.errors import LostClaim
from approvals.gate import Approved, reader
from approvals.gate.facts import value_of
from approvals.ledger import claims, rounds
from approvals.ledger.moves import locked, move
from approvals.lifecycle import Event, State
from approvals.models import Request, Revision
from approvals.steps import applying
from approvals.steps.records.reviewed import approved_plan, load
from approvals.steps.sources import read_for
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.plan.content_plan import compare_plans, plan_digest
from provisioner.values import PlannedAction


def run(request: Request, worker: str) -> None:
    """Nothing is loaded or asked twice: where the gate lets it pass, it is applied in the same step."""
    api = connect(request.deployment.cluster)
    approved = _pass_gate(request, api)
    if approved is not None:
        applying.carry_out(_start(request, worker), api, approved, worker)


def _pass_gate(request: Request, api: Api) -> Approved | None:
    """What was approved, where it may be applied now; None: the request became stale. Raises what it waits for.

    Reviews stand for the reviewed plan while it does no more than they saw (S04): an object that somebody has brought
    to the reviewed state meanwhile needs no second review, and is then found unchanged.
    """
    facts, approved = reader.approved(request, api, read_for(request), partial(load, request))
    try:
        gate.require(request, facts)
        facts = reader.planned(facts, request, api, approved, working.resting)
        gate.require_again(facts)
    except gate.Stale as stale:
        plan = value_of(facts.plan)
        _find_stale(request, plan.actions if plan else approved.plan.actions, stale)
        return None
    return approved


@transaction.atomic(durable=True)
def _find_stale(request: Request, now: Sequence[PlannedAction], why: gate.Stale) -> None:
    row = locked(request.pk)
    claims.check_same_holder(row, request)
    if row.state == State.APPROVED and row.round == request.round:
        rounds.void(
            row,
            code=why.code,
            words=str(why),
            facts={"reviewedPlan": row.plan_digest, "planNow": plan_digest(now)},
            objects=compare_plans(now, approved_plan(row).actions),
            remedy=why.remedy,
        )


@transaction.atomic(durable=True)
def _start(request: Request, worker: str) -> Request:
    claims.hold_off_drift(request.deployment_id)
    row = locked(request.pk)
    if (row.state, row.subject_digest, row.claimed_by) != (State.APPROVED, request.subject_digest, worker) or (
        row.round != request.round
    ):
        raise LostClaim(f"the request changed during the check: it is now {row.state} in round {row.round}")
    number = (row.deployment.revisions.aggregate(last=Max("number"))["last"] or 0) + 1
    assert row.content is not None
    Revision.objects.create(
        deployment=row.deployment,
        number=number,
        request=row,
        content=row.content,
        state=Revision.State.APPLYING,
        started_at=database_now(),
    )
    return move(
        row,
        Event.START,
        actor=MACHINE,
        facts={"revision": number, "subjectDigest": row.subject_digest},
        problem="",
        problem_code="",
        attempts=0,
        worked_seconds=0.0,
        phase="",
        look_again_at=None,
    )
