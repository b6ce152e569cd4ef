"""What Kubernetes says of everybody whose word or spec counts, asked again each time (S05, S07, S08, S13, S25)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from django.conf import settings
from django.contrib.auth.models import User

from approvals import access
from approvals.access import Asker, Permission
from approvals.bundle_spec import UpgradePolicy
from approvals.catalogs import bundle_choice
from approvals.clock import database_now
from approvals.deciding.approval_rules import Voter
from approvals.gate.facts import Fact, How, Known, ReviewFacts, Right, Unknown
from approvals.gate.unseen_limits import touches_pratique
from approvals.ledger.pivots import has_requested, why_unknown
from approvals.models import BREAK_GLASS, REQUEST_CHANGES, BundleDeployment, Dismissal, Request, Review
from approvals.policy import why_vouched_for
from approvals.policy.document import LoadedPolicy
from provisioner.rbac import plural_of
from provisioner.values import AccessRequest, Identity, ObjectRef

UNKNOWN_AUTHOR = (
    "nobody can tell who wrote every version of this ApprovalPolicy: have it deleted and created again by someone who "
    "is known, on a page, over REST, or with kubectl while the admission policies pratique-authors are in force"
)


def reviews_of(
    request: Request, policies: Fact[tuple[LoadedPolicy, ...]], *, is_vouching: bool
) -> tuple[ReviewFacts, ...]:
    """The reviews of the present subject, and earlier ones that still ask for changes, each with what its giver may do
    now.

    `is_vouching`: the right to use the ServiceAccount is asked as well (needs_vouching).
    """
    given = Review.objects.judged(request).select_related("user", "policy")
    rows = list(given.prefetch_related("dismissals__user").order_by("pk"))
    loaded = policies if isinstance(policies, Unknown) else {policy.key: policy for policy in policies.value}
    return tuple(
        _read_policy_review(row, loaded, request, is_vouching)
        if row.policy
        else _read_person_review(row, request, is_vouching)
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
    return [access.asker_of(person, request, now=now) for person in request.requesters]


def last_writer_of(request: Request) -> Asker:
    """Who wrote the spec last, as they are known now: sources are read as they (S08)."""
    return access.asker_of(access.last_writer_of(request), request, now=database_now())


def needs_vouching(request: Request) -> bool:
    """Whether an approver must hold the right to use the ServiceAccount, because nobody's who asked can be asked."""
    return not request.is_requester_known or bool(access.no_longer_current(request))


def vouching_left(request: Request, approving: Iterable[User]) -> str:
    """What one of those who approve must be allowed to do, because nobody can say it of who asked; "" where one may.

    For pages: answers may be some seconds old.
    """
    too_old = access.no_longer_current(request) if request.is_requester_known else []
    words = why_vouched_for(
        is_requester_known=request.is_requester_known, too_old=too_old, why_unknown=why_unknown(request)
    )
    for user in approving if words else ():
        identity = access.last_known_of(user, request.deployment.cluster)
        if identity and access.may_use_account(identity, request, fresh=False).allowed:
            return ""
    return words


def uses_account(policy: LoadedPolicy, request: Request) -> Fact[Right]:
    """Whether the policy's own identity may act as the installing ServiceAccount."""
    return fact_of(access.may_use_account(Identity(policy.identity), request))


