"""Break-glass: who let a request go in an emergency, and which of it nobody has reviewed yet."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from approvals.lifecycle import OPEN
from approvals.models import AFTERWARDS, BREAK_GLASS, Cluster, Request, Review, Verdict


@dataclass(frozen=True, slots=True)
class BrokenGlass:
    """One break-glass, and the review afterwards, None where there is none."""

    broken: Review
    answer: Review | None
    is_owed: bool
    due_at: datetime


def glass_of(broken: Review) -> BrokenGlass:
    return BrokenGlass(broken, answer_to(broken), owed().filter(pk=broken.pk).exists(), due_at(broken))


def broken() -> QuerySet[Review]:
    """Every break-glass that its giver has not taken back, of the round that its request is in."""
    rows = Review.objects.counted().filter(decision=BREAK_GLASS, round=F("request__round"))
    rows = rows.filter(request__cluster__removed_at__isnull=True)  # where nobody can be asked who may approve
    return rows.select_related("request__deployment__cluster", "user").order_by("given_at", "pk")


def standing() -> QuerySet[Review]:
    """Those that nobody has reviewed: a request went by it, or still may."""
    return _unanswered().filter(_went() | Q(request__state__in=OPEN))


def owed() -> QuerySet[Review]:
    """Those by which a request went, and that nobody has reviewed."""
    return _unanswered().filter(_went())


def owed_on(clusters: Collection[Cluster]) -> QuerySet[Review]:
    return owed().filter(request__cluster__in=[cluster.pk for cluster in clusters])


def break_glass_of(request: Request) -> Review | None:
    return broken().filter(request=request).first()


def answer_to(broken: Review) -> Review | None:
    """The review afterwards, None where it is owed still."""
    answers = Review.objects.counted().filter(request=broken.request_id, round=broken.round, decision__in=AFTERWARDS)
    return answers.order_by("pk").first()


def due_at(broken: Review) -> datetime:
    return broken.given_at + timedelta(hours=settings.PRATIQUE["REVIEW_OWED_HOURS"])


def _unanswered() -> QuerySet[Review]:
    answers = Review.objects.filter(request=OuterRef("request"), round=OuterRef("round"), decision__in=AFTERWARDS)
    return broken().filter(~Exists(answers))


def _went() -> Exists:
    given = Verdict.objects.filter(request=OuterRef("request"), round=OuterRef("round"), verdict="Approved")
    return Exists(given)
