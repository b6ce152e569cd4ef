"""What is known for a plan of dependencies: which packages deployments follow, and what the catalogs offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.db.models import TextField
from django.db.models.functions import Cast

from approvals.catalogs.bundle_choice import running_bundle
from approvals.catalogs.editions import find_package
from approvals.models import Catalog, CatalogPackage, Cluster, FollowedPackage
from provisioner.catalogs.choice import CatalogOffer
from provisioner.catalogs.dependencies import InstalledPackage
from provisioner.errors import InvalidRange
from provisioner.render.registry.needs import ApiNeed
from provisioner.versions import version_of

MOST_FOLLOWERS = 20
# Packages with the same API, over all catalogs.
MOST_BRINGERS = 10


@dataclass(frozen=True, slots=True)
class KnownOnCluster:
    """What one person may know on a cluster: `catalogs` are those that they may read, with their editions.

    A package that was installed by its image, or by another tool, is not known; the APIs that it brings are.
    """

    cluster: Cluster
    catalogs: tuple[Catalog, ...]
    serves_api: Callable[[ApiNeed], bool | None]

    def installed(self, package: str) -> list[InstalledPackage]:
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
        return self.serves_api(api)

    def offers(self, package: str) -> list[CatalogOffer]:
        return [CatalogOffer(catalog.name, find_package(catalog, package)) for catalog in self.catalogs]

    def offers_of_api(self, api: ApiNeed) -> list[CatalogOffer]:
        by_edition = {catalog.edition_id: catalog for catalog in self.catalogs}
        # The document of a package names the APIs of its bundles; what another word of it has is sorted out later.
        rows = CatalogPackage.objects.filter(edition__in=list(by_edition)).alias(text=Cast("document", TextField()))
        rows = rows.filter(text__contains=f'"{api.key}"').order_by("name", "edition__catalog__name")
        names = rows.values_list("edition_id", "name")[:MOST_BRINGERS]
        return [
            CatalogOffer(by_edition[edition].name, find_package(by_edition[edition], name)) for edition, name in names
        ]


def catalogs_with_editions(keys: Iterable[int], cluster: Cluster) -> tuple[Catalog, ...]:
    """The catalogs of a cluster among these that were read, by name."""
    rows = Catalog.objects.filter(pk__in=list(keys), cluster=cluster, edition__isnull=False)
    return tuple(rows.select_related("edition").defer("edition__problems").order_by("name"))