def objection_to(policy: LoadedPolicy, request: Request) -> Fact[Right]:
    """Whether this policy's word may count for this request.

    Who writes a policy cannot have it approve their own change (S05), and who wrote it has to be known (S46). Where a
    catalog offered the bundle and nobody asked for it, today's spec must still be upgraded automatically. The policy
    acts by its own identity, which must hold `approve` here now (S13): its writers were asked when they saved it, and
    that they leave does not stop it.
    """
    cluster = request.deployment.cluster
    if not policy.is_author_known:
        return _known(Right(False, UNKNOWN_AUTHOR))
    for name, writer in () if settings.PRATIQUE["SELF_APPROVAL"] else access.writers_of(policy, cluster):
        if has_requested(request, writer):
            return _known(Right(False, f"its author or editor {name} requested this change"))
    if request.is_unattended and request.bundles:
        today = BundleDeployment.objects.only("spec").get(pk=request.deployment_id).bundle_spec.upgrade_policy
        if today is not UpgradePolicy.AUTOMATIC and bundle_choice.is_unasked_upgrade(request):
            words = f"upgradePolicy is {today} now, so only people can approve what follows a catalog"
            return _known(Right(False, words))
    question = access.approval_of(request.deployment)
    return fact_of(access.ask_for(Identity(policy.identity), cluster, question, fresh=True))


def fact_of(permission: Permission) -> Fact[Right]:
    if not permission.could_ask:
        return Unknown(permission.words, database_now(), How.CLUSTER)
    return _known(Right(permission.allowed, permission.words, permission.rule))


def _known(right: Right) -> Fact[Right]:
    return Known(right, database_now(), How.CLUSTER)


def _read_policy_review(
    row: Review, loaded: Mapping[int, LoadedPolicy] | Unknown, request: Request, is_vouching: bool
) -> ReviewFacts:
    """It stands for the version that gave it, as long as that is in force."""
    facts = ReviewFacts(row.pk, row.username, row.decision, True, True, False, given_at=row.given_at)
    facts = replace(facts, voter=Voter(row.username, policy=row.policy.name if row.policy else ""))
    if isinstance(loaded, Unknown):
        return replace(facts, decides=loaded)
    policy = loaded.get(row.policy_id or 0)
    if policy is not None and not policy.version:
        # A new round would be decided by what was seen last, and so again and again.
        words = f"ApprovalPolicy {policy.document.name} is not as it was seen last: this is checked again"
        return replace(facts, decides=Unknown(words, database_now(), How.CLUSTER))
    is_same = policy is not None and policy.version == row.policy_version
    if policy is None or not is_same or policy.problem or not policy.document.is_enforced:
        return replace(facts, is_in_force=False)
    uses = uses_account(policy, request) if is_vouching else None
    return replace(facts, decides=objection_to(policy, request), uses_account=uses)


def is_by_machine(row: Review) -> bool:
    """Whether a machine gave it: by its name then, or as the account that decides by webhook, over whatever channel."""
    account = row.user.get_username() if row.user else ""
    is_webhook = row.channel == Review.Channel.WEBHOOK or account == settings.PRATIQUE["DECISION_WEBHOOK_USER"] != ""
    return is_webhook or not access.is_human(Identity(row.username, tuple(row.groups), row.uid))


def _read_person_review(row: Review, request: Request, is_vouching: bool) -> ReviewFacts:
    """A Deny stays, and of an own approval nothing has to be asked."""
    is_break_glass = row.decision == BREAK_GLASS
    is_approval, is_own_allowed = row.decision == "Approve" or is_break_glass, may_be_own(row.decision)
    doubt = ""
    if row.may_write and settings.PRATIQUE["DOUBT_WRITERS"] and not is_own_allowed:
        doubt = row.doubt or f"{row.username} may write the BundleDeployment"
    facts = ReviewFacts(
        key=row.pk,
        name=row.username,
        decision=row.decision,
        is_policy=False,
        is_in_force=True,
        is_by_a_requester=is_approval and not is_own_allowed and _is_by_a_requester(row, request),
        doubt=doubt,
        waives=frozenset(finding["fingerprint"] for finding in row.waives) if is_approval else frozenset(),
        given_at=row.given_at,
        carried_from=words_of_round(row.carries, request) if row.carries else "",
    )
    if row.decision == REQUEST_CHANGES:
        return _add_dismissal(facts, row, request)
    if not is_approval or facts.is_by_a_requester:
        return facts
    identity = _current_identity(row, request)
    known = Identity(row.username, tuple(row.groups), row.uid) if isinstance(identity, str) else identity
    is_machine = not access.is_human(known) or is_by_machine(row)
    voter = Voter(known.username, frozenset(known.groups), is_machine=is_machine)
    facts = replace(facts, voter=voter)
    if isinstance(identity, str):
        return replace(facts, decides=Known(Right(False, identity), database_now(), How.RECORDS))
    deployment = request.deployment
    decides = (
        break_glass_right(identity, request)
        if is_break_glass
        else fact_of(access.ask_for(identity, deployment.cluster, access.approval_of(deployment), fresh=True))
    )
    may_override = access.may_override(identity, deployment, fresh=True) if facts.waives else None
    may_use_account = access.may_use_account(identity, request) if is_vouching else None
    return replace(
        facts,
        decides=decides,
        overrides=fact_of(may_override) if may_override else None,
        uses_account=fact_of(may_use_account) if may_use_account else None,
    )


