"""Reads the edition of a catalog that is shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from django.db.models import QuerySet

from approvals.catalogs.searching import MAX_SEARCH, with_words
from approvals.models import Catalog, CatalogPackage, CatalogPresentation, Cluster
from provisioner.catalogs import (
    READING,
    Package,
    PackageIcon,
    PackagePresentation,
    is_about,
    unpacked_facts,
    unpacked_package,
)

MAX_PAGE = 200
# Packages that a process keeps unpacked.
MOST_KEPT = 8


@dataclass(frozen=True, slots=True)
class PackageSummary:
    """What a list shows of a package. Its words are the publisher's: nothing in them is safe to show as it is."""

    name: str
    display_name: str
    summary: str
    provider: str
    default_channel: str
    head: str
    head_version: str
    channel_count: int
    bundle_count: int
    is_deprecated: bool


@dataclass(frozen=True, slots=True)
class PackagePage:
    """Some packages in the order of their names; `after` is where the next page begins, "" where there is none."""

    packages: tuple[PackageSummary, ...]
    after: str = ""


def catalog(cluster: Cluster, name: str) -> Catalog | None:
    """The catalog of that name with its edition, whose problems are read when they are asked for; None where there
    is none."""
    rows = Catalog.objects.filter(cluster=cluster, name=name)
    return rows.select_related("cluster", "edition").defer("edition__problems").first()


def is_read_as_now(catalog: Catalog) -> bool:
    """Whether what is offered was read by the rules of today; of none by any."""
    return catalog.edition is not None and catalog.edition.reading >= READING


def catalog_rows(keys: Iterable[int], *, search: str = "", cluster: str = "") -> QuerySet[Catalog]:
    """Those of these keys by cluster and name, as `catalog` has each; of one cluster where that is named."""
    rows = Catalog.objects.filter(pk__in=list(keys), name__contains=search[:MAX_SEARCH].replace("\0", "").lower())
    rows = rows.filter(cluster__name=cluster) if cluster else rows
    rows = rows.select_related("cluster", "edition").defer("cluster__kubeconfig", "edition__problems")
    return rows.order_by("cluster__name", "name")


def package_rows(catalog: Catalog, search: str = "") -> QuerySet[CatalogPackage]:
    """What lists show of its packages, those alone that the search finds."""
    rows = CatalogPackage.objects.filter(edition_id=catalog.edition_id).defer(
        "document", "searched_text", "searched_keywords"
    )
    return with_words(rows, search)


def with_icons(rows: QuerySet[CatalogPackage]) -> QuerySet[CatalogPackage]:
    """The same, each with the type of its icon, "" where it has none, and without the icon itself."""
    return rows.select_related("presentation").defer(
        "presentation__description", "presentation__facts", "presentation__icon"
    )


def packages_of(catalog: Catalog, search: str = "", after: str = "", limit: int = 50) -> PackagePage:
    """The packages after a name, of those that are searched for (package_rows)."""
    rows = package_rows(catalog, search)
    if after:
        rows = rows.filter(name__gt=after.replace("\0", ""))
    limit = max(1, min(limit, MAX_PAGE))
    fields = tuple(PackageSummary.__dataclass_fields__)
    found = [PackageSummary(*one) for one in rows.order_by("name").values_list(*fields)[: limit + 1]]
    page = tuple(found[:limit])
    return PackagePage(page, page[-1].name if len(found) > limit else "")


def package(catalog: Catalog, name: str) -> Package | None:
    """A package with its channels and bundles; None where the catalog has none of that name."""
    edition = catalog.edition
    return _package_of(edition.pk, edition.read_at, name.replace("\0", "")) if edition else None


@lru_cache(maxsize=MOST_KEPT)
def _package_of(edition: int, read_at: datetime | None, name: str) -> Package | None:
    """Kept, because every look at a request in review asks what its catalog says now, and an edition never changes
    once it is read."""
    document = CatalogPackage.objects.filter(edition=edition, name=name).values_list("document", flat=True).first()
    return unpacked_package(cast("dict[str, Any]", document)) if document is not None else None


def package_problems(catalog: Catalog, name: str) -> list[str]:
    """What is wrong in a package or chart of the edition that is shown; what could not be read at all stands with the
    catalog."""
    edition = catalog.edition
    found = edition.problems if edition is not None and edition.problem_count else []
    return [words for where, words in found if is_about(where, name)]


def icon(catalog: Catalog, name: str) -> PackageIcon | None:
    """The picture of a package; None where the catalog has no such package, or no picture of it."""
    rows = CatalogPresentation.objects.filter(package__edition_id=catalog.edition_id, package__name=name)
    found = rows.exclude(icon_type="").values_list("icon", "icon_type").first()
    return PackageIcon(bytes(found[0]), found[1]) if found else None


def presentation(catalog: Catalog, name: str) -> PackagePresentation | None:
    """What a package says of itself; None where the catalog has none of that name."""
    rows = CatalogPresentation.objects.select_related("package").defer("package__document")
    row = rows.filter(package__edition_id=catalog.edition_id, package__name=name.replace("\0", "")).first()
    if row is None:
        return None
    return PackagePresentation(
        display_name=row.package.display_name,
        summary=row.package.summary,
        description=row.description,
        provider=row.package.provider,
        icon=PackageIcon(bytes(row.icon), row.icon_type) if row.icon_type else None,
        no_icon=row.no_icon,
        facts=unpacked_facts(row.facts),
    )
