"""How what a deployment follows stands: when branches, tags and URLs were looked at, and what catalogs offer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, OuterRef, Prefetch, QuerySet, Subquery, prefetch_related_objects

from approvals.lifecycle import OPEN
from approvals.models import BundleDeployment, Catalog, FollowedPackage, ReferenceFollower

# Of a look that was not for this deployment, because who asks for it may not read the source.
NOT_READABLE = "forbidden"


@dataclass(frozen=True, slots=True)
class FollowedReference:
    """One source of a deployment that may move. `interval_seconds` is 0 where it is not looked at.

    `problem` says why it could not be looked at since `problem_since`. `moved_at`: since when it differs from what the
    latest request is about. The next one is made when the open one is settled; where it moved too often, not before
    `rests_until`.
    """

    position: int
    name: str
    kind: str
    interval_seconds: int
    looked_at: datetime | None
    next_look_at: datetime | None
    problem: str
    problem_code: str
    problem_since: datetime | None
    moved_at: datetime | None
    rests_until: datetime | None = None

    @property
    def interval_words(self) -> str:
        return interval_words(self.interval_seconds)


def interval_words(total: int) -> str:
    """So many seconds as specs write them: 1h30m."""
    minutes, seconds = divmod(total, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)


def followed(*, deployment: BundleDeployment) -> list[FollowedReference]:
    """In the order of the sources; what is pinned is not there."""
    prefetch_related_objects([deployment], "followed_references__reference")
    return [_one(row, is_paused=deployment.is_paused) for row in deployment.followed_references.all()]


@dataclass(frozen=True, slots=True)
class OfferedUpgrade:
    """What a catalog offers to one source: `version` is "" where nothing new, `reason` and `why_not` say why it is
    not taken, `beyond` what is newer still and why that is not offered. `problem` says why nobody can tell;
    `source_problem_since` is since when the catalog's own source could not be checked.
    """

    position: int
    catalog: str
    package: str
    version: str
    bundle: str
    since: datetime | None
    reason: str
    why_not: str
    beyond: str
    looked_at: datetime | None
    problem: str
    problem_since: datetime | None
    source_problem_since: datetime | None = None

    @property
    def problem_parts(self) -> tuple[str, str, str]:
        """The problem, the rule that would end it as YAML, and the remedy, as far as it has them."""
        words, _, more = self.problem.partition("\n")
        rule, _, remedy = more.partition("\n\n")
        return words, rule, remedy

    @property
    def source_words(self) -> str:
        """Why it is so stands in the Catalog, for those who may get it (S09)."""
        if self.source_problem_since is None:
            return ""
        return (
            f"the source of Catalog {self.catalog} could not be checked since "
            f"{self.source_problem_since:%Y-%m-%d %H:%M} UTC, so what is newer is not known; the conditions of the "
            "Catalog say why"
        )

    @property
    def words(self) -> str:
        """All of it as people read it; "" where there is nothing to say."""
        if self.problem:
            return self.problem
        offer = f"{self.version} of {self.package} is available: {self.why_not}" if self.version else ""
        return "; ".join(part for part in (offer, self.beyond, self.source_words) if part)


def offers() -> Prefetch[str]:
    """What `offered` needs of deployments; lists prefetch it for all of theirs at once."""
    return Prefetch("followed_packages", _with_source(FollowedPackage.objects.select_related("request")))


def _with_source(rows: QuerySet[FollowedPackage]) -> QuerySet[FollowedPackage]:
    """With since when the source of the catalog that each names could not be checked."""
    named = Catalog.objects.filter(cluster=OuterRef("deployment__cluster"), name=OuterRef("catalog"))
    return rows.annotate(source_problem_since=Subquery(named.values("problem_since")[:1]))


def offered(*, deployment: BundleDeployment) -> list[OfferedUpgrade]:
    """In the order of the sources; those of no catalog are not there."""
    prefetch_related_objects([deployment], offers())
    return [_offer(row, is_paused=deployment.is_paused) for row in deployment.followed_packages.all()]


def _offer(row: FollowedPackage, *, is_paused: bool) -> OfferedUpgrade:
    return OfferedUpgrade(
        row.position,
        row.catalog,
        row.package,
        row.available_version,
        row.available,
        row.since,
        row.reason,
        _why_not(row, is_paused=is_paused),
        row.beyond,
        row.looked_at,
        row.problem,
        row.problem_since,
        # Of what may not be read nothing is said.
        None if row.problem else row.source_problem_since,  # type: ignore[attr-defined] # annotated
    )


@dataclass(frozen=True, slots=True)
class PackageFollower:
    """A deployment that follows a package, and what it is offered. `bundle` and `version` are what runs of it, "" where
    nothing does."""

    deployment: BundleDeployment
    offer: OfferedUpgrade
    bundle: str
    version: str


def package_followers(*, catalog: Catalog, package: str = "", limit: int) -> list[PackageFollower]:
    """The deployments that follow a package of a catalog, of one package where that is named, by name."""
    rows = _with_source(FollowedPackage.objects.all()).filter(
        catalog=catalog.name, deployment__cluster=catalog.cluster_id, deployment__gone_at__isnull=True
    )
    rows = rows.filter(package=package) if package else rows
    rows = rows.select_related("deployment__active_revision__request", "request").defer(
        "deployment__spec", "deployment__active_revision__request__spec", "request__spec"
    )
    return [_follower(catalog, row) for row in rows.order_by("deployment__name", "position")[:limit]]


def _follower(catalog: Catalog, row: FollowedPackage) -> PackageFollower:
    deployment = row.deployment
    deployment.cluster = catalog.cluster
    listed = deployment.active_revision.request.bundles if deployment.active_revision else []
    names = (catalog.name, row.package)
    runs = next((bundle for bundle in listed if (bundle["catalog"], bundle["package"]) == names), None)
    offer = _offer(row, is_paused=deployment.is_paused)
    return PackageFollower(deployment, offer, runs["bundle"] if runs else "", runs["version"] if runs else "")


def follower_counts(*, catalog: Catalog, packages: Iterable[str]) -> dict[str, int]:
    """How many deployments follow each of these packages; those that nobody follows are not there."""
    rows = FollowedPackage.objects.filter(
        catalog=catalog.name,
        package__in=list(packages),
        deployment__cluster=catalog.cluster_id,
        deployment__gone_at__isnull=True,
    )
    counted = rows.values_list("package").annotate(Count("deployment", distinct=True))
    return dict(counted.order_by())


def _why_not(row: FollowedPackage, *, is_paused: bool) -> str:
    if row.request is not None:
        state = row.request.state
        words = f"request {row.request.number} {'is' if state in OPEN else 'was'} for it ({state.replace('_', ' ')})"
        return words if state in OPEN else f"{words}. It is taken when somebody asks for a new request"
    if row.available and is_paused:
        return "the deployment is paused: catalogs are checked again once it is resumed"
    return row.why_not


def _one(row: ReferenceFollower, *, is_paused: bool) -> FollowedReference:
    reference, own = row.reference, bool(row.problem)
    seconds = 0 if is_paused else row.effective_seconds
    return FollowedReference(
        position=row.position,
        name=row.name,
        kind=reference.kind,
        interval_seconds=seconds,
        looked_at=reference.looked_at,
        next_look_at=reference.look_at if seconds else None,
        problem=row.problem or reference.problem,
        problem_code=NOT_READABLE if own else reference.problem_code,
        problem_since=row.problem_since if own else reference.problem_since,
        moved_at=row.moved_at,
        rests_until=row.rests_until,
    )
