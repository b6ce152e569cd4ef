"""What stands above every tab of a request: how far it is, its worst thing, what stops it, who agreed, who still can or
must, and what holds it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings

from approvals import access
from approvals.access import Caller
from approvals.access.approvers import approvers_of
from approvals.access.own_words import headline_for
from approvals.access.sight import ReportSight, Sight, may_see_roles
from approvals.gate import rights
from approvals.lifecycle import SETTLED, State
from approvals.models import KubernetesIdentity, Policy, PolicyEvaluation, Report, Request, Review
from approvals.selectors.lists import pause_words
from approvals.selectors.pages import evaluations_of
from approvals.selectors.status import CHANGES_REQUESTED, RequestStatus, status
from approvals.web.requests import overview
from provisioner.values import Identity

# Kubernetes is asked about so many people; the bar says that there may be more.
MAX_ASKED = 8
MAX_ASKED_OF_REPORT = 30
MAX_NAMED = 6
VERDICTS = {"Approve": "approved", "Deny": "denied", "RequestChanges": "changes requested"}
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
    """What keeps the request from going on beside missing approvals, and why; `policy` is the name of a guard."""

    what: str
    words: str
    policy: str = ""


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


def bar_of(caller: Caller, request: Request, report: Report | None, reviews: Iterable[Review]) -> Bar:
    """The bar of one viewer; `reviews` are all of the request."""
    counted = [one for one in reviews if one.round == request.round and not one.is_replaced]
    decided = [(VERDICTS.get(one.decision, one.decision), _name(one)) for one in counted]
    people = sum(one.decision == "Approve" and one.policy_id is None for one in counted)
    is_open = request.state == State.IN_REVIEW
    is_denied = any(one.decision == "Deny" for one in counted)
    missing = max(settings.PRATIQUE["APPROVALS_NEEDED"] - people, 0) if is_open and not is_denied else 0
    how, evaluations = (None, None) if request.state in SETTLED else (status(request), evaluations_of(request))
    return Bar(
        worst=report.worst if report else "",
        sentence=_sentence(caller, request, report) if report else "",
        blocked=overview.blocked_words(overview.blockers(report.body)) if report and is_open else "",
        decided=decided,
        missing=missing,
        can=_possible(caller, request, counted) if missing else Possible(),
        must=_must(request, counted) if missing else "",
        holds=_holds(request, how, evaluations or []) if how else [],
        how=how,
        evaluations=evaluations,
    )


def _sentence(caller: Caller, request: Request, report: Report) -> str:
    """The worst thing, in the words of its finding where the viewer may see that."""
    sight = ReportSight(Sight(caller, request.deployment.cluster, limit=MAX_ASKED_OF_REPORT), report.body)
    return next(iter(headline_for(sight, report.body["findings"], report.headline)), "")


def _name(review: Review) -> str:
    return f"policy {review.policy.name}" if review.policy else review.username


def _must(request: Request, counted: list[Review]) -> str:
    """What one of those who approve must be allowed to do, where nobody can say it of who asked; "" where one may."""
    return rights.vouching_left(request, [one.user for one in counted if one.decision == "Approve" and one.user])


def _holds(request: Request, how: RequestStatus, evaluations: Iterable[PolicyEvaluation]) -> list[Hold]:
    """What holds it, whoever approves: reviews that ask for changes, guards, a pause, a problem of the row."""
    guards = [
        Hold(f"Policy {one.policy.name} holds this request", one.words, one.policy.name)
        for one in evaluations
        if one.result in HOLDING and _is_in_force(one.policy)
    ]
    paused = pause_words(deployment=request.deployment)
    pauses = [Hold("The deployment is paused, so nothing is applied", paused)] if paused else []
    return [*_asked_changes(how), *guards, *pauses, *_waits(request, how, is_told=bool(guards))]


def _is_in_force(policy: Policy) -> bool:
    return policy.is_active and policy.kind == Policy.Kind.GUARD and policy.mode == Policy.Mode.ENFORCE


def _asked_changes(how: RequestStatus) -> list[Hold]:
    if how.label != CHANGES_REQUESTED:
        return []
    return [Hold(f"No approval counts until {how.by_words} reviews again or the review is dismissed", how.cause)]


def _waits(request: Request, how: RequestStatus, *, is_told: bool) -> list[Hold]:
    """The problem of the row, unless a guard or a reviewer is it."""
    if not request.problem or how.label == CHANGES_REQUESTED or (is_told and request.problem_code == "held-back"):
        return []
    return [Hold("Waiting", how.cause)]


def _possible(caller: Caller, request: Request, counted: list[Review]) -> Possible:
    """Whom Kubernetes lets approve, without those who asked for it or have decided."""
    bound = approvers_of(caller, request.deployment)
    if not (bound.could_list or may_see_roles(caller, request.deployment.cluster)):
        return Possible()
    done = [access.person_recorded(one) for one in request.requesters]
    done += [access.person_who_reviewed(one) for one in counted]
    signed_in, has_unasked = _signed_in(request, counted)
    named = [one for one in bound.users if not any(access.Person(one).is_same(it) for it in done)]
    viewer = access.identity_of(caller, request.deployment.cluster)
    you = viewer.username if viewer else ""
    people = sorted(dict.fromkeys([*signed_in, *named]), key=lambda it: it != you)
    groups = sorted(bound.groups, key=lambda it: (it.startswith("system:"), it))
    left = max(len(people) - MAX_NAMED, 0) + max(len(groups) - MAX_NAMED, 0)
    return Possible(
        tuple(people[:MAX_NAMED]), tuple(groups[:MAX_NAMED]), left, has_unasked or bound.has_more, True, you
    )


def _signed_in(request: Request, counted: list[Review]) -> tuple[list[str], bool]:
    """People who signed in here and whom Kubernetes lets approve; whether nobody asked about some."""
    done = {one.user_id for one in counted if one.user_id}
    done |= {one["user_id"] for one in request.requesters if one.get("user_id")}
    known = KubernetesIdentity.objects.filter(cluster=request.deployment.cluster, user__is_active=True)
    rows = list(known.exclude(user_id__in=done).order_by("username")[: MAX_ASKED + 1])
    cluster, question = request.deployment.cluster, access.approval_of(request.deployment)
    people = [Identity(row.username, tuple(row.groups), row.uid) for row in rows[:MAX_ASKED]]
    answers = access.ask_all([access.Question(one, cluster, question) for one in people])
    may = [one.username for one, answer in zip(people, answers, strict=True) if answer.allowed]
    return may, len(rows) > MAX_ASKED
