"""What stands above every tab of a request: how far it is, its worst thing, what stops it, who agreed and who can."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings

from approvals import access
from approvals.access import Caller
from approvals.access.own_words import headline_for
from approvals.access.sight import ReportSight, Sight, may_see_roles
from approvals.lifecycle import State
from approvals.models import KubernetesIdentity, Report, Request, Review
from approvals.web.requests import overview
from provisioner.values import AccessRequest, Identity

# Kubernetes is asked about so many people; the bar says that there may be more.
MAX_ASKED = 8
MAX_ASKED_OF_REPORT = 30
VERDICTS = {"Approve": "approved", "Deny": "denied", "RequestChanges": "changes requested"}


@dataclass(frozen=True, slots=True)
class Bar:
    """`blocked` says what stops the apply, "" where nothing does. `missing` approvals are still needed. `can` names who
    may give one, as far as is known here.

    `are_named` where the viewer may get roles and bindings, and so may know who has which right. `has_more` where
    nobody asked about everyone.
    """

    worst: str
    sentence: str
    blocked: str
    decided: list[tuple[str, str]]
    missing: int
    can: list[str]
    are_named: bool
    has_more: bool


def bar_of(caller: Caller, request: Request, report: Report | None, reviews: Iterable[Review]) -> Bar:
    """The bar of one viewer; `reviews` are all of the request."""
    counted = [one for one in reviews if one.round == request.round and not one.is_replaced]
    decided = [(VERDICTS.get(one.decision, one.decision), _name(one)) for one in counted]
    people = sum(one.decision == "Approve" and one.policy_id is None for one in counted)
    missing = max(settings.PRATIQUE["APPROVALS_NEEDED"] - people, 0) if request.state == State.IN_REVIEW else 0
    are_named = bool(missing) and may_see_roles(caller, request.deployment.cluster)
    can, has_more = _who_can(request, counted) if are_named else ([], False)
    sentence = _sentence(caller, request, report) if report else ""
    worst = report.worst if report else ""
    is_judged = report is not None and request.state == State.IN_REVIEW
    blocked = overview.blocked_words(overview.blockers(report.body)) if report and is_judged else ""
    return Bar(worst, sentence, blocked, decided, missing, can, are_named, has_more)


def _sentence(caller: Caller, request: Request, report: Report) -> str:
    """The worst thing, in the words of its finding where the viewer may see that."""
    sight = ReportSight(Sight(caller, request.deployment.cluster, limit=MAX_ASKED_OF_REPORT), report.body)
    return next(iter(headline_for(sight, report.body["findings"], report.headline)), "")


def _name(review: Review) -> str:
    return f"policy {review.policy.name}" if review.policy else review.username


def _who_can(request: Request, counted: list[Review]) -> tuple[list[str], bool]:
    """People who signed in here, did not ask for it, have not decided, and whom Kubernetes lets approve."""
    done = {one.user_id for one in counted if one.user_id}
    done |= {one["user_id"] for one in request.requesters if one.get("user_id")}
    known = KubernetesIdentity.objects.filter(cluster=request.deployment.cluster, user__is_active=True)
    rows = list(known.exclude(user_id__in=done).order_by("username")[: MAX_ASKED + 1])
    question = access.approval_of(request.deployment)
    may = [row for row in rows[:MAX_ASKED] if _may(row, request, question)]
    return [row.username for row in may], len(rows) > MAX_ASKED


def _may(row: KubernetesIdentity, request: Request, question: AccessRequest) -> bool:
    identity = Identity(row.username, tuple(row.groups), row.uid)
    return access.ask_for(identity, request.deployment.cluster, question, fresh=False).allowed
