"""RESTORING → FAILED: the content of the revision before is restored, where applying failed midway or came to nothing
that was healthy in time.

What is written was approved: that content when it was applied, and putting it back with `spec.onFailure` of the request
that failed. What nobody approved is not done here: nothing is replaced or adopted, and nothing is deleted that holds
data or other objects, or that was adopted (security-rules.md S16).

Here it is also decided whether the one before follows a revision that is not healthy in time (APPLIED → RESTORING).
"""

from __future__ import annotations

from collections.abc import Collection
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
from approvals.ledger import claims, moves, pivots, rollouts, strays
from approvals.ledger.moves import both_locked, locked, move
from approvals.lifecycle import OPEN, Event, State
from approvals.models import AuditEntry, BundleDeployment, Outcome, Report, Request, Revision
from approvals.selectors import lists
from approvals.steps.apply import apply_seconds, approved_plan, close
from approvals.steps.records.inventory import DatabaseInventory, owner_of
from approvals.steps.records.notes import Notes, words_of
from provisioner import pipeline
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.plan.planned_actions import plan_digest
from provisioner.errors import PratiqueError, PreconditionFailed
from provisioner.retention import STATEFUL_SET, left_out, scaling_words, takes_claims_along
from provisioner.values import Action, Content, GroupKind, HookMoment, JsonObject, ObjectIdentity, Plan, PlannedAction
from provisioner.values import ObjectOutcome as Done

CODE = "progress-deadline-exceeded"
# The same as the reason of a condition.
OVERDUE = "ProgressDeadlineExceeded"
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
    revision = Revision.objects.filter(pk=request.from_revision_id or 0).select_related("content", "request").first()
    if revision is None:
        raise PreconditionFailed("there is no earlier revision")
    target = RestoreTarget(revision, store.get(revision.content), gate.reviewed_report(request))
    _require_restore(request, target, api, worker)
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

    def is_kept(planned: PlannedAction) -> bool:
        is_asked = planned.ref.identity in adopted or takes_data_along(planned.ref.group_kind, planned.before)
        return planned.action is Action.ORPHAN or (planned.action is Action.DELETE and is_asked)

    actions = tuple(planned for planned in plan.actions if not is_kept(planned))
    return Plan(actions, plan_digest(actions))


def takes_data_along(kind: GroupKind, live: JsonObject | None) -> bool:
    """Whether other objects or data go with an object of this kind that is deleted. Of a StatefulSet its claims may:
    of one that nobody could look at, that is not known.
    """
    if kind == STATEFUL_SET:
        return live is None or takes_claims_along(live)
    return kind in KEPT


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
    adopted = {action.ref.identity for action in approved_plan(request).actions if action.action is Action.ADOPT}
    plan = without_what_is_kept(planned, adopted)
    for action in plan.actions:
        check_may_be_done(action)
    return plan


def check_may_be_done(planned: PlannedAction) -> None:
    """Raise PreconditionFailed for what takes a review, or cannot be done at all."""
    if planned.problem or planned.action in (Action.REPLACE, Action.ADOPT):
        needed = f"it would have to be {planned.action}d, which needs a review: request a rollback instead"
        raise PreconditionFailed(f"{planned.ref}: {public_words(planned) or needed}")
    is_update = planned.ref.group_kind == STATEFUL_SET and planned.action is Action.UPDATE
    if not is_update or planned.before is None or planned.after is None:
        return
    # Fewer replicas may delete claims.
    if lost := scaling_words(planned.ref, left_out(planned.before, planned.after)):
        raise PreconditionFailed(f"{lost}: that needs a review: request a rollback instead")


def _apply(request: Request, target: RestoreTarget, plan: Plan, api: Api, worker: str) -> list[Done]:
    """What failed of it, if anything."""
    spec, check = target.revision.request.bundle_spec, partial(_require_restore, request, target, api, worker)
    notes = Notes(request, partial(claims.renew, request.pk, worker), Outcome.Step.RESTORE)
    outcomes = pipeline.deploy(
        api.acting_as(spec.installer).guarded(claims.sure_sending(worker)),
        target.content,
        plan,
        inventory=DatabaseInventory(
            request.deployment, target.revision, partial(claims.check_held, request.pk, worker)
        ),
        deadline_seconds=apply_seconds(spec) - request.worked_seconds,
        before_phase=lambda _: notes.begin_phase(check),
        before_wait=lambda _: notes.write(),
        while_waiting=partial(notes.pulse, check),
        checks=spec.health_checks(),
        owner=owner_of(target.revision),
        moments=NO_HOOKS,
    )
    return notes.keep(outcomes)


