"""RESTORING → FAILED: the content of the revision before is restored, where applying failed midway or came to nothing
that was healthy in time.

What is written was approved: that content when it was applied, and putting it back with `spec.onFailure` of the request
that failed. What nobody approved is not done here: nothing is replaced or adopted, and nothing is deleted that holds
data or other objects, or that was adopted (security-rules.md S16).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from django.db import transaction

from approvals import audit, gate, store
from approvals.access.port import connect
from approvals.audit import MACHINE
from approvals.catalogs import followed_packages
from approvals.errors import LostClaim
from approvals.gate import Back, reader
from approvals.gate.plan_facts import public_words
from approvals.gate.plan_options import owned, plan_options
from approvals.ledger import claims, moves, pivots, strays
from approvals.ledger.moves import both_locked, move
from approvals.lifecycle import Event, State
from approvals.models import AuditEntry, BundleDeployment, Outcome, Report, Request, Revision
from approvals.steps.apply import apply_seconds, close
from approvals.steps.records.approved_plan import approved_plan
from approvals.steps.records.inventory import DatabaseInventory, owner_of
from approvals.steps.records.notes import Notes, words_of
from provisioner import pipeline
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.plan.content_plan import plan_digest
from provisioner.errors import PratiqueError, PreconditionFailed
from provisioner.retention import STATEFUL_SET, left_out, scaling_words, takes_claims_along
from provisioner.values import Action, Content, GroupKind, HookMoment, ObjectIdentity, Plan, PlannedAction
from provisioner.values import ObjectOutcome as Done

# With these go objects or data that the revision to be restored never knew.
KEPT = frozenset(
    {
        GroupKind("", "Namespace"),
        GroupKind("", "PersistentVolume"),
        GroupKind("", "PersistentVolumeClaim"),
        GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"),
    }
)

# They ran when that revision was applied.
NO_HOOKS: frozenset[HookMoment] = frozenset()


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """The revision that is restored, with its content as it was stored, and the report of the one that failed."""

    revision: Revision
    content: Content
    reviewed: Report


def run(request: Request, worker: str) -> None:
    api = connect(request.deployment.cluster)
    gate.require(request, reader.meeting(request, api))
    target = _target_of(request)
    _check(request, target, api, worker)
    plan = _plan(request, target, api)
    if _begin(request, target, worker):
        _finish(request, target, _apply(request, target, plan, api, worker))


@transaction.atomic(durable=True)
def give_up(request: Request, error: PratiqueError) -> None:
    """It cannot be restored: both failures are kept, and what is wished for now comes next."""
    deployment, row = both_locked(request)
    if row.state == State.RESTORING:
        claims.check_same_holder(row, request)
        followed_packages.ask_soon(deployment)
        words = f"the previous revision could not be restored: {error}"
        _end(row, deployment, words, {"code": error.code}, moves.remedy_of(error, deployment.name))


def without_what_is_kept(plan: Plan, adopted: Collection[ObjectIdentity]) -> Plan:
    """`plan` without the deletions that only people acknowledge; those objects stay, and stay ours.

    So does what says that it is to be kept: the next try of the revision that failed may want it.

    `adopted` are those that were somebody's before the revision that failed.
    """

    def is_kept(one: PlannedAction) -> bool:
        is_asked = one.ref.identity in adopted or _takes_data_along(one)
        return one.action is Action.ORPHAN or (one.action is Action.DELETE and is_asked)

    actions = tuple(one for one in plan.actions if not is_kept(one))
    return Plan(actions, plan_digest(actions))


def _takes_data_along(planned: PlannedAction) -> bool:
    """Also of a StatefulSet whose claims go with it: of one that nobody could look at, that is not known."""
    if planned.ref.group_kind == STATEFUL_SET:
        return planned.before is None or takes_claims_along(planned.before)
    return planned.ref.group_kind in KEPT


def _scaled_down(planned: PlannedAction) -> str:
    """That an update deletes claims, in words; "" where it does not."""
    is_one = planned.ref.group_kind == STATEFUL_SET and planned.action is Action.UPDATE
    if not is_one or planned.before is None or planned.after is None:
        return ""
    return scaling_words(planned.ref, left_out(planned.before, planned.after))


def _target_of(request: Request) -> RestoreTarget:
    revision = Revision.objects.filter(pk=request.from_revision_id or 0).select_related("content", "request").first()
    if revision is None:
        raise PreconditionFailed("there is no earlier revision")
    return RestoreTarget(revision, store.get(revision.content), gate.reviewed_report(request))


def _plan(request: Request, target: RestoreTarget, api: Api) -> Plan:
    """What has to be done; raises PreconditionFailed where that is more than may be done without a review."""
    assert request.content is not None  # a database constraint: nothing is applied without a subject
    planned = pipeline.plan_again(
        api,
        target.content,
        previous=store.get(request.content),
        inventory=owned(request.deployment),
        as_account=target.revision.request.bundle_spec.installer,
        options=replace(plan_options(target.revision.request), moments=NO_HOOKS),
    )
    adopted = {one.ref.identity for one in approved_plan(request).actions if one.action is Action.ADOPT}
    plan = without_what_is_kept(planned, adopted)
    for one in plan.actions:
        check_may_be_done(one)
    return plan


def check_may_be_done(planned: PlannedAction) -> None:
    """Raise PreconditionFailed for what takes a review, or cannot be done at all."""
    if planned.problem or planned.action in (Action.REPLACE, Action.ADOPT):
        needed = f"it would have to be {planned.action}d, which needs a review: request a rollback instead"
        raise PreconditionFailed(f"{planned.ref}: {public_words(planned) or needed}")
    if lost := _scaled_down(planned):
        raise PreconditionFailed(f"{lost}: that needs a review: request a rollback instead")


def _apply(request: Request, target: RestoreTarget, plan: Plan, api: Api, worker: str) -> list[Done]:
    """What failed of it, if anything."""
    notes = Notes(request, partial(claims.renew, request.pk, worker), Outcome.Step.RESTORE)
    outcomes = pipeline.deploy(
        api.acting_as(target.revision.request.bundle_spec.installer).guarded(claims.sure_sending(worker)),
        target.content,
        plan,
        inventory=DatabaseInventory(
            request.deployment, target.revision, partial(claims.check_held, request.pk, worker)
        ),
        deadline_seconds=apply_seconds(target.revision.request.bundle_spec) - request.worked_seconds,
        before_phase=partial(_begin_phase, notes, partial(_check, request, target, api, worker)),
        before_wait=lambda _: notes.write(),
        while_waiting=partial(notes.pulse, partial(_check, request, target, api, worker)),
        checks=target.revision.request.bundle_spec.health_checks(),
        owner=owner_of(target.revision),
        moments=NO_HOOKS,
    )
    return notes.keep(outcomes)


def _begin_phase(notes: Notes, check: Callable[[], None], _: str) -> None:
    with notes.off_the_clock():
        notes.go_on()
        check()


def _check(request: Request, target: RestoreTarget, api: Api, worker: str) -> None:
    """Before each phase (S25): still ours to do, that revision not revoked (S16), its account, not paused, and the
    approval and every guard stand. What waits for people to change that ends where they wish for something else.
    """
    if not claims.renew(request.pk, worker):
        raise LostClaim
    gate.require(request, reader.restoring(request, api, Back(target.revision, target.reviewed)))


@transaction.atomic(durable=True)
def _begin(request: Request, target: RestoreTarget, worker: str) -> bool:
    """From the first write on it is the revision before that counts as running, as after an apply that failed midway.

    False where the newer one has become healthy before that: then it stays. Raises Busy while objects of the newer one
    are being restored or created.
    """
    claims.hold_off_drift(request.deployment_id)
    deployment, row = both_locked(request)
    claims.check_held(request.pk, worker)
    if row.revision.state != Revision.State.ACTIVE:
        return True
    if row.revision.healthy_at:
        followed_packages.ask_soon(deployment)
        move(row, Event.FINISH, actor=MACHINE, facts={"healthy": True}, problem="", problem_code="")
        Revision.objects.filter(request=row).update(message="")
        pivots.follow_up(deployment)
        return False
    close(row, Revision.State.FAILED, row.revision.message)
    Revision.objects.filter(pk=target.revision.pk).update(state=Revision.State.ACTIVE)
    facts = {"active_revision": target.revision, "health": "", "health_message": ""}
    BundleDeployment.objects.filter(pk=row.deployment_id).update(**facts)
    claims.pardon(row.deployment_id)
    return True


@transaction.atomic(durable=True)
def _finish(request: Request, target: RestoreTarget, failed: list[Done]) -> None:
    deployment, row = both_locked(request)
    if row.state != State.RESTORING:
        return
    claims.check_same_holder(row, request)
    followed_packages.ask_soon(deployment)
    number = target.revision.number
    if failed:
        words = f"revision {number} could not be fully restored: {words_of(failed)}"
        _end(row, deployment, words, {"failed": len(failed)})
        return
    audit.record(verb="revision.restored", actor=MACHINE, request=row, facts={"revision": number})
    _end(row, deployment, f"revision {number} was restored", {"restored": number})


def _end(row: Request, deployment: BundleDeployment, words: str, facts: dict[str, Any], remedy: str = "") -> None:
    """`remedy` is of what kept it from being restored; what can be done about the first failure is told as well."""
    # Of what failed first: the request's own words and code may be about something that was waited for since.
    problem, begun = f"{row.revision.message}; {words}", _begun(row)
    known = dict.fromkeys(one for one in (str(begun.get("remedy") or ""), remedy) if one)
    said = {"problem": problem, "problem_code": str(begun.get("code") or row.problem_code), "remedy": " ".join(known)}
    move(row, Event.FAIL, actor=MACHINE, facts={**facts, "why": problem}, **said)
    Revision.objects.filter(request=row).update(message=problem)
    strays.look_soon(deployment.pk)
    pivots.follow_up(deployment)


def _begun(request: Request) -> dict[str, Any]:
    """Why applying failed, as it was written down when this began."""
    begun = AuditEntry.objects.filter(request_uid=str(request.uid), verb=f"request.{Event.RESTORE}")
    return begun.order_by("number").values_list("facts", flat=True).last() or {}
