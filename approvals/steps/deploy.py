"""APPROVED → APPLYING → APPLIED: the gate, then exactly the stored bytes, then what came of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from approvals import access, audit, policy, store
from approvals.access.port import connect
from approvals.audit import MACHINE
from approvals.ledger import claims, optionals, pivots, strays
from approvals.ledger.claims import LostClaim
from approvals.ledger.digests import options_digest, subject_digest
from approvals.ledger.moves import both_locked, locked, move
from approvals.lifecycle import Event, State
from approvals.models import BundleDeployment, Report, Request, Review, Revision
from approvals.policy import Ballot, Decision, Tally
from approvals.steps.evaluate import ballot_of, hold_back, objection_to, reviewed_report
from approvals.steps.inventory import DatabaseInventory, installer_of, owned, owner_of, plan_options
from approvals.steps.notes import Notes
from approvals.steps.obstacles import Paused, Waiting, check_constraints, check_doable, without_lifted
from approvals.steps.prepare import (
    account_uid_of,
    check_account,
    check_cluster,
    check_cluster_uid,
    check_requesters,
    running_content,
)
from approvals.steps.reviewers import Waived, identity_behind, is_still_reviewer, reviews_of, waived
from approvals.steps.unhealthy import wants_restore
from approvals.steps.unreviewed import goes_along, without_review
from provisioner import pipeline
from provisioner.cluster.access import refused_writes
from provisioner.cluster.api import Cluster as Api
from provisioner.cluster.plan import is_within, plan_digest
from provisioner.errors import DigestMismatch, PratiqueError
from provisioner.probes import health_checks
from provisioner.review.record import from_record
from provisioner.values import Action, Content, ObjectRef, Plan
from provisioner.values import Outcome as Done

logger = logging.getLogger(__name__)
MAX_NAMED = 3
_HAS_CHANGED = "the cluster changed since the review, so the plan did: it is reported and reviewed again"
_NOT_LET_GO = "nothing lets this deletion go without a review any more: it is reported again, and reviewed"
_TAKES_DATA = "what would be deleted without a review holds data by now: it is reported again, and reviewed"


class NoLongerWished(PratiqueError):
    """The BundleDeployment asks for something else by now, or is being deleted; another request is about that."""

    code = "no-longer-wished"


@dataclass(frozen=True, slots=True)
class Seen:
    """What the gate first asks of the cluster, all at once; the answer, or what it raises, counts in its turn."""

    cluster_uid: Future[str]
    deployment: Future[dict[str, Any]]
    account_uid: Future[str]

    @classmethod
    def ask(cls, beside: ThreadPoolExecutor, request: Request, api: Api) -> Seen:
        return cls(
            beside.submit(api.uid),
            beside.submit(_live_deployment, request, api),
            beside.submit(account_uid_of, request, api),
        )


def run(request: Request, worker: str) -> None:
    api = connect(request.deployment.cluster)
    if request.state == State.APPROVED:
        with ThreadPoolExecutor(max_workers=3) as beside:
            seen = Seen.ask(beside, request, api)
            content, plan = _approved_content(request), approved_plan(request)
        if not _pass_gate(request, api, content, plan, seen):
            return
        request = _start(request, worker)
    else:
        check_cluster(request, api)
        content, plan = _approved_content(request), approved_plan(request)
    _apply(request, api, content, without_lifted(plan), worker)


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


def _pass_gate(request: Request, api: Api, content: Content, plan: Plan, seen: Seen) -> bool:
    """Everything that was true at review is asked again (S25, promises 1 to 3). False: the request became stale.

    Reviews stand for the reviewed plan while it does no more than they saw (S04): an object that somebody has brought
    to the reviewed state meanwhile needs no second review, and is then found unchanged.
    """
    check_cluster_uid(request, seen.cluster_uid.result())
    live = seen.deployment.result()
    check_requesters(request)
    _check_subject(request, content, plan, seen.account_uid.result())
    if _needs_review_by_now(request):
        _find_stale(request, plan, _NOT_LET_GO)
        return False
    check_decision(request, reviewed_report(request))
    if live.get("spec", {}).get("paused"):
        raise Paused(request.deployment, "it is applied")
    check_constraints(request, api)
    installer = installer_of(request.spec)
    with ThreadPoolExecutor(max_workers=1) as beside:
        asking = beside.submit(refused_writes, api, installer, plan.actions)
        now_planned = pipeline.plan_again(
            api,
            content,
            previous=running_content(request),
            inventory=owned(request.deployment),
            as_account=installer,
            options=plan_options(request),
            reviewed=plan,
        )
    if not is_within(now_planned.actions, plan.actions):
        _find_stale(request, now_planned, _HAS_CHANGED)
        return False
    if _takes_data_by_now(request, api, now_planned):
        _find_stale(request, now_planned, _TAKES_DATA)
        return False
    is_less = now_planned.digest != plan.digest
    not_allowed = refused_writes(api, installer, now_planned.actions) if is_less else asking.result()
    check_doable(request, api, content, now_planned, not_allowed)
    return True


def _live_deployment(request: Request, api: Api) -> dict[str, Any]:
    deployment = request.deployment
    live = api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", deployment.name))
    if live is None or live["metadata"]["uid"] != deployment.uid:
        raise NoLongerWished(f"BundleDeployment {deployment.name} is no longer the one that was reviewed")
    wants_deletion = request.purpose == Request.Purpose.DELETE
    if bool(live["metadata"].get("deletionTimestamp")) != wants_deletion:
        raise NoLongerWished(f"BundleDeployment {deployment.name} is {'not ' if wants_deletion else ''}being deleted")
    if options_digest(live.get("spec") or {}) != request.options_digest:
        raise NoLongerWished(f"the spec of {deployment.name} is no longer the reviewed one: a new request follows")
    return live


def _check_subject(request: Request, content: Content, plan: Plan, account_uid: str) -> None:
    found = subject_digest(
        cluster_uid=request.deployment.cluster.uid or "",
        deployment_uid=request.deployment.uid,
        request_uid=str(request.uid),
        round_number=request.round,
        content_digest=content.digest,
        plan_digest=plan.digest,
        options_digest=request.options_digest,
        service_account_uid=account_uid,
    )
    if found != request.subject_digest:
        raise DigestMismatch(f"what would be applied has subject digest {found}; approved was {request.subject_digest}")
    verdict = request.verdicts.filter(round=request.round, verdict="Approved", subject_digest=found)
    if not verdict.exists():
        raise DigestMismatch(f"there is no Approved verdict for {found} in round {request.round}")


def check_decision(request: Request, reviewed: Report) -> None:
    """Raise Waiting where the approval would not be given today: who gave it, what they accepted, and the guards."""
    _check_guards(request, reviewed, check_reviewers(request))


def check_reviewers(request: Request) -> Waived:
    """Ask Kubernetes again for everyone who approved; what no longer counts is said, and the rest is counted."""
    reviews = reviews_of(request)
    tally = _tally(request, [*without_review(request), *(_ballot(review, request) for review in reviews)])
    if tally.decision != Decision.APPROVED:
        raise Waiting(f"not every approval counts any more, asked again before applying: {tally.words}")
    accepted = waived(request, reviews)
    if accepted.lost:
        raise Waiting(f"asked again before applying: {'; '.join(accepted.lost)}")
    return accepted


def _tally(request: Request, ballots: list[Ballot]) -> Tally:
    return policy.decide(
        ballots,
        needed=settings.PRATIQUE["APPROVALS_NEEDED"],
        held_by=(),
        is_requester_known=request.is_requester_known,
    )


def _needs_review_by_now(request: Request) -> bool:
    """Whether a deletion was approved for want of data alone, and that is not enough any more: nobody could review it
    where it is, so that it would wait for ever."""
    if request.purpose != Request.Purpose.DELETE or without_review(request):
        return False
    given = [review for review in reviews_of(request) if review.decision == "Approve"]
    return len(given) < settings.PRATIQUE["APPROVALS_NEEDED"] and not any(review.policy_id for review in given)


def _takes_data_by_now(request: Request, api: Api, planned: Plan) -> bool:
    """Whether nobody approved a deletion, and what it takes holds data since its report (S15): no plan tells values."""
    if not without_review(request):
        return False
    if without_review(request, planned) and not goes_along(request, api, planned):
        return False
    given = [_ballot(review, request) for review in reviews_of(request)]
    return _tally(request, given).decision != Decision.APPROVED


def _check_guards(request: Request, reviewed: Report, accepted: Waived) -> None:
    """A guard that is new, changed or no longer waived holds back what was approved without it."""
    request.deployment.refresh_from_db(fields=["labels"])
    holding = hold_back(request, reviewed, accepted)
    if holding:
        words = "; ".join(f"guard {name}: {said}" for name, said in sorted(holding.items()))
        raise Waiting(f"held back, asked again before applying: {words}")


def _ballot(review: Review, request: Request) -> Ballot:
    """What the review weighs today, as to the right to use the ServiceAccount as well (S07)."""
    ballot = ballot_of(review, request, counts=_still_counts(review, request))
    if request.is_requester_known or review.user is None or not ballot.may_use_account:
        return ballot
    identity = identity_behind(review, request)
    if identity is None:
        return ballot
    return replace(ballot, may_use_account=access.may_use_account(identity, request).allowed)


def _still_counts(review: Review, request: Request) -> bool:
    if review.policy:
        return not objection_to(review.policy, request)
    return is_still_reviewer(review, request)


@transaction.atomic(durable=True)
def _find_stale(request: Request, planned: Plan, words: str) -> None:
    row = locked(request.pk)
    if row.state == State.APPROVED and row.round == request.round:
        move(
            row,
            Event.FIND_STALE,
            actor=MACHINE,
            facts={"reviewedPlan": row.plan_digest, "planNow": planned.digest},
            problem_code="plan-changed",
            problem=words,
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
    """Before each phase (S25): still ours to do, the same wish and account, not paused, approved as it would be now.

    Guards are asked again too: without any it costs one query, else the reviewed facts are read once for all phases.
    """
    with ThreadPoolExecutor(max_workers=2) as beside:
        account, live = beside.submit(check_account, request, api), beside.submit(_live_deployment, request, api)
        if not claims.renew(request.pk, worker):
            raise LostClaim
        try:
            check_decision(request, reviewed)
        except PratiqueError:
            _check_unmoved(request, account, live)  # what these say counts before that the decision is waited for
            raise
        _check_unmoved(request, account, live)


def _check_unmoved(request: Request, account: Future[None], live: Future[dict[str, Any]]) -> None:
    account.result()
    if live.result().get("spec", {}).get("paused"):
        raise Paused(request.deployment, "what was begun goes on")


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
        _end_as_failed(row, deployment, str(error), {"code": error.code, "why": str(error)})


def _end_as_failed(row: Request, deployment: BundleDeployment, words: str, facts: dict[str, Any]) -> None:
    code = facts["code"]
    event = Event.RESTORE if _is_to_restore(row, deployment, code) else Event.FAIL
    fresh = {"attempts": 0, "worked_seconds": 0.0, "look_again_at": None} if event == Event.RESTORE else {}
    move(row, event, actor=MACHINE, facts=facts, problem_code=code, problem=words, **fresh)
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