def _require_restore(request: Request, target: RestoreTarget, api: Api, worker: str) -> None:
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
    if row.revision.healthy_at and not rollouts.is_put_back(row):
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
    # Of what failed first, as it was written down when this began: the request's own words and code may be about
    # something that was waited for since.
    entries = AuditEntry.objects.filter(request_uid=str(row.uid), verb=f"request.{Event.RESTORE}")
    first = entries.order_by("number").values_list("facts", flat=True).last() or {}
    problem = f"{row.revision.message}; {words}"
    move(
        row,
        Event.FAIL,
        actor=MACHINE,
        facts={**facts, "why": problem},
        problem=problem,
        problem_code=str(first.get("code") or row.problem_code),
        remedy=" ".join(dict.fromkeys(filter(None, [str(first.get("remedy") or ""), remedy]))),
    )
    Revision.objects.filter(request=row).update(message=row.problem)
    strays.look_soon(deployment.pk)
    pivots.follow_up(deployment)


@dataclass(frozen=True, slots=True)
class RestoreAnswer:
    """Whether what ran before is restored now, and what people are told of it."""

    is_to_restore: bool
    words: str


@dataclass(frozen=True, slots=True)
class Since:
    """What came after an overdue revision: the open request's number and the newest revision's; 0 where there is none.

    `is_same_wish`: the deployment still asks for what was applied.
    """

    open_request: int
    newest_revision: int
    is_same_wish: bool


def decide_restore(revision: Revision, deployment: BundleDeployment, since: Since) -> RestoreAnswer:
    """What to do about an overdue revision. PURE: rows come in, a value goes out."""
    request = revision.request
    if not request.bundle_spec.is_restoring:
        return RestoreAnswer(False, "nothing is restored automatically: spec.onFailure is Stop")
    if request.from_revision is None:
        return RestoreAnswer(False, "nothing is restored: there is no earlier revision")
    previous = f"revision {request.from_revision.number}"
    revoked = lists.revoked_words(request.from_revision)
    if request.state == State.RESTORING:
        return RestoreAnswer(False, f"{previous} is being restored")
    if request.state == State.FAILED:
        return RestoreAnswer(False, f"{previous} was not restored: request {request.number} says why")
    hindrance = revoked or find_hindrance(revision, deployment, since)
    return RestoreAnswer(
        not hindrance, f"{previous} is not restored: {hindrance}" if hindrance else f"{previous} is restored"
    )


def settle_overdue(revision: Revision, deployment: BundleDeployment, problem: str, *, code: str = CODE) -> str:
    """Have what ran before put back where that is to be, because of `problem`; what people are told of it.

    Needs the deployment's lock; a worker does the rest (`run`).
    """
    still_open = deployment.requests.filter(state__in=OPEN).first()
    newest = deployment.revisions.order_by("-number").first()
    since = Since(
        open_request=still_open.number if still_open else 0,
        newest_revision=newest.number if newest else 0,
        is_same_wish=deployment.options_digest == revision.request.options_digest,
    )
    found = decide_restore(revision, deployment, since)
    if found.is_to_restore:
        row = locked(revision.request_id)
        move(
            row,
            Event.RESTORE,
            actor=MACHINE,
            facts={"revision": revision.number, "code": code, "why": problem},
            problem_code=code,
            problem=problem,
            attempts=0,
            worked_seconds=0.0,
            look_again_at=None,
        )
        # As the move has written it: without the values that nobody may see.
        revision.message = row.problem
        revision.save(update_fields=["message"])
    return found.words


def find_hindrance(revision: Revision, deployment: BundleDeployment, since: Since) -> str:
    """Why the revision before `revision` is not restored now; "" where nothing hinders it. PURE."""
    if deployment.deletion_requested_at or deployment.gone_at:
        return "the deployment is being deleted"
    if since.open_request:
        return f"request {since.open_request} is open"
    if since.newest_revision > revision.number:
        return f"revision {since.newest_revision} was started since then"
    if not since.is_same_wish:
        return "the spec has changed"
    if deployment.is_paused:
        return (
            "the deployment is paused; it is restored when someone resumes the deployment, unless it is healthy by then"
        )
    return ""