def words_of_round(review: Review, request: Request) -> str:
    """The round in which a review was given, as it is called beside `request`."""
    earlier = f"request {review.request.number}, " if review.request_id != request.pk else ""
    return f"{earlier}round {review.round}"


def may_be_own(decision: str) -> bool:
    """Whether the operator lets people decide so on what they asked for themselves (S05)."""
    return bool(
        settings.PRATIQUE["SELF_APPROVAL"] or (decision == BREAK_GLASS and settings.PRATIQUE["BREAK_GLASS_ALONE"])
    )


def break_glass_right(identity: Identity, request: Request) -> Fact[Right]:
    """Whether this identity may break glass for the present round: never for what affects Pratique itself (S22)."""
    report = request.reports.filter(round=request.round).first()
    if report is None:
        return _known(Right(False, "its report is not there, so nobody can tell whether it affects Pratique itself"))
    if touches_pratique(report):
        return _known(Right(False, "it affects Pratique itself, and only approvals count for that"))
    groups = settings.PRATIQUE["BREAK_GLASS_GROUPS"]
    if groups and not set(groups) & set(identity.groups):
        return _known(Right(False, f"{identity.username} is in none of the groups of PRATIQUE_BREAK_GLASS_GROUPS"))
    return fact_of(access.may_break_glass(identity, request.deployment))


def _add_dismissal(facts: ReviewFacts, row: Review, request: Request) -> ReviewFacts:
    """Add whether the last person who dismissed it may still `override`, and did not ask for the change (S05)."""
    latest = max(row.dismissals.all(), key=lambda dismissal: dismissal.pk, default=None)
    if latest is None:
        return facts
    facts = replace(facts, dismissal_key=latest.pk, dismissed_by=latest.username)
    if _is_by_a_requester(latest, request):
        return replace(facts, dismissal=_known(Right(False, "they requested this change")))
    identity = _current_identity(latest, request)
    if isinstance(identity, str):
        return replace(facts, dismissal=_known(Right(False, identity)))
    return replace(facts, dismissal=fact_of(access.may_override(identity, request.deployment, fresh=True)))


def _is_by_a_requester(row: Review | Dismissal, request: Request) -> bool:
    """Whether an approval or a dismissal is by one of those who asked (S05)."""
    return not settings.PRATIQUE["SELF_APPROVAL"] and has_requested(request, access.person_who_reviewed(row))


def _current_identity(row: Review | Dismissal, request: Request) -> Identity | str:
    """The identity that the review was given as, with groups that are young enough; else why there is none."""
    if row.user is None:
        return "their account was deleted"
    now = request.without_hold(database_now())
    identity = access.still_known_of(row.user, request.deployment.cluster, now=now)
    if identity is None:
        return "their identity and groups have expired: they must sign in again"
    # The same name made again is another person (S01).
    if (identity.username, identity.uid) != (row.username, row.uid):
        return f"their user name is now {identity.username}, but it was {row.username} who said this"
    return "they are a machine account, and those cannot approve" if access.is_machine(identity) else identity
