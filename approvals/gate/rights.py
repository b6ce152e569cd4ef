"""What Kubernetes says of everybody whose word or wish counts, asked anew each time (S05, S07, S08, S13, S25)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.conf import settings
from django.utils import timezone

from approvals import access
from approvals.access import Permission
from approvals.gate.facts import Fact, How, Known, ReviewFacts, Right, Unknown
from approvals.ledger.pivots import has_asked
from approvals.models import Policy, Request, Review
from provisioner.values import AccessRequest, Identity, ObjectRef


def reviews_of(request: Request) -> tuple[ReviewFacts, ...]:
    """The reviews of the present subject, each with what its giver may do now."""
    given = request.reviews.filter(round=request.round, subject_digest=request.subject_digest)
    rows = given.select_related("user").prefetch_related("policy__author", "policy__editor").order_by("pk")
    return tuple(_of_policy(row, row.policy, request) if row.policy else _of_person(row, request) for row in rows)


def requesters_of(request: Request, reads: Iterable[ObjectRef]) -> tuple[Fact[Right], ...]:
    """Whether every known requester may use the ServiceAccount, and get what the sources name in the cluster."""
    found: list[Fact[Right]] = []
    wanted = list(reads)
    for person in request.requesters:
        identity = identity_in(person)
        found.append(fact_of(access.may_use_account(identity, request)))
        for ref in wanted:
            question = AccessRequest("get", resource=f"{ref.kind.lower()}s", namespace=ref.namespace, name=ref.name)
            found.append(fact_of(access.ask_for(identity, request.deployment.cluster, question, fresh=True)))
    return tuple(found)


def identity_in(person: Mapping[str, Any]) -> Identity:
    """Who asked, as a request's row has them."""
    return Identity(person["username"], tuple(person["groups"]), person["uid"])


def objection_to(policy: Policy, request: Request) -> Fact[Right]:
    """Whether this policy's word may count for this request."""
    own = _own_wish(policy, request)
    return _known(Right(False, own)) if own else _rights_of(policy, request)


def fact_of(permission: Permission) -> Fact[Right]:
    if not permission.could_ask:
        return Unknown(permission.words, timezone.now(), How.CLUSTER)
    return _known(Right(permission.allowed, permission.words, permission.rule))


def _known(right: Right) -> Fact[Right]:
    return Known(right, timezone.now(), How.CLUSTER)


def _of_policy(row: Review, policy: Policy, request: Request) -> ReviewFacts:
    is_in_force = policy.is_active and policy.mode == Policy.Mode.ENFORCE and policy.version == row.policy_version
    decides = objection_to(policy, request) if is_in_force else None
    return ReviewFacts(row.pk, row.username, row.decision, True, is_in_force, False, False, decides)


def _of_person(row: Review, request: Request) -> ReviewFacts:
    is_approval = row.decision == "Approve"
    is_own = is_approval and _is_own(row, request)
    standing = _standing(row, request) if is_approval and not is_own else None
    is_asked = isinstance(standing, Identity)
    waives = frozenset(one["fingerprint"] for one in row.waives)
    return ReviewFacts(
        key=row.pk,
        name=row.username,
        decision=row.decision,
        is_policy=False,
        is_in_force=True,
        is_own=is_own,
        may_write=_is_doubted(row),
        decides=_decides(standing, request),
        uses_account=_uses_account(standing, request) if is_asked and not request.is_requester_known else None,
        overrides=_overrides(standing, request) if is_asked and waives else None,
        waives=waives if is_approval else frozenset(),
    )


def _is_own(row: Review, request: Request) -> bool:
    """Whether an approval is by one of those who asked (S05)."""
    is_allowed = settings.PRATIQUE["SELF_APPROVAL"]
    return not is_allowed and has_asked(request, user_id=row.user_id, username=row.username)


def _is_doubted(row: Review) -> bool:
    return row.may_write and settings.PRATIQUE["DOUBT_WRITERS"] and not settings.PRATIQUE["SELF_APPROVAL"]


def _standing(row: Review, request: Request) -> Identity | str:
    """The identity that the review was given as, with groups that are young enough; else why there is none."""
    if row.user is None:
        return "their account here is gone"
    identity = access.still_known_of(row.user, request.deployment.cluster, now=timezone.now())
    if identity is None:
        return "their identity and groups were proved too long ago, or count no longer: they have to sign in again"
    # The same name made again is another person (S01).
    if (identity.username, identity.uid) != (row.username, row.uid):
        return f"they are {identity.username} by now, and gave it as {row.username}"
    return "they are a machine, and those do not vote" if access.is_machine(identity) else identity


def _decides(standing: Identity | str | None, request: Request) -> Fact[Right] | None:
    if standing is None or isinstance(standing, str):
        return None if standing is None else Known(Right(False, standing), timezone.now(), How.RECORDS)
    deployment = request.deployment
    return fact_of(access.ask_for(standing, deployment.cluster, access.approval_of(deployment), fresh=True))


def _uses_account(standing: Identity | str | None, request: Request) -> Fact[Right]:
    assert isinstance(standing, Identity)
    return fact_of(access.may_use_account(standing, request))


def _overrides(standing: Identity | str | None, request: Request) -> Fact[Right]:
    assert isinstance(standing, Identity)
    return fact_of(access.may_override(standing, request.deployment, fresh=True))


def _own_wish(policy: Policy, request: Request) -> str:
    """Who writes what a policy approves does not have it approve their own change (S05)."""
    if settings.PRATIQUE["SELF_APPROVAL"]:
        return ""
    for person in {policy.author, policy.editor}:
        identity = access.last_known_of(person, request.deployment.cluster)
        if has_asked(request, user_id=person.pk, username=identity.username if identity else ""):
            return f"its author or editor {person.get_username()} asked for this change"
    return ""


def _rights_of(policy: Policy, request: Request) -> Fact[Right]:
    """The policy itself and both people behind it must hold `approve` here (S13)."""
    cluster, question = request.deployment.cluster, access.approval_of(request.deployment)
    own = access.ask_for(access.policy_identity(policy), cluster, question, fresh=True)
    if not own.allowed:
        return fact_of(own)
    for person in {policy.author, policy.editor}:
        identity = access.last_known_of(person, cluster)
        if identity is None:
            return _known(Right(False, f"its author or editor {person.get_username()} is nobody on cluster {cluster}"))
        if access.is_machine(identity):
            words = f"its author or editor {identity.username} is a machine, and those do not vote"
            return _known(Right(False, words))
        permission = access.ask_for(identity, cluster, question, fresh=True)
        if not permission.allowed and permission.could_ask:
            words = f"its author or editor {person.get_username()} may not: {permission.words}"
            return _known(Right(False, words))
        if not permission.allowed:
            return fact_of(permission)
    return fact_of(own)
