"""APPROVED → APPLYING → APPLIED: the gate and the plan once more, then exactly the stored bytes, phase by phase.

A worker that takes it up begins at the first phase again: what is as the plan says is not written twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from approvals import audit, gate, store, working
from approvals.access.port import connect
from approvals.audit import MACHINE
from approvals.bundle_spec import BundleSpec
from approvals.catalogs import followed_packages
from approvals.clock import database_now
from approvals.errors import LostClaim
from approvals.gate import Approved, NoLongerWished, reader, reviewed_report
from approvals.gate.facts import NOT_READ, Fact, How, Known, Unseen, value_of
from approvals.gate.judge import FRESH, check_rings, check_windows
from approvals.gate.plan_options import moments_of
from approvals.ledger import claims, moves, optionals, pivots, rollouts, rounds, strays
from approvals.ledger.deciding import check_runs
from approvals.ledger.holds import note_hold
from approvals.ledger.moves import both_locked, locked, move
from approvals.lifecycle import Event, State
from approvals.models import BundleDeployment, Outcome, Report, Request, Revision
from approvals.steps.external_checks import ask_before_apply
from approvals.steps.records.inventory import DatabaseHookRuns, DatabaseInventory, owner_of
from approvals.steps.records.notes import Notes, words_of
from approvals.steps.sources import read_for
from provisioner import pipeline
from provisioner.cluster.apply.run import PhaseReached
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.plan.content_plan import compare_plans
from provisioner.cluster.plan.planned_actions import plan_digest
from provisioner.errors import DigestMismatch, PratiqueError
from provisioner.review.base.record import from_record
from provisioner.sentences import number, some
from provisioner.values import Action, ObjectRef, OutcomeState, Plan, PlannedAction
from provisioner.values import ObjectOutcome as Done


def load(request: Request) -> Approved:
    """Content and plan of the round that was reviewed; DigestMismatch where either is not the reviewed one."""
    assert request.content is not None  # a database constraint: nothing is approved without a subject
    # The bytes are hashed again (promise 1).
    return Approved(store.get(request.content, fetched_by=request), approved_plan(request))


def approved_plan(request: Request) -> Plan:
    """The plan of the round that was reviewed, as it was stored; DigestMismatch where it is not the reviewed one."""
    report = request.reports.get(round=request.round)
    plan = from_record(report.exact_body).plan
    # Over the actions themselves: what the record says of its digest proves nothing about them.
    found = plan_digest(plan.actions)
    if not found == plan.digest == request.plan_digest:
        raise DigestMismatch(f"the stored plan has digest {found}, but {request.plan_digest} was reviewed")
    return plan


MAX_NAMED = 3
# Well within what the gate takes for fresh.
LOOKED_THROUGH = FRESH / 3


def resume_apply(request: Request, worker: str) -> None:
    api = connect(request.deployment.cluster)
    gate.require(request, reader.meeting(request, api))
    carry_out(request, api, load(request), worker)


def carry_out(request: Request, api: Api, approved: Approved, worker: str) -> None:
    """Apply as the installer; what is done is noted while it continues, and the claim renewed with it.

    The deadline counts the time at work, whoever was: while somebody pauses it, or the cluster does not answer, it does
    not run.
    """
    spec, plan = request.bundle_spec, gate.without_lifted(approved.plan)
    revision, notes = request.revision, Notes(request, partial(claims.renew, request.pk, worker))
    being_applied = Revision.objects.filter(pk=revision.pk, state=Revision.State.APPLYING)
    check_held = partial(claims.check_held, request.pk, worker)
    again = _Again(request, api, worker, reviewed_report(request))
    hooks = {hook.ref for hook in approved.content.hooks}

    def note_phase(phase: PhaseReached) -> None:
        # In the row, so that it is known while the phase waits to begin and nobody works on it.
        words = f"{phase.number} of {phase.count}: {phase.name}"
        Request.objects.filter(pk=request.pk).update(phase=words)

    def begin_phase(_: str) -> None:
        notes.begin_phase(again.before_phase)
        being_applied.exclude(message="").update(message="")

    def note_wait(refs: Sequence[ObjectRef]) -> None:
        # For who watches: it may take minutes, in which nothing else is heard of the apply. A hook is waited for by
        # itself, until it has ended.
        notes.write()
        words = "waiting until these are ready before the next phase"
        if hooks >= set(refs):
            words = "waiting until this hook has ended"
        being_applied.update(message=f"{words}: {some(refs, MAX_NAMED)}")

    outcomes = pipeline.deploy(
        api.acting_as(spec.installer).guarded(claims.sure_sending(worker)),
        approved.content,
        plan,
        inventory=DatabaseInventory(request.deployment, revision, check_held),
        deadline_seconds=apply_seconds(spec) - request.worked_seconds,
        before_phase=begin_phase,
        at_phase=note_phase,
        before_wait=note_wait,
        while_waiting=partial(notes.pulse, again.while_waiting),
        checks=spec.health_checks(),
        owner=owner_of(revision),
        moments=moments_of(request),
        runs=DatabaseHookRuns(request, check_held),
        helm_release=spec.helm_release(),
    )
    left_out = [planned.ref for planned in plan.actions if planned.action is Action.SKIP]
    _finish(request, notes.keep(outcomes), left_out)


def apply_seconds(spec: BundleSpec) -> float:
    """How long an apply may take: as long as the deployment gives a revision to get on, else PRATIQUE_APPLY_MINUTES."""
    return float(spec.health.get("progressDeadlineMinutes") or settings.PRATIQUE["APPLY_MINUTES"]) * 60.0


@dataclass
class _Again:
    """The gate, asked again and again while it is applied (S25): still ours to do, the same wish and account, not
    paused, approved as it would be now.
    """

    request: Request
    api: Api
    worker: str
    reviewed: Report
    _unseen: Fact[Unseen] = NOT_READ

    def before_phase(self) -> None:
        """Where something is deleted that holds objects of others, these are looked through first, without a slot."""
        self._unseen = reader.unseen(self.request, self.api, self.reviewed, working.resting)
        self._require_go_on()

    def while_waiting(self) -> None:
        """Nothing is deleted meanwhile, so nothing is looked through but now and then: the fact stays fresh."""
        if abs(database_now() - self._unseen.at) > LOOKED_THROUGH:
            self._unseen = reader.unseen(self.request, self.api, self.reviewed)
        self._require_go_on()

    def _require_go_on(self) -> None:
        if not claims.renew(self.request.pk, self.worker):
            raise LostClaim
        facts = reader.going_on(self.request, self.api, self.reviewed, self._unseen)
        _keep_hold(self.request, facts)
        gate.require(self.request, facts)


def _keep_hold(request: Request, facts: gate.GateFacts) -> None:
    """Whether windows or rings hold it, whatever else does: until they let go, what people proved does not age."""
    if isinstance(facts.windows, Known):
        now = database_now()
        dues = [hold.due_at for hold in (*check_windows(facts, now), *check_rings(facts, now))]
        known = [due for due in dues if due]
        note_hold(request, is_held=bool(dues), until=max(known) if known and len(known) == len(dues) else None)


@transaction.atomic(durable=True)
def _finish(request: Request, failed: list[Done], left_out: Iterable[ObjectRef]) -> None:
    """`left_out` are the optional objects that wait for their API."""
    deployment, row = both_locked(request)
    if row.state != State.APPLYING:
        return
    claims.check_same_holder(row, request)
    followed_packages.ask_soon(deployment)
    if failed:
        _end_as_failed(row, deployment, words_of(failed), {"code": "apply-failed", "failed": len(failed)})
        return
    revision = row.revision
    is_removal = row.purpose == Request.Purpose.DELETE
    facts = {"revision": revision.number, "at": database_now().isoformat()}
    move(row, Event.FINISH, actor=MACHINE, facts=facts, problem="", problem_code="", phase="")
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
    """End an apply that cannot go on: what was written stays recorded, and what is wished for now comes next."""
    deployment, row = both_locked(request)
    if row.state == State.APPLYING:
        claims.check_same_holder(row, request)
        followed_packages.ask_soon(deployment)
        words, remedy = str(error), moves.remedy_of(error, deployment.name)
        if not _is_to_restore(row, deployment, error.code):
            at, changes = f" at phase {row.phase}" if row.phase else "", "nothing was changed"
            if written := row.outcomes.filter(step=Outcome.Step.APPLY, state=OutcomeState.DONE).count():
                stays = "stays" if written == 1 else "stay"
                changes = f"{number(written, 'object')} changed before that {stays} changed"
            running = deployment.active_revision
            still = f"revision {running.number} still counts as the running one" if running else ""
            words += f"; applying stopped{at}: {changes}, and {still or 'no revision counts as running'}"
        _end_as_failed(row, deployment, words, {"code": error.code, "why": str(error)}, remedy)


def _end_as_failed(
    row: Request, deployment: BundleDeployment, words: str, facts: dict[str, Any], remedy: str = ""
) -> None:
    code, facts = facts["code"], {**facts, "remedy": remedy} if remedy else facts
    event = Event.RESTORE if _is_to_restore(row, deployment, code) else Event.FAIL
    fresh = {"attempts": 0, "worked_seconds": 0.0, "look_again_at": None, "phase": ""} if event == Event.RESTORE else {}
    move(row, event, actor=MACHINE, facts=facts, problem_code=code, problem=words, remedy=remedy, **fresh)
    close(row, Revision.State.FAILED, row.problem)
    if event == Event.FAIL:
        pivots.follow_up(deployment)


def _is_to_restore(request: Request, deployment: BundleDeployment, code: str) -> bool:
    """By spec.onFailure; not where something else is wished for now, which is asked for instead."""
    wanted = request.bundle_spec.is_restoring and request.purpose != Request.Purpose.DELETE
    return wanted and deployment.active_revision_id is not None and code != NoLongerWished.code


def close(request: Request, state: str, message: str) -> None:
    """Say what has become of a request's revision; in the transaction that settles it."""
    revision = request.revision
    revision.state, revision.message, revision.finished_at = state, message, database_now()
    revision.save(update_fields=["state", "message", "finished_at"])
    strays.look_soon(revision.deployment_id)
    audit.record(
        verb="revision.recorded",
        actor=MACHINE,
        request=request,
        facts={"revision": revision.number, "state": state, "contentDigest": revision.content.public_digest},
    )


