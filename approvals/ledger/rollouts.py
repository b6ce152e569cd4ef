"""How the members of an ordered set stand, by our records: what the gate, the page and the sweep go by.

Nothing is kept that follows from other rows. So nothing of a set can be half written: who looks, reads how every member
stands now.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.core.cache import cache
from django.db import transaction
from django.db.models import OuterRef, Q, Subquery

from approvals import audit, refusals, wake
from approvals.audit import MACHINE
from approvals.clock import database_now
from approvals.deciding.rings import FAILED, MemberState, OnFailure, SkipReason, parse_rings
from approvals.deciding.rings import Rollout as Order
from approvals.deciding.rings import RolloutMember as Member
from approvals.errors import Awaits
from approvals.ledger import retries
from approvals.lifecycle import UNDECIDED, State
from approvals.locks import for_change
from approvals.models import BundleDeployment, Cluster, Request, Revision, Rollout, RolloutMember
from provisioner.values import HealthState

# A cluster with a problem counts as silent when nobody has reached it for so long.
SILENT_AFTER = timedelta(minutes=10)
QUIET_SECONDS = 5
LEFT_SECONDS = 600
# At each sweep: one of 500 members takes a fifth of a second.
A_SWEEP = 20
# Nobody is asked for these: they take away what was applied, or restore what was applied before.
NOT_HELD = (Request.Purpose.DELETE, Request.Purpose.ROLLBACK)
_WIDE = (
    "spec",
    "pins",
    "chart_values",
    "spec_values",
    "lookups",
    "patches",
    "made_values",
    "approval_rules",
    "bundles",
)
# Nothing of these has reached the cluster. What was begun is waited for, silent or paused: it may be what broke it.
_UNWRITTEN = (MemberState.UNDECIDED, MemberState.APPROVED, MemberState.ENDED)


def orders_of(request: Request) -> tuple[Order, ...]:
    """The orders that say when this request is applied: of most requests none."""
    if request.purpose in NOT_HELD:
        return ()
    of_it = Q(members__deployment=request.deployment_id, members__from_number__lte=request.number)
    found, now = Rollout.objects.filter(of_it, ended_at=None).order_by("name"), database_now()
    return tuple(read_order(row, now) for row in found)


def read_order(row: Rollout, now: datetime) -> Order:
    rows = row.members.select_related("deployment__cluster").order_by("ring", "deployment__cluster__name", "pk")
    # No credentials are decrypted for this.
    members = list(rows.defer("deployment__cluster__kubeconfig", "deployment__spec"))
    requests = latest_requests(members)
    progress = [state_of(member, requests.get(member.pk), now) for member in members]
    known = {member.deployment.uid: one for member, one in zip(members, progress, strict=True)}
    approved = {
        approval.ring
        for approval in row.ring_approvals.all()
        if all(one.is_as_seen(approval.seen.get(uid)) for uid, one in known.items() if one.ring == approval.ring)
    }
    return Order(row.name, parse_rings(row.rings), tuple(progress), frozenset(approved), OnFailure(row.on_failure))


def latest_requests(members: Iterable[RolloutMember]) -> dict[int, Request]:
    """The newest request of each member since the set has its order, by the member's key: what was to run, also while
    somebody asks for its deletion."""
    newer = Request.objects.filter(deployment=OuterRef("deployment"), number__gte=OuterRef("from_number"))
    newer = newer.exclude(purpose=Request.Purpose.DELETE)
    latest = newer.order_by("-number").values("pk")[:1]
    keys = RolloutMember.objects.filter(pk__in=[member.pk for member in members]).annotate(latest=Subquery(latest))
    found = dict(keys.values_list("pk", "latest"))
    rows = Request.objects.filter(pk__in=[key for key in found.values() if key]).select_related("revision")
    requests = {row.pk: row for row in rows.defer(*_WIDE)}
    return {member: requests[key] for member, key in found.items() if key in requests}


def state_of(member: RolloutMember, request: Request | None, now: datetime) -> Member:
    deployment = member.deployment
    state, since, why = MemberState.UNDECIDED, None, ""
    if request is None:
        why = "it has no request yet"
    else:
        since = request.changed_at
        state = _state_of(deployment, request)
        revision = _revision_of(request)
        if state is MemberState.HEALTHY and revision:
            since = deployment.healthy_since or revision.healthy_at
        why = member.kept_because if state in (MemberState.HEALTHY, MemberState.SETTLING) else ""
    skipped = why_skipped(deployment, now)
    if skipped and state in (*_UNWRITTEN, MemberState.AT_WORK, MemberState.SETTLING):
        why = skipped
    # Who asks for the deletion of what failed does not undo that it did.
    is_there = not deployment.gone_at and not deployment.cluster.removed_at
    is_gone = skipped is SkipReason.DELETED and not (is_there and state in FAILED)
    if skipped and (is_gone or state in _UNWRITTEN):
        state, why = MemberState.SKIPPED, skipped
    else:
        skipped = None
    number = request.number if request else 0
    return Member(deployment.cluster.name, deployment.name, member.ring, state, number, since, why, skipped)


def _state_of(deployment: BundleDeployment, request: Request) -> MemberState:
    revision = _revision_of(request)
    if request.state == State.APPLIED:
        if request.purpose == Request.Purpose.ROLLBACK or (revision and revision.overdue_at):
            return MemberState.FAILED
        return MemberState.HEALTHY if deployment.health == HealthState.CURRENT else MemberState.SETTLING
    if request.state in UNDECIDED:
        return MemberState.UNDECIDED
    if request.state == State.APPROVED:
        return MemberState.APPROVED
    if request.state == State.APPLYING:
        return MemberState.AT_WORK
    if request.state == State.RESTORING:
        return MemberState.RESTORING
    # What ended before anything was written has not failed.
    return MemberState.FAILED if request.state == State.FAILED and revision else MemberState.ENDED


def _revision_of(request: Request) -> Revision | None:
    found: Revision | None = getattr(request, "revision", None)
    return found


def why_skipped(deployment: BundleDeployment, now: datetime) -> SkipReason | None:
    """Why nobody waits for this deployment; None where it can be waited for."""
    if deployment.gone_at or deployment.deletion_requested_at or deployment.cluster.removed_at:
        return SkipReason.DELETED
    if is_silent(deployment.cluster, now):
        return SkipReason.SILENT
    return SkipReason.PAUSED if deployment.is_paused else None


def is_silent(cluster: Cluster, now: datetime) -> bool:
    has_answered = cluster.reached_at is not None and now - cluster.reached_at <= SILENT_AFTER
    return not has_answered and bool(refusals.problem_of(cluster, now))


def rollouts_to_sweep() -> list[int]:
    """A few of the open orders: first those that `wake_for` left to the sweep, then some of the others by chance."""
    known = list(Rollout.objects.filter(ended_at=None).order_by("pk").values_list("pk", flat=True))
    left = set(cache.get_many([f"rollout-left:{pk}" for pk in known]))
    drawn = random.sample(known, len(known))
    chosen = sorted(drawn, key=lambda pk: f"rollout-left:{pk}" not in left)[:A_SWEEP]
    cache.delete_many([f"rollout-left:{pk}" for pk in chosen])
    return chosen


def wake_for(deployment_id: int) -> None:
    """Have the sets of a deployment looked at, each once in QUIET_SECONDS: what comes in between is left to the
    sweep."""
    rows = RolloutMember.objects.filter(deployment=deployment_id, rollout__ended_at=None)
    for pk in rows.order_by("rollout").values_list("rollout", flat=True):
        if cache.add(f"rollout:{pk}", True, QUIET_SECONDS):
            wake.rollout(pk)
        else:
            cache.set(f"rollout-left:{pk}", True, LEFT_SECONDS)


def wake_free(row: Rollout, order: Order, now: datetime) -> None:
    """Have those members looked at that wait for the set, and which nothing of it holds any more."""
    holds = order.holds(now)
    free = [
        member.deployment_id
        for member in row.members.select_related("deployment__cluster").defer("deployment__cluster__kubeconfig")
        if (member.deployment.cluster.name, member.deployment.name) not in holds
    ]
    waiting = Request.objects.filter(deployment__in=free, state=State.APPROVED, awaits=Awaits.RING)
    later = waiting.filter(look_again_at__gt=now)
    retries.look(later.order_by("pk").values_list("pk", flat=True), now)


def wake_waiting(row: Rollout) -> None:
    """Have all members looked at that wait for the set, whatever they wait for: its order is another one."""
    deployments = row.members.values_list("deployment", flat=True)
    waiting = Request.objects.filter(deployment__in=list(deployments), state=State.APPROVED, awaits=Awaits.RING)
    for pk in waiting.order_by("pk").values_list("pk", flat=True):
        Request.objects.filter(pk=pk).update(look_again_at=None)
        wake.request(pk)


@transaction.atomic(durable=True)
def end_done(rollout_id: int) -> None:
    """End the order of a set that waits for nothing more: what comes next is another change."""
    row = for_change(Rollout.objects.filter(pk=rollout_id, ended_at=None)).first()
    now = database_now()
    if row is not None and read_order(row, now).is_done:
        row.ended_at, row.ended_by = now, MACHINE.name
        row.save(update_fields=["ended_at", "ended_by"])
        audit.record(verb="set.done", actor=MACHINE, facts={"set": row.name})


def is_put_back(request: Request) -> bool:
    """Whether the revision before it is restored for the set, however healthy this one is."""
    members = RolloutMember.objects.filter(deployment=request.deployment_id, put_back_number=request.number)
    return members.exists()
