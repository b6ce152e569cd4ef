"""What every tab of a request begins with: the request, the viewer's one sight of it, what they may do, and the bar.

The bar stands above each tab: how far the request is, its worst finding, what stops it, who agreed, who still can or
must, and what holds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from django.conf import settings
from django.http import Http404

from approvals import access, lifecycle, services
from approvals.access import Caller
from approvals.access.authors import approvers_of
from approvals.access.sight import ReportSight, Sight, headline_for, may_see_roles
from approvals.deciding.external_checks import AWAITED, CheckStage
from approvals.errors import Refused
from approvals.gate import rights
from approvals.gate.reviewer_checks import check_dismisser, check_reviewer
from approvals.lifecycle import SETTLED, Event, State
from approvals.models import (
    BREAK_GLASS,
    REQUEST_CHANGES,
    KubernetesIdentity,
    Policy,
    PolicyEvaluation,
    Report,
    Request,
    Review,
)
from approvals.selectors.lists import pause_words
from approvals.selectors.pages import evaluations_of, report_of, reviews_of
from approvals.selectors.status import CHANGES_REQUESTED, RequestStatus, status
from approvals.services.reviews import is_requester, is_self_approval
from approvals.web.requests import overview
from approvals.web.tags import policy_url
from provisioner.values import Identity

# For one page of a request Kubernetes is asked about so many objects, and so often in all, with what it is asked about
# kinds and namespaces. Of what is left no values are shown; the page of an object alone has them.
MAX_OBJECTS = 30
MAX_ASKED = 60
# Kubernetes is asked about so many people; the bar says that there may be more.
MAX_APPROVERS = 8
MAX_NAMED = 6
VERDICTS = {
    "Approve": "approved",
    "Deny": "denied",
    "RequestChanges": "changes requested",
    "BreakGlass": "glass broken",
    "Accept": "accepted afterwards",
    "Object": "objected afterwards",
}
MAY_SAY_NO = "You can deny it or request changes."
HOLDING = (PolicyEvaluation.Result.HOLDS, PolicyEvaluation.Result.ERROR)


@dataclass(frozen=True, slots=True)
class Possible:
    """Who may still give an approval. `are_named` where the viewer may know who has which right.

    `people` have signed in here, or a binding names them; the viewer, `you`, is the first if they are one. `groups` are
    those that bindings name. `more` are not listed, `has_unasked` where Kubernetes was not asked about everyone.
    """

    people: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    more: int = 0
    has_unasked: bool = False
    are_named: bool = False
    you: str = ""

    @property
    def is_nobody(self) -> bool:
        return self.are_named and not (self.people or self.groups or self.has_unasked)


@dataclass(frozen=True, slots=True)
class Hold:
    """What keeps the request from going on beside missing approvals, and why; `url` is the page of a guard."""

    what: str
    words: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """`blocked` says what stops the apply, "" where nothing does. `missing` approvals are still needed, from whom `can`
    says, and `must` what one of these people must be allowed to do beside. `how` and `evaluations` are what `holds` was
    read from; None of a request that is settled.
    """

    worst: str
    sentence: str
    blocked: str
    decided: list[tuple[str, str]]
    missing: int
    can: Possible
    must: str
    holds: list[Hold]
    how: RequestStatus | None
    evaluations: list[PolicyEvaluation] | None


@dataclass(frozen=True, slots=True)
class ViewerOptions:
    """`words` say why the viewer may not decide; "" where they may. `rule` is the RBAC that would allow it.

    `given` is the viewer's own review of this round that counts until they give another. `may_set_time` of an approved
    request: they may say when it is applied. `may_review_afterwards` of one for which somebody else broke glass.
    """

    identity: Identity | None
    may_approve: bool = False
    may_deny: bool = False
    may_withdraw: bool = False
    words: str = ""
    rule: str = ""
    given: Review | None = None
    may_set_time: bool = False
    may_review_afterwards: bool = False


def options_of(caller: Caller, request: Request, report: Report | None, reviews: Iterable[Review]) -> ViewerOptions:
    """Asks Kubernetes anew, by the very checks that a decision goes through.

    `report` is of this round, `reviews` are all of the request.
    """
    identity = access.identity_of(caller, request.deployment.cluster)
    may_withdraw = is_requester(request, caller) and lifecycle.may(State(request.state), Event.WITHDRAW)
    if request.state != State.IN_REVIEW:
        is_broken = any(it.decision == BREAK_GLASS and it.round == request.round for it in reviews)
        is_asked, is_others = request.state == State.APPROVED or is_broken, False
        with suppress(Refused):
            is_others = is_asked and not is_self_approval(request, check_reviewer(caller, request).person)
        may_set_time = is_others and request.state == State.APPROVED
        return ViewerOptions(
            identity,
            may_withdraw=may_withdraw,
            may_set_time=may_set_time,
            may_review_afterwards=is_others and is_broken,
        )
    own = (review for review in reviews if review.user_id == caller.user.pk and review.round == request.round)
    given = next((review for review in own if not review.is_replaced), None)
    try:
        checked = check_reviewer(caller, request)
    except Refused as refusal:
        rule = str(refusal.facts.get("rule", ""))
        return ViewerOptions(identity, may_withdraw=may_withdraw, words=str(refusal), rule=rule, given=given)
    if is_self_approval(request, checked.person):
        words = "You requested this change, so someone else must approve it. " + MAY_SAY_NO
        return ViewerOptions(checked.identity, False, True, may_withdraw, words, given=given)
    if services.collisions(report):
        words = "This request cannot be approved while it collides with objects of someone else. " + MAY_SAY_NO
        return ViewerOptions(checked.identity, False, True, may_withdraw, words, given=given)
    return ViewerOptions(checked.identity, True, True, may_withdraw, given=given)


@dataclass(frozen=True, slots=True)
class DismissalOptions:
    """The reviews that request changes and may be dismissed, by key; `words` say why the viewer may not, `rule` is the
    RBAC that would allow it."""

    keys: frozenset[int] = frozenset()
    may: bool = False
    words: str = ""
    rule: str = ""


def dismissal_of(caller: Caller, request: Request, reviews: Iterable[Review]) -> DismissalOptions:
    """Asks Kubernetes, by the very check that a dismissal goes through, where there is something to dismiss."""
    if request.state != State.IN_REVIEW or not any(review.decision == REQUEST_CHANGES for review in reviews):
        return DismissalOptions()
    asking = Review.objects.judged(request).filter(decision=REQUEST_CHANGES, dismissals=None)
    keys = frozenset(asking.values_list("pk", flat=True))
    if not keys:
        return DismissalOptions()
    try:
        checked = check_dismisser(caller, request)
    except Refused as refusal:
        return DismissalOptions(keys, words=str(refusal), rule=str(refusal.facts.get("rule", "")))
    if is_self_approval(request, checked.person):
        return DismissalOptions(keys, words="You requested this change, so someone else must dismiss the review.")
    return DismissalOptions(keys, may=True)


@dataclass(frozen=True, slots=True)
class RequestTab:
    """One request as one viewer sees it on every tab. `report` is that of the present round or of the last one that
    has one, `reviews` are all; of `sight` all parts of a page ask, so that it has one bound and asks nothing twice.
    """

    caller: Caller
    item: Request
    report: Report | None
    reviews: list[Review]
    sight: Sight
    options: ViewerOptions
    bar: Bar

    @property
    def evaluations(self) -> list[PolicyEvaluation]:
        return evaluations_of(self.item) if self.bar.evaluations is None else self.bar.evaluations


def open_tab(caller: Caller, request: Request) -> RequestTab:
    """Read what every tab shows. Kubernetes is asked anew what the viewer may do."""
    report, reviews, sight = report_of(request), reviews_of(request), sight_of(caller, request)
    options = options_of(caller, request, report, reviews)
    return RequestTab(caller, request, report, reviews, sight, options, bar_of(sight, caller, request, report, reviews))


def open_reported_tab(caller: Caller, request: Request) -> tuple[RequestTab, Report]:
    """Read the same of a request that has a report; raise Http404 where it has none."""
    tab = open_tab(caller, request)
    if tab.report is None:
        raise Http404
    return tab, tab.report


def reported(request: Request) -> Report:
    """Return the report of a request; raise Http404 where it has none."""
    report = report_of(request)
    if report is None:
        raise Http404
    return report


def sight_of(caller: Caller, request: Request) -> Sight:
    """Return the one sight that all parts of a page of a request share."""
    return Sight(caller, request.deployment.cluster, limit=MAX_ASKED, objects=MAX_OBJECTS)


def bar_of(sight: Sight, caller: Caller, request: Request, report: Report | None, reviews: Iterable[Review]) -> Bar:
    """Return the bar of one viewer; `reviews` are all of the request."""
    counted = [review for review in reviews if review.round == request.round and not review.is_replaced]
    approvers = [review for review in counted if review.decision == "Approve"]
    people = sum(review.policy_id is None for review in approvers)
    is_open = request.state == State.IN_REVIEW
    is_denied = any(review.decision == "Deny" for review in counted)
    missing = max(settings.PRATIQUE["APPROVALS_NEEDED"] - people, 0) if is_open and not is_denied else 0
    how, evaluations = (None, None) if request.state in SETTLED else (status(request), evaluations_of(request))
    sentence = ""
    if report:  # the worst finding, in its own words where the viewer may see them
        seen = ReportSight(sight, report.body)
        sentence = next(iter(headline_for(seen, report.body["findings"], report.headline)), "")
    return Bar(
        worst=report.worst if report else "",
        sentence=sentence,
        blocked=overview.blocked_words(overview.blockers(report.body)) if report and is_open else "",
        decided=[
            (
                VERDICTS.get(review.decision, review.decision),
                f"policy {review.policy.name}" if review.policy else review.username,
            )
            for review in counted
        ],
        missing=missing,
        can=_find_approvers(caller, request, counted) if missing else Possible(),
        must=rights.vouching_left(request, [review.user for review in approvers if review.user]) if missing else "",
        holds=_find_holds(request, how, evaluations or []) if how else [],
        how=how,
        evaluations=evaluations,
    )


def _find_holds(request: Request, how: RequestStatus, evaluations: Iterable[PolicyEvaluation]) -> list[Hold]:
    """Return what holds it, whoever approves: reviews that ask for changes, guards, a pause, a problem of the row."""
    holds = []
    asks_changes, has_guard = how.label == CHANGES_REQUESTED, False
    if asks_changes:
        what = f"No approval counts until {how.by_words} reviews again or the review is dismissed"
        holds.append(Hold(what, how.cause))
    for evaluation in evaluations:
        policy = evaluation.policy
        is_in_force = policy.is_active and policy.kind == Policy.Kind.GUARD and policy.mode == Policy.Mode.ENFORCE
        if is_in_force and evaluation.result in HOLDING:
            has_guard = True
            holds.append(Hold(f"Policy {policy.name} holds this request", evaluation.words, policy_url(policy)))
    if request.state == State.IN_REVIEW:
        holds += [Hold("Still needed by approval rule", words) for words in request.rules_left]
        # One that failed is the problem of the row, and one before the apply is asked once it is approved.
        checks = [check for check in request.external_checks if check["stage"] == CheckStage.AFTER_REPORT]
        awaited = [check for check in checks if check["holds"] and check["state"] in AWAITED]
        holds += [Hold(f"Waiting for external check {check['name']}", check["words"]) for check in awaited]
    if paused := pause_words(deployment=request.deployment):
        holds.append(Hold("The deployment is paused, so nothing is applied", paused))
    # The problem of the row, unless a guard or a reviewer is it.
    if request.problem and not asks_changes and not (has_guard and request.problem_code == "held-back"):
        holds.append(Hold("Waiting", how.cause))
    return holds


def _find_approvers(caller: Caller, request: Request, counted: list[Review]) -> Possible:
    """Return whom Kubernetes lets approve, without those who asked for it or have decided."""
    cluster, question = request.deployment.cluster, access.approval_of(request.deployment)
    bound = approvers_of(caller, request.deployment)
    if not (bound.could_list or may_see_roles(caller, cluster)):
        return Possible()
    # People who signed in here are known by their account, others by the name that a binding has.
    done = {review.user_id for review in counted if review.user_id}
    done |= {requester["user_id"] for requester in request.requesters if requester.get("user_id")}
    known = KubernetesIdentity.objects.filter(cluster=cluster, user__is_active=True).exclude(user_id__in=done)
    rows = list(known.order_by("username")[: MAX_APPROVERS + 1])
    identities = [Identity(row.username, tuple(row.groups), row.uid) for row in rows[:MAX_APPROVERS]]
    answers = access.ask_all([access.Question(identity, cluster, question) for identity in identities])
    allowed = [who.username for who, answer in zip(identities, answers, strict=True) if answer.allowed]
    people_done = [access.person_recorded(requester) for requester in request.requesters]
    people_done += [access.person_who_reviewed(review) for review in counted]
    named = [name for name in bound.users if not any(access.Person(name).is_same(person) for person in people_done)]
    viewer = access.identity_of(caller, cluster)
    you = viewer.username if viewer else ""
    people = sorted(dict.fromkeys([*allowed, *named]), key=lambda name: name != you)
    groups = sorted(bound.groups, key=lambda name: (name.startswith("system:"), name))
    return Possible(
        people=tuple(people[:MAX_NAMED]),
        groups=tuple(groups[:MAX_NAMED]),
        more=max(len(people) - MAX_NAMED, 0) + max(len(groups) - MAX_NAMED, 0),
        has_unasked=len(rows) > MAX_APPROVERS or bound.has_more,
        are_named=True,
        you=you,
    )
