"""Which deployments follow which packages of catalogs, and when it is asked what follows from what is offered."""

from __future__ import annotations

from datetime import datetime, timedelta
from hashlib import sha256

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce

from approvals.bundle_spec import SpecSource
from approvals.clock import database_now
from approvals.lifecycle import State
from approvals.locks import hold
from approvals.models import BundleDeployment, Catalog, FollowedPackage, Request
from provisioner.render import canonical_json

# What waits for a request to be settled or pinned is asked about so often: nobody says when that is.
ASK_AGAIN_SECONDS = 30
# A right may come back without an event.
REFUSED_SECONDS = 300


def follow_packages(deployment: BundleDeployment) -> None:
    """Keep which packages a locked deployment follows, as its spec has it; what is offered is looked at soon."""
    wanted = {number: source for number, source in enumerate(deployment.bundle_spec.sources) if source.is_catalog}
    hold(deployment.followed_packages.all())
    kept = set()
    for row in deployment.followed_packages.all():
        if row.position in wanted and _is_about(row, wanted[row.position]):
            kept.add(row.position)
        else:
            row.delete()
    for position in wanted.keys() - kept:
        source = wanted[position]
        deployment.followed_packages.create(
            position=position,
            catalog="" if source.is_selecting else str(source.body.get("name") or ""),
            package=str(source.body.get("package") or ""),
            is_selected=source.is_selecting,
        )
    ask_soon(deployment)


def _is_about(row: FollowedPackage, source: SpecSource) -> bool:
    """Whether a row is still about the package of this source, by name, or selected anew each time."""
    is_same = row.is_selected or row.catalog == str(source.body.get("name") or "")
    return is_same and (row.package, row.is_selected) == (str(source.body.get("package") or ""), source.is_selecting)


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
    selecting = FollowedPackage.objects.filter(is_selected=True).order_by()
    is_unchanged = Q(is_selected=False, shown=F("digest"))
    for cluster in selecting.values_list("deployment__cluster", flat=True).distinct():
        is_unchanged |= Q(is_selected=True, deployment__cluster=cluster, digest=_digest_catalogs(cluster))
    rows = FollowedPackage.objects.annotate(
        shown=Coalesce(Subquery(shown.values("edition__digest")[:1]), Value(""))
    ).filter(
        Q(answer_at__lte=now) | (Q(answer_at__isnull=True) & ~is_unchanged),
        deployment__is_paused=False,
        deployment__gone_at__isnull=True,
        deployment__deletion_requested_at__isnull=True,
    )
    return list(dict.fromkeys(rows.order_by("answer_at", "pk").values_list("deployment_id", flat=True)))


@transaction.atomic
def ask_followers(catalog: Catalog) -> None:
    """The same content was read in another way, so that another bundle may be next."""
    rows = FollowedPackage.objects.filter(_may_take(catalog), deployment__cluster=catalog.cluster_id)
    held = FollowedPackage.objects.filter(pk__in=hold(rows))
    held.update(answer_at=database_now())


def follower_ids(catalog: Catalog) -> list[int]:
    """The deployments that follow a package of it."""
    rows = FollowedPackage.objects.filter(_may_take(catalog), deployment__cluster=catalog.cluster_id)
    return list(rows.order_by("deployment_id").values_list("deployment_id", flat=True).distinct())


def requests_in_review(catalog: Catalog) -> list[int]:
    """The requests in review of deployments that follow a package of it: their reports quote what it said before."""
    following = FollowedPackage.objects.filter(_may_take(catalog), deployment=OuterRef("deployment"))
    rows = Request.objects.filter(Exists(following), deployment__cluster=catalog.cluster_id, state=State.IN_REVIEW)
    return list(rows.order_by("pk").values_list("pk", flat=True).distinct())


def _may_take(catalog: Catalog) -> Q:
    """Of which followers this catalog may be the one: those that name it, and all that select."""
    return Q(catalog=catalog.name) | Q(is_selected=True)


def shown_digest(row: FollowedPackage) -> str:
    """The catalog as it is shown now, "" where there is none; of one that selects, all catalogs of the cluster."""
    if row.is_selected:
        return _digest_catalogs(row.deployment.cluster_id)
    shown = Catalog.objects.filter(cluster=row.deployment.cluster_id, name=row.catalog)
    return shown.values_list("edition__digest", flat=True).first() or ""


def _digest_catalogs(cluster_id: int) -> str:
    """Over all that a choice among the catalogs of a cluster depends on."""
    rows = Catalog.objects.filter(cluster=cluster_id).order_by("name").select_related("edition")
    rows = rows.only("name", "labels", "spec", "edition__digest")
    said = [[row.name, row.edition.digest if row.edition else "", row.priority, row.labels] for row in rows]
    return f"sha256:{sha256(canonical_json(said)).hexdigest()}"


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
        rows.filter(is_selected=True).update(catalog="")
