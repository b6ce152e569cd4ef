"""Figures for the operator: how much there is of what, and since when. Each is one query over an index, or over a table
that grows with the clusters and not with time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import BooleanField, Count, ExpressionWrapper, Min, Q, Sum

from approvals.lifecycle import OPEN, SETTLED
from approvals.models import BREAK_GLASS, BundleDeployment, ChatDelivery, Cluster, Drift, Request, Review
from approvals.refusals import has_problem
from approvals.selectors import debts

SETTLED_WITHIN = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class OpenRequests:
    """Of one cluster, state and problem code. `oldest` was created first, `idle` unchanged for longest.

    `deaths` are those of workers, and of their processes, in the steps that these are at.
    """

    cluster: str
    state: str
    code: str
    count: int
    oldest: datetime
    idle: datetime
    held: int
    lapsed: int
    deaths: int


@dataclass(frozen=True, slots=True)
class SettledRequests:
    """Settled within SETTLED_WITHIN, of one state and problem code."""

    state: str
    code: str
    count: int


@dataclass(frozen=True, slots=True)
class Deployments:
    """Of one cluster and health ("" where nobody looked yet); `held` and `lapsed` are claims to correct drift."""

    cluster: str
    health: str
    count: int
    held: int
    lapsed: int


@dataclass(frozen=True, slots=True)
class ClusterFigures:
    name: str
    reached_at: datetime | None
    watched_until: datetime | None
    has_problem: bool
    credentials_end: datetime | None


@dataclass(frozen=True, slots=True)
class DriftFigures:
    """Open drifts of one cluster, and how many of them are fights: put back again and again."""

    cluster: str
    open: int
    fights: int


@dataclass(frozen=True, slots=True)
class OpenDeliveries:
    count: int
    oldest: datetime | None


def open_requests(now: datetime) -> list[OpenRequests]:
    groups = (
        Request.objects.filter(state__in=sorted(OPEN))
        .order_by()
        .values_list("deployment__cluster__name", "state", "problem_code")
        .annotate(
            count=Count("pk"),
            oldest=Min("created_at"),
            idle=Min("changed_at"),
            held=Count("pk", filter=Q(claimed_until__gte=now)),
            lapsed=Count("pk", filter=Q(claimed_until__lt=now)),
            deaths=Sum("worker_deaths"),
        )
    )
    return [OpenRequests(*row) for row in groups]


def settled_requests(now: datetime) -> list[SettledRequests]:
    recent = Request.objects.filter(settled_at__gte=now - SETTLED_WITHIN, state__in=sorted(SETTLED))
    groups = recent.order_by().values_list("state", "problem_code").annotate(count=Count("pk"))
    return [SettledRequests(*row) for row in groups]


def deployments(now: datetime) -> list[Deployments]:
    groups = (
        BundleDeployment.objects.filter(gone_at__isnull=True)
        .order_by()
        .values_list("cluster__name", "health")
        .annotate(
            count=Count("pk"),
            held=Count("pk", filter=Q(claimed_until__gte=now)),
            lapsed=Count("pk", filter=Q(claimed_until__lt=now)),
        )
    )
    return [Deployments(*row) for row in groups]


def clusters(now: datetime) -> list[ClusterFigures]:
    found = Cluster.objects.order_by("name").annotate(has_problem=ExpressionWrapper(has_problem(now), BooleanField()))
    rows = found.values_list("name", "reached_at", "watched_until", "has_problem", "credentials_end")
    return [ClusterFigures(*row) for row in rows]


def open_drifts() -> list[DriftFigures]:
    groups = (
        Drift.objects.filter(state=Drift.State.OPEN)
        .order_by()
        .values_list("item__deployment__cluster__name")
        .annotate(open=Count("pk"), fights=Count("pk", filter=Q(is_fight=True)))
    )
    return [DriftFigures(*row) for row in groups]


def open_deliveries() -> OpenDeliveries:
    """Decisions from chat tools that nobody acted on yet."""
    found = ChatDelivery.objects.filter(done_at__isnull=True).aggregate(count=Count("pk"), oldest=Min("received_at"))
    return OpenDeliveries(found["count"], found["oldest"])


@dataclass(frozen=True, slots=True)
class BreakGlassFigures:
    """How often glass was broken, and how much of that nobody has reviewed."""

    total: int
    owed: int
    overdue: int


def break_glass(now: datetime) -> BreakGlassFigures:
    limit = now - timedelta(hours=settings.PRATIQUE["REVIEW_OWED_HOURS"])
    owed = Q(pk__in=debts.owed().order_by().values("pk"))
    found = Review.objects.filter(decision=BREAK_GLASS).aggregate(
        total=Count("pk"), owed=Count("pk", filter=owed), overdue=Count("pk", filter=owed & Q(given_at__lt=limit))
    )
    return BreakGlassFigures(**found)
