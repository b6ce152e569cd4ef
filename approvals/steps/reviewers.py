"""Whose word still stands: reviewers are asked about again, and so are those who waived findings (S05, S25)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.utils import timezone

from approvals import access, policy
from approvals.ledger.pivots import has_asked
from approvals.models import Finding, Request, Review
from provisioner.values import Identity


@dataclass(frozen=True, slots=True)
class Waived:
    """Fingerprints of the findings that are accepted now; `lost` says of each waiver that no longer counts why."""

    fingerprints: frozenset[str] = frozenset()
    lost: tuple[str, ...] = ()


def reviews_of(request: Request) -> list[Review]:
    """The reviews of the present subject, with who or which policy gave them."""
    given = request.reviews.filter(round=request.round, subject_digest=request.subject_digest)
    return list(given.select_related("user").prefetch_related("policy__author", "policy__editor"))


def waived(request: Request, reviews: Iterable[Review]) -> Waived:
    """The waivers in `reviews` whose authors may still decide and `override`, asked of Kubernetes anew."""
    accepted: set[str] = set()
    lost = []
    for review in reviews:
        if review.decision != "Approve" or not review.waives:
            continue
        objection = _objection(review, request)
        if objection:
            lost.append(f"what {review.username} accepted no longer counts: {objection}")
        else:
            accepted.update(one["fingerprint"] for one in review.waives)
    return Waived(frozenset(accepted) & _waivable(request) if accepted else frozenset(), tuple(lost))


def is_own(review: Review, request: Request) -> bool:
    """Whether an approval is by one of those who asked (S05)."""
    if review.decision != "Approve" or settings.PRATIQUE["SELF_APPROVAL"]:
        return False
    return has_asked(request, access.person_who_reviewed(review))


def is_still_reviewer(review: Review, request: Request) -> bool:
    """Whether the person who gave the review may still decide, under the identity that they gave it as."""
    return _standing(review, request) is not None


def identity_behind(review: Review, request: Request) -> Identity | None:
    """The identity that the review was given as, with groups that are young enough; None where it counts no longer."""
    if review.user is None:
        return None
    identity = access.still_known_of(review.user, request.deployment.cluster, now=timezone.now())
    return identity if identity and _is_who_reviewed(identity, review) else None


def _standing(review: Review, request: Request) -> Identity | None:
    """The identity behind the review, if Kubernetes still lets it decide."""
    deployment, identity = request.deployment, identity_behind(review, request)
    if identity is None or access.is_machine(identity):
        return None
    asked = access.ask_for(identity, deployment.cluster, access.approval_of(deployment), fresh=True)
    return identity if asked.allowed else None


def _is_who_reviewed(identity: Identity, review: Review) -> bool:
    """By name and uid: the same name made again is another person (S01)."""
    return (identity.username, identity.uid) == (review.username, review.uid)


def _objection(review: Review, request: Request) -> str:
    """Why a waiver does not count today; "" where it does."""
    if is_own(review, request):
        return "they are among those who asked"
    identity = _standing(review, request)
    if identity is None:
        return "they may no longer decide"
    permission = access.may_override(identity, request.deployment, fresh=True)
    return "" if permission.allowed else permission.words


def _waivable(request: Request) -> frozenset[str]:
    found = Finding.objects.filter(report__request=request, report__round=request.round)
    rows = found.values_list("fingerprint", "rule", "severity")
    return frozenset(one for one, rule, severity in rows if not policy.why_not_waivable(rule=rule, severity=severity))
