"""What is known for a plan of dependencies: which packages deployments follow, and what the catalogs offer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from django.db.models import TextField
from django.db.models.functions import Cast

from approvals.catalogs.bundle_choice import running_bundle
from approvals.catalogs.editions import find_package
from approvals.models import Catalog, CatalogPackage, Cluster, FollowedPackage
from provisioner.catalogs.choice import CatalogOffer
from provisioner.catalogs.dependencies import InstalledPackage, LooksSpent
from provisioner.errors import InvalidRange
from provisioner.render.registry.needs import ApiNeed
from provisioner.versions import version_of

MOST_FOLLOWERS = 20
# Packages with the same API, over all catalogs.
MOST_BRINGERS = 10
# A page waits for it.
MOST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class KnownOnCluster:
    """What one person may know on a cluster: `catalogs` are those that they may read, with their editions.
    LooksSpent is raised after `ends_at` (time.monotonic).

    A package that was installed by its image, or by another tool, is not known; the APIs that it brings are.
    """

    cluster: Cluster
    catalogs: tuple[Catalog, ...]
    serves_api: Callable[[ApiNeed], bool | None]
    ends_at: float = field(default_factory=lambda: time.monotonic() + MOST_SECONDS)

    def installed(self, package: str) -> list[InstalledPackage]:
        self._check_time()
        rows = FollowedPackage.objects.filter(
            deployment__cluster=self.cluster, deployment__gone_at__isnull=True, package=package
        )
        found = []
        for row in rows.select_related("deployment").order_by("deployment__name", "position")[:MOST_FOLLOWERS]:
            sources = row.deployment.bundle_spec.sources[row.position : row.position + 1]
            running = running_bundle(row.deployment, sources[0].destination) if sources else None
            try:
                version = version_of(running.version) if running and running.package == package else None
            except InvalidRange:
                version = None
            found.append(InstalledPackage(row.deployment.name, version))
        return found

    def serves(self, api: ApiNeed) -> bool | None:
        self._check_time()
        return self.serves_api(api)

    def offers(self, package: str) -> list[CatalogOffer]:
        return [self._offer(catalog, package) for catalog in self.catalogs]

    def offers_of_api(self, api: ApiNeed) -> list[CatalogOffer]:
        self._check_time()
        by_edition = {catalog.edition_id: catalog for catalog in self.catalogs}
        # The document of a package names the APIs of its bundles; what another word of it has is sorted out later.
        rows = CatalogPackage.objects.filter(edition__in=list(by_edition)).alias(text=Cast("document", TextField()))
        rows = rows.filter(text__contains=f'"{api.key}"').order_by("name", "edition__catalog__name")
        names = rows.values_list("edition_id", "name")[:MOST_BRINGERS]
        return [self._offer(by_edition[edition], name) for edition, name in names]

    def _offer(self, catalog: Catalog, package: str) -> CatalogOffer:
        self._check_time()
        return CatalogOffer(catalog.name, find_package(catalog, package), catalog.priority)

    def _check_time(self) -> None:
        """A package has up to 50,000 entries, and to look for an API is to look through all packages."""
        if time.monotonic() > self.ends_at:
            raise LooksSpent(f"looking at what catalogs offer took more than {MOST_SECONDS} seconds")


def catalogs_with_editions(keys: Iterable[int], cluster: Cluster) -> tuple[Catalog, ...]:
    """The catalogs of a cluster among these that were read, by name."""
    rows = Catalog.objects.filter(pk__in=list(keys), cluster=cluster, edition__isnull=False)
    return tuple(rows.select_related("edition").defer("edition__problems").order_by("name"))
