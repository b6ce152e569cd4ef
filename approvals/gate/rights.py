"""What Kubernetes says of everybody whose word or wish counts, asked again each time (S05, S07, S08, S13, S25)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from django.conf import settings
from django.contrib.auth.models import User

from approvals import access
from approvals.access import Asker, Permission
from approvals.bundle_spec import UpgradePolicy
from approvals.catalogs import bundle_choice
from approvals.clock import database_now
from approvals.gate.facts import Fact, How, Known, ReviewFacts, Right, Unknown
from approvals.ledger.pivots import has_asked, why_unknown
from approvals.models import REQUEST_CHANGES, BundleDeployment, Dismissal, Policy, Request, Review
from approvals.policy import why_vouched_for
from provisioner.rbac import plural_of
from provisioner.values import AccessRequest, Identity, ObjectRef


def reviews_of(request: Request, *, is_vouching: bool) -> tuple[ReviewFacts, ...]:
    """The reviews of the present subject, and earlier ones that still ask for changes, each with what its giver may do
    now.

    `is_vouching`: the right to use the ServiceAccount is asked as well (needs_vouching).
    """
    given = Review.objects.judged(request).select_related("user")
    people = ("policy__author", "policy__editor", "dismissals__user")
    rows = list(given.prefetch_related(*people).order_by("pk"))
    return tuple(
        _of_policy(row, row.policy, request, is_vouching) if row.policy else _of_person(row, request, is_vouching)
        for row in rows
    )


def requesters_of(request: Request, reads: Iterable[ObjectRef]) -> tuple[Fact[Right], ...]:
    """Whether every known requester may use the ServiceAccount, and get what the spec names in the cluster.

    Each is asked about as they are known now; by groups that are too old only a no counts.
    """
    found: list[Fact[Right]] = []
    wanted = list(reads)
    for asker in askers_of(request):
        found.append(fact_of(access.may_use_account(asker.identity, request)))
        for ref in wanted:
            question = AccessRequest("get", ref.group, plural_of(ref.kind), namespace=ref.namespace, name=ref.name)
            found.append(fact_of(access.ask_for(asker.identity, request.deployment.cluster, question, fresh=True)))
    return tuple(found)


def askers_of(request: Request) -> list[Asker]:
    now = database_now()
    return [access.asker_of(one, request, now=now) for one in request.requesters]


def last_writer_of(request: Request) -> Asker:
    """Who wrote the spec last, as they are known now: sources are read as they (S08)."""
    return access.asker_of(access.last_writer_of(request), request, now=database_now())


def needs_vouching(request: Request) -> bool:
    """Whether an approver must hold the right to use the ServiceAccount, because nobody's who asked can be asked."""
    is_old = access.no_longer_current(request)
    return not request.is_requester_known or bool(is_old)


def vouching_left(request: Request, approving: Iterable[User]) -> str:
    """What one of those who approve must be allowed to do, because nobody can say it of who asked; "" where one may.

    For pages: answers may be some seconds old.
    """
    too_old = access.no_longer_current(request) if request.is_requester_known else []
    words = why_vouched_for(
        is_requester_known=request.is_requester_known, too_old=too_old, why_unknown=why_unknown(request)
    )
    known = (access.last_known_of(one, request.deployment.cluster) for one in approving if words)
    has_one = any(access.may_use_account(one, request, fresh=False).allowed for one in known if one)
    return "" if has_one else words


def uses_account(policy: Policy, request: Request) -> Fact[Right]:
    """Whether the policy's own identity may act as the installing ServiceAccount."""
    return fact_of(access.may_use_account(access.policy_identity(policy), request))


def objection_to(policy: Policy, request: Request) -> Fact[Right]:
    """Whether this policy's word may count for this request."""
    words = _own_wish(policy, request) or _tightened_policy(request)
    return _known(Right(False, words)) if words else _rights_of(policy, request)


def _tightened_policy(request: Request) -> str:
    """What today's spec says against a policy's word about a bundle that nobody asked for; "" where it says nothing."""
    if not request.is_unattended or not request.bundles:
        return ""
    deployment = BundleDeployment.objects.only("spec").get(pk=request.deployment_id)
    today = deployment.bundle_spec.upgrade_policy
    if today is UpgradePolicy.AUTOMATIC or not bundle_choice.is_unasked_upgrade(request):
        return ""
    return f"upgradePolicy is {today} now, so only people can approve what follows a catalog"


def fact_of(permission: Permission) -> Fact[Right]:
    if not permission.could_ask:
        return Unknown(permission.words, database_now(), How.CLUSTER)
    return _known(Right(permission.allowed, permission.words, permission.rule))


