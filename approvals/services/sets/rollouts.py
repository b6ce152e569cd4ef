"""The order of a change set: who may give it one, and who may let it go on sooner (security-rules.md S50).

To hold a deployment back takes what pausing it takes: `update` on it. Whatever lets a member be applied sooner takes
`approve` on every member that waits, and nobody does it for a change of their own.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, Subquery
from django.utils.crypto import constant_time_compare, salted_hmac

from approvals import access, audit, wake
from approvals.access import Caller
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.deciding.rings import OnFailure, Ring, RingProgress, RolloutMember, parse_rings
from approvals.deciding.rings import Rollout as Order
from approvals.deciding.spec_fields import UnreadableObject
from approvals.errors import InvalidInput, NotAllowed, NotAsExpected, NotFound, NotOpen
from approvals.gate.reviewer_checks import doubt_of
from approvals.ledger import rollouts
from approvals.lifecycle import OPEN
from approvals.locks import for_change, hold
from approvals.models import BundleDeployment, Cluster, Request, RingApproval, Rollout
from approvals.models import RolloutMember as MemberRow
from approvals.selectors.sets import LABEL, NAME
from approvals.services.reviews import check_not_own
from provisioner.api_groups import OWN_GROUP
from provisioner.sentences import some
from provisioner.values import AccessRequest, Identity

MOST_MEMBERS = 500
# Of one person.
MOST_ORDERS = 50
MAX_REASON = 1000
NAMED = 5
# Requests that are read together, each with all that was asked for.
CHUNK = 50
HIDDEN = "the set has members on clusters that you cannot read: ask someone who may approve all members that wait"


@dataclass(frozen=True, slots=True)
class ShownRing:
    """A ring as one reader may see it: `hidden` members are on clusters that they cannot read.

    `has_begun`: every ring before it is through.
    """

    progress: RingProgress
    members: tuple[RolloutMember, ...]
    hidden: int
    has_begun: bool

    @property
    def ring(self) -> Ring:
        return self.progress.ring

    @property
    def version(self) -> str:
        return _version_of(self.progress)


@dataclass(frozen=True, slots=True)
class ShownOrder:
    name: str
    made_by: str
    made_at: datetime
    on_failure: str
    rings: tuple[ShownRing, ...]


def read_order(*, clusters: Collection[Cluster], name: str) -> ShownOrder | None:
    """The order of a set that has members on these clusters; None where there is none."""
    row = _rows(clusters).filter(name=name).first() if NAME.fullmatch(name) else None
    if row is None:
        return None
    now, known = database_now(), {cluster.name for cluster in clusters}
    order = rollouts.read_order(row, now)
    rings, has_begun = list[ShownRing](), True
    for progress in order.progress(now):
        members = tuple(member for member in progress.members if member.cluster in known)
        rings.append(ShownRing(progress, members, len(progress.members) - len(members), has_begun))
        has_begun = has_begun and progress.is_through
    return ShownOrder(row.name, row.made_by, row.made_at, row.on_failure, tuple(rings))


def _rows(clusters: Collection[Cluster]) -> Any:
    there = MemberRow.objects.filter(rollout=OuterRef("pk"), deployment__cluster__in=list(clusters))
    return Rollout.objects.filter(Exists(there), ended_at=None)


def make_order(
    *,
    by: Caller,
    clusters: Collection[Cluster],
    name: str,
    members: Sequence[tuple[str, str]],
    rings: object,
    on_failure: str,
    via: str,
) -> Rollout:
    """Give a set its order. `members` are clusters with names of deployments; without any, those that carry the label
    of the set and have an open request. `rings` are as `parse_rings` reads them.

    Raises InvalidInput, NotFound, NotAllowed, CouldNotAsk and ProofTooOld.
    """
    if not NAME.fullmatch(name):
        raise InvalidInput(f"the name is {name[:100]!r}; expected one that a label can have", field="name")
    if on_failure not in tuple(OnFailure):
        raise InvalidInput(f"it is {on_failure[:40]!r}; expected {' or '.join(OnFailure)}", field="on_failure")
    try:
        parsed = parse_rings(rings)
    except UnreadableObject as exc:
        raise InvalidInput(str(exc), field="rings") from exc
    found = _find_members(clusters, name, members)
    sorted_in = {deployment.pk: _ring_of(deployment, parsed) for deployment in found}
    if empty := [ring.name for position, ring in enumerate(parsed) if position not in sorted_in.values()]:
        raise InvalidInput(
            f"ring {empty[0]} takes none of the deployments: change its clusters or matchLabels", field="rings"
        )
    if on_failure == OnFailure.PUT_BACK:
        keeping = [deployment.name for deployment in found if not deployment.bundle_spec.is_restoring]
        if keeping:
            words = "PutBack needs spec.onFailure: RestorePrevious, which reviewers see, in each deployment"
            raise InvalidInput(f"{words}; it is missing in {some(keeping, NAMED)}", field="on_failure")
    _check_each(by, found, "update")
    try:
        records = [ring.record() for ring in parsed]
        return _keep_order(name, records, on_failure, {one: sorted_in[one.pk] for one in found}, Actor(by.name, via))
    except IntegrityError as exc:
        raise InvalidInput(f"a set {name} with an order exists: choose another name", field="name") from exc


def _find_members(
    clusters: Collection[Cluster], name: str, members: Sequence[tuple[str, str]]
) -> list[BundleDeployment]:
    rows = BundleDeployment.objects.filter(cluster__in=list(clusters), gone_at=None).select_related("cluster")
    if not members:
        is_open = Exists(Request.objects.filter(deployment=OuterRef("pk"), state__in=OPEN))
        found = list(rows.filter(is_open, **{f"labels__{LABEL}": name}).order_by("pk")[: MOST_MEMBERS + 1])
        if not found:
            words = f"no deployment with an open request has the label {LABEL}={name}; name the members"
            raise InvalidInput(words, field="members")
    else:
        wanted = set(members)
        named = rows.filter(name__in={one for _, one in wanted}).order_by("pk")
        found = [row for row in named if (row.cluster.name, row.name) in wanted]
        if missing := sorted(wanted - {(row.cluster.name, row.name) for row in found}):
            words = some(["/".join(one)[:320] for one in missing], NAMED)
            raise NotFound(f"there is no deployment {words} on the clusters that you can read", field="members")
    if len(found) > MOST_MEMBERS:
        raise InvalidInput(f"more than {MOST_MEMBERS} deployments; make several sets", field="members")
    return found


def _ring_of(deployment: BundleDeployment, rings: Sequence[Ring]) -> int:
    cluster = deployment.cluster
    for position, ring in enumerate(rings):
        if ring.takes(cluster.name, cluster.labels):
            return position
    words = f"no ring takes cluster {cluster.name}: add it to one, or add a last ring without clusters and labels"
    raise InvalidInput(words, field="rings")


@transaction.atomic(durable=True)
def _keep_order(
    name: str, rings: list[dict[str, Any]], on_failure: str, members: dict[BundleDeployment, int], actor: Actor
) -> Rollout:
    if Rollout.objects.filter(ended_at=None, made_by=actor.name).count() >= MOST_ORDERS:
        raise InvalidInput(f"{MOST_ORDERS} sets have an order of yours already: end some of them", field="name")
    now = database_now()
    row = Rollout.objects.create(name=name, rings=rings, on_failure=on_failure, made_by=actor.name, made_at=now)
    # In two orders, deployments could wait for each other forever. Under the lock, two orders do not miss each other.
    taken = MemberRow.objects.filter(
        deployment__in=hold(BundleDeployment.objects.filter(pk__in=[deployment.pk for deployment in members])),
        rollout__ended_at=None,
    )
    if other := taken.select_related("rollout", "deployment").order_by("rollout__name", "pk").first():
        words = f"{other.deployment.name} is in the order of set {other.rollout.name}: end that, or take it out there"
        raise InvalidInput(words, field="members")
    asked = Request.objects.filter(deployment=OuterRef("pk")).order_by("-number").values("number")
    current, last = Subquery(asked.filter(state__in=OPEN)[:1]), Subquery(asked[:1])
    rows = BundleDeployment.objects.filter(pk__in=[deployment.pk for deployment in members])
    numbers = rows.annotate(current=current, last=last).values_list("pk", "current", "last")
    first = {key: now_open or (newest or 0) + 1 for key, now_open, newest in numbers}
    MemberRow.objects.bulk_create(
        MemberRow(rollout=row, deployment=deployment, ring=ring, from_number=first[deployment.pk])
        for deployment, ring in members.items()
    )
    for deployment, ring in members.items():
        facts = {"set": name, "ring": ring + 1, "onFailure": on_failure}
        audit.record(verb="set.joined", actor=actor, deployment=deployment, facts=facts)
    wake.rollout(row.pk)
    return row


def approve_ring(
    *, by: Caller, clusters: Collection[Cluster], name: str, ring: str, version: str, reason: str, channel: str
) -> RingApproval:
    """Let what follows this ring begin, as far as people are waited for: soak times count all the same.

    `version` is that of the ring as it was shown (S03). Raises NotFound, NotOpen where the ring is not healthy yet or
    nobody is waited for, NotAsExpected, InvalidInput, and what `_check_may_hasten` raises.
    """
    _check_reason(reason)
    row = _find(clusters, name)
    _check_may_hasten(by, clusters, row)
    with transaction.atomic(durable=True):
        row = _locked(row)
        position, progress = _progress(row, ring)
        if not progress.is_approvable:
            why = progress.words or "nobody is waited for"
            raise NotOpen(f"the ring after {ring} cannot be approved now: {why}")
        if not constant_time_compare(version, _version_of(progress)):
            raise NotAsExpected(f"ring {ring} is not as it was when you read it: read it again")
        now = database_now()
        shown = _seen(progress)
        members = list(row.members.select_related("deployment__cluster"))
        seen = {
            member.deployment.uid: shown[place]
            for member in members
            if (place := (member.deployment.cluster.name, member.deployment.name)) in shown
        }
        approval = RingApproval.objects.create(
            rollout=row,
            ring=position,
            seen=seen,
            user=by.user,
            username=by.name,
            channel=channel,
            reason=reason,
            given_at=now,
        )
        facts = {"set": name, "ring": ring, "reason": reason}
        for member in members:
            if member.ring > position:
                actor = Actor(by.name, channel)
                audit.record(verb="set.ring_approved", actor=actor, deployment=member.deployment, facts=facts)
        wake.rollout(row.pk)
    return approval


def _seen(progress: RingProgress) -> dict[tuple[str, str], int | str]:
    return {(one.cluster, one.name): one.seen for one in progress.members if one.seen is not None}


def _version_of(progress: RingProgress) -> str:
    """Which members of a ring are healthy or left out, and with which requests. It tells nothing of those on clusters
    that somebody cannot read."""
    seen = sorted(_seen(progress).items())
    return salted_hmac("pratique: what is seen of a ring", json.dumps(seen), algorithm="sha256").hexdigest()


def take_out(
    *, by: Caller, clusters: Collection[Cluster], name: str, cluster: str, deployment: str, reason: str, via: str
) -> None:
    """Have the set go on without this deployment, and the deployment without the set."""
    _check_reason(reason)
    row = _find(clusters, name)
    place = {"deployment__cluster__name": cluster, "deployment__name": deployment}
    if not row.members.filter(**place, deployment__cluster__in=list(clusters)).exists():
        raise NotFound(f"{cluster}/{deployment} is not in the order of set {name}"[:400])
    _check_may_hasten(by, clusters, row)
    with transaction.atomic(durable=True):
        row = _locked(row)
        actor = Actor(by.name, via)
        for member in row.members.filter(**place).select_related("deployment__cluster"):
            rollouts.wake_waiting(row)
            member.delete()
            facts = {"set": name, "reason": reason}
            audit.record(verb="set.left", actor=actor, deployment=member.deployment, facts=facts)
        if not row.members.exists():
            _end(row, actor, reason)


def end_order(*, by: Caller, clusters: Collection[Cluster], name: str, reason: str, via: str) -> None:
    """Have every member of the set be applied as soon as it is approved."""
    _check_reason(reason)
    row = _find(clusters, name)
    _check_may_hasten(by, clusters, row)
    with transaction.atomic(durable=True):
        _end(_locked(row), Actor(by.name, via), reason)


def _end(row: Rollout, actor: Actor, reason: str) -> None:
    row.ended_at, row.ended_by = database_now(), actor.name
    row.save(update_fields=["ended_at", "ended_by"])
    rollouts.wake_waiting(row)
    for member in row.members.select_related("deployment__cluster"):
        facts = {"set": row.name, "reason": reason}
        audit.record(verb="set.order_ended", actor=actor, deployment=member.deployment, facts=facts)


def _find(clusters: Collection[Cluster], name: str) -> Rollout:
    row: Rollout | None = _rows(clusters).filter(name=name).first() if NAME.fullmatch(name) else None
    if row is None:
        raise NotFound(f"there is no set {name[:63]} with an order on the clusters that you can read")
    return row


def _locked(row: Rollout) -> Rollout:
    found = for_change(Rollout.objects.filter(pk=row.pk, ended_at=None)).first()
    if found is None:
        raise NotOpen(f"the order of set {row.name} has ended")
    return found


def _progress(row: Rollout, ring: str) -> tuple[int, RingProgress]:
    now = database_now()
    order: Order = rollouts.read_order(row, now)
    for position, progress in enumerate(order.progress(now)):
        if progress.ring.name == ring:
            return position, progress
    raise InvalidInput(f"set {row.name} has no ring {ring[:63]}", field="ring")


def _check_reason(reason: str) -> None:
    if not reason.strip() or len(reason) > MAX_REASON:
        raise InvalidInput(f"give a reason of at most {MAX_REASON} characters: it is kept in the audit", field="reason")


def _check_may_hasten(by: Caller, clusters: Collection[Cluster], row: Rollout) -> None:
    """Raise unless this person may `approve` every member that waits, and has asked for none of them (S05).

    Of members on other clusters nothing is told but that there are some (S02). A silent cluster cannot be asked, and is
    not waited for. Where nothing waits, all members count.
    """
    now, known = database_now(), {cluster.pk for cluster in clusters}
    members = list(row.members.select_related("deployment__cluster"))
    requests = rollouts.latest_requests(members)
    states = {member.pk: rollouts.state_of(member, requests.get(member.pk), now) for member in members}
    answering = [one for one in members if not rollouts.is_silent(one.deployment.cluster, now)]
    there = [one for one in answering if not one.deployment.gone_at]
    waiting = [member for member in there if states[member.pk].is_waiting] or there
    if not waiting:
        words = "no member of the set is on a cluster that responds"
        raise NotAllowed(f"Pratique cannot check whether you may do this: {words}")
    if any(member.deployment.cluster_id not in known for member in waiting):
        raise NotAllowed(HIDDEN)
    identities = _check_each(by, [member.deployment for member in waiting], "approve")
    # And who asked to delete one may not let the others go on without it.
    deletes = Q(deployment__in=[one.deployment_id for one in waiting], purpose=Request.Purpose.DELETE, state__in=OPEN)
    asked = Request.objects.filter(Q(pk__in=[requests[one.pk].pk for one in waiting if one.pk in requests]) | deletes)
    for request in asked.select_related("deployment__cluster").order_by("pk").iterator(chunk_size=CHUNK):
        deployment = request.deployment
        doubt, person = doubt_of(identities[deployment.cluster_id], request), access.person_of(by, deployment.cluster)
        check_not_own(request, person, doubt, f"do this for {deployment.name}")


def _check_each(by: Caller, deployments: Iterable[BundleDeployment], verb: str) -> dict[int, Identity]:
    """Ask Kubernetes about each, all at once; the identities by the key of the cluster. A machine approves nothing."""
    identities, questions = dict[int, Identity](), list[access.Question]()
    for deployment in deployments:
        cluster = deployment.cluster
        if cluster.pk not in identities:
            identities[cluster.pk] = access.acting_as(by, cluster)
            if verb == "approve" and access.is_machine(identities[cluster.pk]):
                raise NotAllowed("a machine account cannot do this")
        question = AccessRequest(verb, OWN_GROUP, "bundledeployments", name=deployment.name)
        questions.append(access.Question(identities[cluster.pk], cluster, question))
    for answer in access.ask_all(questions, fresh=True):
        answer.check()
    return identities
