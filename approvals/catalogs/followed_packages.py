"""Which deployments follow which packages of catalogs, and when it is asked what follows from what is offered."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce

from approvals.clock import database_now
from approvals.lifecycle import State
from approvals.locks import hold
from approvals.models import BundleDeployment, Catalog, FollowedPackage, Request

# What waits for a request to be settled or pinned is asked about so often: nobody says when that is.
ASK_AGAIN_SECONDS = 30
# A right may come back without an event.
REFUSED_SECONDS = 300


def follow_packages(deployment: BundleDeployment) -> None:
    """Keep which packages a locked deployment follows, as its spec has it; what is offered is looked at soon."""
    wanted = {
        number: (str(source.body.get("name") or ""), str(source.body.get("package") or ""))
        for number, source in enumerate(deployment.bundle_spec.sources)
        if source.is_catalog
    }
    hold(deployment.followed_packages.all())
    rows = {row.position: row for row in deployment.followed_packages.all()}
    for position, row in rows.items():
        if wanted.get(position) != (row.catalog, row.package):
            row.delete()
    for position, (catalog, package) in wanted.items():
        if position not in rows or (rows[position].catalog, rows[position].package) != (catalog, package):
            deployment.followed_packages.create(position=position, catalog=catalog, package=package)
    ask_soon(deployment)


def unfollow_packages(deployment: BundleDeployment) -> None:
    """The deployment is gone."""
    hold(deployment.followed_packages.all())
    deployment.followed_packages.all().delete()


def ask_soon(deployment: BundleDeployment) -> None:
    """What runs, what is wished for or what is wanted to follow has changed: another bundle may be next.

    Needs the deployment's lock, and is told before anything is written to the audit chain (approvals.locks).
    """
    rows = deployment.followed_packages.all()
    hold(rows)
    rows.update(answer_at=database_now())


def deployments_due(now: datetime) -> list[int]:
    """The deployments that are to be asked about: something changed for them, or a catalog of theirs did, or it went.

    Not those that are paused or go away: they are asked about when that is over.
    """
    shown = Catalog.objects.filter(cluster=OuterRef("deployment__cluster"), name=OuterRef("catalog"))
    rows = FollowedPackage.objects.annotate(
        shown=Coalesce(Subquery(shown.values("edition__digest")[:1]), Value(""))
    ).filter(
        Q(answer_at__lte=now) | (Q(answer_at__isnull=True) & ~Q(shown=F("digest"))),
        deployment__is_paused=False,
        deployment__gone_at__isnull=True,
        deployment__deletion_requested_at__isnull=True,
    )
    return list(dict.fromkeys(rows.order_by("answer_at", "pk").values_list("deployment_id", flat=True)))


@transaction.atomic
def ask_followers(catalog: Catalog) -> None:
    """The same content was read in another way, so that another bundle may be next."""
    rows = FollowedPackage.objects.filter(catalog=catalog.name, deployment__cluster=catalog.cluster_id)
    held = FollowedPackage.objects.filter(pk__in=hold(rows))
    held.update(answer_at=database_now())


def follower_ids(catalog: Catalog) -> list[int]:
    """The deployments that follow a package of it."""
    rows = FollowedPackage.objects.filter(catalog=catalog.name, deployment__cluster=catalog.cluster_id)
    return list(rows.order_by("deployment_id").values_list("deployment_id", flat=True).distinct())


def requests_in_review(catalog: Catalog) -> list[int]:
    """The requests in review of deployments that follow a package of it: their reports quote what it said before."""
    rows = Request.objects.filter(
        deployment__cluster=catalog.cluster_id,
        deployment__followed_packages__catalog=catalog.name,
        state=State.IN_REVIEW,
    )
    return list(rows.order_by("pk").values_list("pk", flat=True).distinct())


def shown_digest(row: FollowedPackage) -> str:
    """The catalog as it is shown now; "" where there is none."""
    shown = Catalog.objects.filter(cluster=row.deployment.cluster_id, name=row.catalog)
    return shown.values_list("edition__digest", flat=True).first() or ""


@transaction.atomic
def put_off_answer(deployment_id: int, seconds: float, problem: str = "") -> None:
    """Nobody can tell now what is offered: it is asked again then. Where `problem` says why, what was offered before is
    shown no more: who may not get the catalog is not told of it (S09)."""
    now = database_now()
    rows = FollowedPackage.objects.filter(deployment_id=deployment_id)
    hold(rows)
    rows.update(answer_at=now + timedelta(seconds=seconds))
    if problem:
        rows.filter(problem="").update(problem_since=now)
        nothing = dict.fromkeys(("available", "available_version", "reason", "why_not", "beyond"), "")
        rows.update(problem=problem, since=None, request=None, **nothing)