def _known(right: Right) -> Fact[Right]:
    return Known(right, database_now(), How.CLUSTER)


def _of_policy(row: Review, policy: Policy, request: Request, is_vouching: bool) -> ReviewFacts:
    is_in_force = policy.is_active and policy.mode == Policy.Mode.ENFORCE and policy.version == row.policy_version
    decides = objection_to(policy, request) if is_in_force else None
    uses = uses_account(policy, request) if is_in_force and is_vouching else None
    return ReviewFacts(row.pk, row.username, row.decision, True, is_in_force, False, decides=decides, uses_account=uses)


def _of_person(row: Review, request: Request, is_vouching: bool) -> ReviewFacts:
    """A Deny stays, and of an own approval nothing has to be asked."""
    is_approval = row.decision == "Approve"
    facts = ReviewFacts(
        key=row.pk,
        name=row.username,
        decision=row.decision,
        is_policy=False,
        is_in_force=True,
        is_own=is_approval and _is_own(row, request),
        doubt=_doubt_of(row),
        waives=frozenset(one["fingerprint"] for one in row.waives) if is_approval else frozenset(),
    )
    if row.decision == REQUEST_CHANGES:
        return _dismissed(facts, row, request)
    if not is_approval or facts.is_own:
        return facts
    identity = _standing(row, request)
    if isinstance(identity, str):
        return replace(facts, decides=Known(Right(False, identity), database_now(), How.RECORDS))
    deployment = request.deployment
    may_approve = access.ask_for(identity, deployment.cluster, access.approval_of(deployment), fresh=True)
    may_override = access.may_override(identity, deployment, fresh=True) if facts.waives else None
    may_use_account = access.may_use_account(identity, request) if is_vouching else None
    return replace(
        facts,
        decides=fact_of(may_approve),
        overrides=fact_of(may_override) if may_override else None,
        uses_account=fact_of(may_use_account) if may_use_account else None,
    )


def _dismissed(facts: ReviewFacts, row: Review, request: Request) -> ReviewFacts:
    """With whether who dismissed it last may still `override`, and did not ask for the change (S05)."""
    latest = max(row.dismissals.all(), key=lambda one: one.pk, default=None)
    if latest is None:
        return facts
    facts = replace(facts, dismissal_key=latest.pk, dismissed_by=latest.username)
    if _is_own(latest, request):
        return replace(facts, dismissal=_known(Right(False, "they requested this change")))
    identity = _standing(latest, request)
    if isinstance(identity, str):
        return replace(facts, dismissal=_known(Right(False, identity)))
    return replace(facts, dismissal=fact_of(access.may_override(identity, request.deployment, fresh=True)))


def _is_own(row: Review | Dismissal, request: Request) -> bool:
    """Whether an approval or a dismissal is by one of those who asked (S05)."""
    is_allowed = settings.PRATIQUE["SELF_APPROVAL"]
    return not is_allowed and has_asked(request, access.person_who_reviewed(row))


def _doubt_of(row: Review) -> str:
    if not row.may_write or not settings.PRATIQUE["DOUBT_WRITERS"] or settings.PRATIQUE["SELF_APPROVAL"]:
        return ""
    return row.doubt or f"{row.username} may write the BundleDeployment"


def _standing(row: Review | Dismissal, request: Request) -> Identity | str:
    """The identity that the review was given as, with groups that are young enough; else why there is none."""
    if row.user is None:
        return "their account was deleted"
    identity = access.still_known_of(row.user, request.deployment.cluster, now=database_now())
    if identity is None:
        return "their identity and groups have expired: they must sign in again"
    # The same name made again is another person (S01).
    if (identity.username, identity.uid) != (row.username, row.uid):
        return f"their user name is now {identity.username}, but it was {row.username} who said this"
    return "they are a machine account, and those cannot approve" if access.is_machine(identity) else identity


def _own_wish(policy: Policy, request: Request) -> str:
    """Who writes what a policy approves does not have it approve their own change (S05)."""
    if settings.PRATIQUE["SELF_APPROVAL"]:
        return ""
    for name, writer in access.writers_of(policy, request.deployment.cluster):
        if has_asked(request, writer):
            return f"its author or editor {name} requested this change"
    return ""


def _rights_of(policy: Policy, request: Request) -> Fact[Right]:
    """The policy stands on its own identity, which must hold `approve` here now (S13).

    Who wrote it was asked when they saved it: that they leave does not stop it.
    """
    question = access.approval_of(request.deployment)
    own = access.policy_identity(policy)
    return fact_of(access.ask_for(own, request.deployment.cluster, question, fresh=True))