def begin_apply(request: Request, worker: str) -> None:
    """Apply what was approved where the gate lets it pass, or find the request stale. Raises what it waits for.

    Nothing is loaded or asked twice. Reviews stand for the reviewed plan while it does no more than they saw (S04): an
    object that somebody has brought to the reviewed state meanwhile needs no second review and is then found unchanged.
    """
    api = connect(request.deployment.cluster)
    facts, approved = reader.approved(request, api, read_for(request), partial(load, request))
    _keep_hold(request, facts)
    ask_before_apply(request, facts)
    try:
        gate.require(request, facts)
        facts = reader.planned(facts, request, api, approved, working.resting)
        gate.require_again(facts)
    except gate.Stale as stale:
        plan = value_of(facts.plan)
        _find_stale(request, plan.actions if plan else approved.plan.actions, stale)
        return
    carry_out(_start(request, worker, facts), api, approved, worker)


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
def _start(request: Request, worker: str, facts: gate.GateFacts) -> Request:
    claims.hold_off_drift(request.deployment_id)
    row = locked(request.pk)
    if (row.state, row.subject_digest, row.claimed_by) != (State.APPROVED, request.subject_digest, worker) or (
        (row.round, row.apply_at) != (request.round, request.apply_at)
    ):
        raise LostClaim(f"the request changed during the check: it is now {row.state} in round {row.round}")
    if not check_runs.are_as_read(row, value_of(facts.checks) or ()):
        raise LostClaim("an external check answered during the check: it is looked at again")
    # Members that were approved together are checked at the same time, so one may have failed since.
    orders = Known(rollouts.orders_of(row), database_now(), How.RECORDS)
    if orders.value and any(check_rings(replace(facts, orders=orders), orders.at)):
        raise LostClaim("another member of its set changed during the check: it is looked at again")
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
