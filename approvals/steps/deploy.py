"""APPROVED → APPLYING → APPLIED: the gate, then exactly the stored bytes, then what came of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from approvals import audit, gate, store
from approvals.access.port import connect
from approvals.audit import MACHINE
from approvals.gate import Approved, NoLongerWished, reader, reviewed_report
from approvals.gate.facts import value_of
from approvals.gate.planning import installer_of
from approvals.ledger import claims, endings, optionals, pivots, rounds, strays
from approvals.ledger.claims import LostClaim
from approvals.ledger.moves import both_locked, locked, move
from approvals.lifecycle import Event, State
from approvals.models import BundleDeployment, Report, Request, Revision
from approvals.steps.inventory import DatabaseInventory, owner_of
from approvals.steps.notes import Notes
from approvals.steps.sources import read_for
from approvals.steps.unhealthy import wants_restore
from provisioner import pipeline
from provisioner.cluster.client.api import Cluster as Api
from provisioner.cluster.plan.dry_run import differences, plan_digest
from provisioner.errors import DigestMismatch, PratiqueError
from provisioner.probes import health_checks
from provisioner.review.base.record import from_record
from provisioner.values import Action, Content, ObjectRef, Plan, PlannedAction
from provisioner.values import Outcome as Done

logger = logging.getLogger(__name__)
MAX_NAMED = 3


def run(request: Request, worker: str) -> None:
    api = connect(request.deployment.cluster)
    if request.state == State.APPROVED:
        approved = _pass_gate(request, api)
        if approved is None:
            return
        request = _start(request, worker)
    else:
        gate.require(request, reader.meeting(request, api))
        approved = _load(request)
    _apply(request, api, approved.content, gate.without_lifted(approved.plan), worker)


def _load(request: Request) -> Approved:
    return Approved(_approved_content(request), approved_plan(request))


def _approved_content(request: Request) -> Content:
    """The reviewed bytes, hashed again (promise 1)."""
    assert request.content is not None  # a database constraint: nothing is approved without a subject
    return store.get(request.content, pins=store.pins_of(request.pins))


def approved_plan(request: Request) -> Plan:
    """The plan of the round that was reviewed, as it was stored; DigestMismatch where it is not the reviewed one."""
    report = request.reports.get(round=request.round)
    plan = from_record(report.body).plan
    # Over the actions themselves: what the record says of its digest proves nothing about them.
    found = plan_digest(plan.actions)
    if not found == plan.digest == request.plan_digest:
        raise DigestMismatch(f"the stored plan has digest {found}; reviewed was {request.plan_digest}")
    return plan


def _pass_gate(request: Request, api: Api) -> Approved | None:
    """What was approved, where it may be applied now; None: the request became stale. Raises what it waits for.

    Reviews stand for the reviewed plan while it does no more than they saw (S04): an object that somebody has brought
    to the reviewed state meanwhile needs no second review, and is then found unchanged.
    """
    facts, approved = reader.approved(request, api, read_for(request), partial(_load, request))
    try:
        gate.require(request, facts)
        facts = reader.planned(facts, request, api, approved)
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
            objects=differences(now, approved_plan(row).actions),
            remedy=why.remedy,
        )


@transaction.atomic(durable=True)
def _start(request: Request, worker: str) -> Request:
    claims.hold_off_drift(request.deployment_id)
    row = locked(request.pk)
    if (row.state, row.subject_digest, row.claimed_by) != (State.APPROVED, request.subject_digest, worker) or (
        row.round != request.round
    ):
        raise LostClaim(f"the request has moved on while it was looked at: it is {row.state} in round {row.round}")
    number = (row.deployment.revisions.aggregate(last=Max("number"))["last"] or 0) + 1
    assert row.content is not None
    Revision.objects.create(
        deployment=row.deployment,
        number=number,
        request=row,
        content=row.content,
        state=Revision.State.APPLYING,
        started_at=timezone.now(),
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
        look_again_at=None,
    )


def _apply(request: Request, api: Api, content: Content, plan: Plan, worker: str) -> None:
    """Apply as the installer; what is done is noted while it goes on, and the claim renewed with it.

    The deadline counts the time at work, whoever was: while somebody pauses it, or the cluster does not answer, it does
    not run.
    """
    revision, notes = request.revision, Notes(request, partial(claims.renew, request.pk, worker))
    reviewed = reviewed_report(request)
    outcomes = pipeline.deploy(
        api.acting_as(installer_of(request.spec)).guarded(claims.sure_sending(worker)),
        content,
        plan,
        inventory=DatabaseInventory(request.deployment, revision, partial(claims.check_held, request.pk, worker)),
        deadline_seconds=apply_seconds(request.spec) - request.worked_seconds,
        before_phase=partial(_begin_phase, notes, revision, partial(_check_again, request, api, worker, reviewed)),
        before_wait=partial(_say_what_is_waited_for, notes, revision),
        while_waiting=partial(notes.pulse, partial(_check_again, request, api, worker, reviewed)),
        checks=health_checks(request.spec),
        owner=owner_of(revision),
    )
    left_out = [one.ref for one in plan.actions if one.action is Action.SKIP]
    _finish(request, notes.keep(outcomes), left_out)


def apply_seconds(spec: Mapping[str, Any]) -> float:
    """How long an apply may take: as long as the deployment gives a revision to get on, else PRATIQUE_APPLY_MINUTES."""
    return float(spec.get("progressDeadlineMinutes") or settings.PRATIQUE["APPLY_MINUTES"]) * 60.0


def _begin_phase(notes: Notes, revision: Revision, check: Callable[[], None], _: str) -> None:
    notes.go_on()
    check()
    applying = Revision.objects.filter(pk=revision.pk, state=Revision.State.APPLYING)
    applying.exclude(message="").update(message="")


def _say_what_is_waited_for(notes: Notes, revision: Revision, refs: Sequence[ObjectRef]) -> None:
    """For who watches: it may take minutes, in which nothing else is heard of the apply."""
    notes.write()
    named = ", ".join(map(str, refs[:MAX_NAMED])) + (f" and {len(refs) - MAX_NAMED} more" if refs[MAX_NAMED:] else "")
    applying = Revision.objects.filter(pk=revision.pk, state=Revision.State.APPLYING)
    applying.update(message=f"before what comes next, these have to be ready: {named}")


def _check_again(request: Request, api: Api, worker: str, reviewed: Report) -> None:
    """Before each phase (S25): still ours to do, the same wish and account, not paused, approved as it would be now."""
    if not claims.renew(request.pk, worker):
        raise LostClaim
    gate.require(request, reader.going_on(request, api, reviewed))


@transaction.atomic(durable=True)
def _finish(request: Request, failed: list[Done], left_out: Iterable[ObjectRef]) -> None:
    """`left_out` are the optional objects that wait for their API."""
    deployment, row = both_locked(request)
    if row.state != State.APPLYING:
        return
    claims.check_same_holder(row, request)
    if failed:
        words = "; ".join(f"{outcome.ref}: {outcome.message}" for outcome in failed[:5])
        _end_as_failed(row, deployment, words, {"code": "apply-failed", "failed": len(failed)})
        return
    revision = row.revision
    is_removal = row.purpose == Request.Purpose.DELETE
    facts = {"revision": revision.number, "at": timezone.now().isoformat()}
    move(row, Event.FINISH, actor=MACHINE, facts=facts, problem="", problem_code="")
    deployment.revisions.filter(state=Revision.State.ACTIVE).update(state=Revision.State.REPLACED)
    close(row, Revision.State.REMOVED if is_removal else Revision.State.ACTIVE, "")
    deployment.active_revision = None if is_removal else revision
    optionals.keep(revision, left_out)
    deployment.health, deployment.health_message, deployment.drift_problem = "", "", ""
    deployment.save(update_fields=["active_revision", "health", "health_message", "drift_problem"])
    claims.pardon(deployment.pk)
    pivots.follow_up(deployment)


@transaction.atomic(durable=True)
def give_up(request: Request, error: PratiqueError) -> None:
    """End an apply that cannot go on: what was written stays recorded, and what is wished for by now comes next."""
    deployment, row = both_locked(request)
    if row.state == State.APPLYING:
        claims.check_same_holder(row, request)
        remedy = endings.remedy_of(error, deployment.name)
        _end_as_failed(row, deployment, str(error), {"code": error.code, "why": str(error)}, remedy)


def _end_as_failed(
    row: Request, deployment: BundleDeployment, words: str, facts: dict[str, Any], remedy: str = ""
) -> None:
    code, facts = facts["code"], {**facts, "remedy": remedy} if remedy else facts
    event = Event.RESTORE if _is_to_restore(row, deployment, code) else Event.FAIL
    fresh = {"attempts": 0, "worked_seconds": 0.0, "look_again_at": None} if event == Event.RESTORE else {}
    move(row, event, actor=MACHINE, facts=facts, problem_code=code, problem=words, remedy=remedy, **fresh)
    close(row, Revision.State.FAILED, words)
    if event == Event.FAIL:
        pivots.follow_up(deployment)


def _is_to_restore(request: Request, deployment: BundleDeployment, code: str) -> bool:
    """By spec.onFailure; not where something else is wished for by now, which is asked for instead."""
    wanted = wants_restore(request.spec) and request.purpose != Request.Purpose.DELETE
    return wanted and deployment.active_revision_id is not None and code != NoLongerWished.code


def close(request: Request, state: str, message: str) -> None:
    """Say what has become of a request's revision; in the transaction that settles it."""
    revision = request.revision
    revision.state, revision.message, revision.finished_at = state, message, timezone.now()
    revision.save(update_fields=["state", "message", "finished_at"])
    strays.look_soon(revision.deployment_id)
    audit.record(
        verb="revision.recorded",
        actor=MACHINE,
        request=request,
        facts={"revision": revision.number, "state": state, "contentDigest": revision.content_id},
    )
