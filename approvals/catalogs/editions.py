"""Editions of catalogs: each is written in parts while nobody sees it, and shown at once when it is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol, cast

from django.db import transaction
from django.db.models import QuerySet

from approvals.catalogs.history import ContentChange, remember_contents
from approvals.catalogs.search import MAX_SEARCH, with_search_words
from approvals.clock import database_now
from approvals.locks import for_change
from approvals.models import Catalog, CatalogEdition, CatalogPackage, CatalogPresentation, Cluster
from provisioner.catalogs.edges import find_head
from provisioner.catalogs.file_based import CatalogFile, read_catalog
from provisioner.catalogs.presentation import (
    PackageIcon,
    PackagePresentation,
    PresentationShelf,
    pack_facts,
    unpack_facts,
)
from provisioner.catalogs.values import READING, Package, is_about, pack_package, unpack_package
from provisioner.catalogs.values import Catalog as CatalogContent

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


def find_catalog(cluster: Cluster, name: str) -> Catalog | None:
    """The catalog of that name with its edition, whose problems are read when they are asked for; None where there
    is none."""
    rows = Catalog.objects.filter(cluster=cluster, name=name)
    return rows.select_related("cluster", "edition").defer("edition__problems").first()


def catalogs_of(cluster: Cluster) -> list[Catalog]:
    """All of a cluster by name, each as `find_catalog` has it."""
    rows = Catalog.objects.filter(cluster=cluster).select_related("cluster", "edition")
    return list(rows.defer("edition__problems").order_by("name"))


def is_read_as_now(find_catalog: Catalog) -> bool:
    """Whether what is offered was read by the rules of today; of none by any."""
    return find_catalog.edition is not None and find_catalog.edition.reading >= READING


def list_catalogs(keys: Iterable[int], *, search: str = "", cluster: str = "") -> QuerySet[Catalog]:
    """Those of these keys by cluster and name, as `catalog` has each; of one cluster where that is named."""
    rows = Catalog.objects.filter(pk__in=list(keys), name__contains=search[:MAX_SEARCH].replace("\0", "").lower())
    rows = rows.filter(cluster__name=cluster) if cluster else rows
    rows = rows.select_related("cluster", "edition").defer("cluster__kubeconfig", "edition__problems")
    return rows.order_by("cluster__name", "name")


def package_rows(find_catalog: Catalog, search: str = "") -> QuerySet[CatalogPackage]:
    """What lists show of its packages, those alone that the search finds."""
    rows = CatalogPackage.objects.filter(edition_id=find_catalog.edition_id).defer(
        "document", "searched_text", "searched_keywords"
    )
    return with_search_words(rows, search)


def with_icon_types(rows: QuerySet[CatalogPackage]) -> QuerySet[CatalogPackage]:
    """The same, each with the type of its icon, "" where it has none, and without the icon itself."""
    return rows.select_related("presentation").defer(
        "presentation__description", "presentation__facts", "presentation__icon"
    )


def list_packages(find_catalog: Catalog, search: str = "", after: str = "", limit: int = 50) -> PackagePage:
    """The packages after a name, of those that are searched for (package_rows)."""
    rows = package_rows(find_catalog, search)
    if after:
        rows = rows.filter(name__gt=after.replace("\0", ""))
    limit = max(1, min(limit, MAX_PAGE))
    fields = tuple(PackageSummary.__dataclass_fields__)
    found = [PackageSummary(*row) for row in rows.order_by("name").values_list(*fields)[: limit + 1]]
    page = tuple(found[:limit])
    return PackagePage(page, page[-1].name if len(found) > limit else "")


def find_package(find_catalog: Catalog, name: str) -> Package | None:
    """A package with its channels and bundles; None where the catalog has none of that name."""
    edition = find_catalog.edition
    return _read_package(edition.pk, edition.read_at, name.replace("\0", "")) if edition else None


@lru_cache(maxsize=MOST_KEPT)
def _read_package(edition: int, read_at: datetime | None, name: str) -> Package | None:
    """Kept, because every look at a request in review asks what its catalog says now, and an edition never changes
    once it is read."""
    document = CatalogPackage.objects.filter(edition=edition, name=name).values_list("document", flat=True).first()
    return unpack_package(cast("dict[str, Any]", document)) if document is not None else None


def list_package_problems(find_catalog: Catalog, name: str) -> list[str]:
    """What is wrong in a package or chart of the edition that is shown; what could not be read at all stands with the
    catalog."""
    edition = find_catalog.edition
    found = edition.problems if edition is not None and edition.problem_count else []
    return [words for where, words in found if is_about(where, name)]


def find_icon(find_catalog: Catalog, name: str) -> PackageIcon | None:
    """The picture of a package; None where the catalog has no such package, or no picture of it."""
    rows = CatalogPresentation.objects.filter(package__edition_id=find_catalog.edition_id, package__name=name)
    found = rows.exclude(icon_type="").values_list("icon", "icon_type").first()
    return PackageIcon(bytes(found[0]), found[1]) if found else None


def find_presentation(find_catalog: Catalog, name: str) -> PackagePresentation | None:
    """What a package says of itself; None where the catalog has none of that name."""
    rows = CatalogPresentation.objects.select_related("package").defer("package__document")
    row = rows.filter(package__edition_id=find_catalog.edition_id, package__name=name.replace("\0", "")).first()
    if row is None:
        return None
    return PackagePresentation(
        display_name=row.package.display_name,
        summary=row.package.summary,
        description=row.description,
        provider=row.package.provider,
        icon=PackageIcon(bytes(row.icon), row.icon_type) if row.icon_type else None,
        no_icon=row.no_icon,
        facts=unpack_facts(row.facts),
    )


class ReadCatalog(Protocol):
    def __call__(self, files: Iterable[CatalogFile], /, *, shelf: PresentationShelf) -> CatalogContent: ...


AT_ONCE = 50
MOST_CHANGES_LISTED = 200


def store_edition(
    catalog: Catalog,
    digest: str,
    files: Iterable[CatalogFile],
    *,
    read: ReadCatalog = read_catalog,
    check: Callable[[], None] = lambda: None,
) -> CatalogEdition:
    """Read the files as a stream into a new edition, and show it; what was shown until then is kept for its readers.

    `read` reads the files of its format, and puts what packages say of themselves on the shelf. `check` is called in
    the transaction that shows it, with the catalog locked, and raises where that is not wanted any more. Raises as
    `read` does; whatever is raised, the edition before is shown still, and no part of the new one is left. Never call
    it in a transaction: it reads for as long as the catalog comes.
    """
    catalog.editions.filter(read_at__isnull=True).delete()  # of a worker that died over it
    edition = CatalogEdition.objects.create(catalog=catalog, digest=digest, reading=READING, began_at=database_now())
    try:
        with PresentationShelf() as shelf:
            found = read(files, shelf=shelf)
            for batch in _batches(found.packages.values()):
                _store_batch(edition, [(package, shelf.of(package)) for package in batch])
        _show_edition(catalog, edition, found, check)
    except BaseException:
        edition.delete()
        raise
    return edition


def _batches(packages: Iterable[Package]) -> Iterator[list[Package]]:
    left = iter(packages)
    while batch := list(islice(left, AT_ONCE)):
        yield batch


@transaction.atomic
def _store_batch(edition: CatalogEdition, batch: list[tuple[Package, PackagePresentation]]) -> None:
    rows = CatalogPackage.objects.bulk_create([_package_row(edition, package, words) for package, words in batch])
    CatalogPresentation.objects.bulk_create(
        CatalogPresentation(
            package=row,
            description=words.description,
            icon=words.icon.data if words.icon else b"",
            icon_type=words.icon.media_type if words.icon else "",
            no_icon=words.no_icon,
            facts=pack_facts(words.facts),
        )
        for row, (_, words) in zip(rows, batch, strict=True)
    )


def _package_row(edition: CatalogEdition, package: Package, words: PackagePresentation) -> CatalogPackage:
    head = find_head(package)
    return CatalogPackage(
        edition=edition,
        name=package.name,
        display_name=words.display_name,
        summary=words.summary,
        provider=words.provider,
        default_channel=package.default_channel,
        head=head.name if head else "",
        head_version=str(head.version) if head else "",
        channel_count=len(package.channels),
        bundle_count=len(package.bundles),
        is_deprecated=any(deprecation.schema == "olm.package" for deprecation in package.deprecations),
        searched_text="\n".join((package.name, words.display_name, words.summary, words.provider)).lower(),
        searched_keywords="\n".join(words.facts.keywords).lower(),
        document=pack_package(package),
    )


@transaction.atomic(durable=True)
def _show_edition(catalog: Catalog, edition: CatalogEdition, found: CatalogContent, check: Callable[[], None]) -> None:
    row = for_change(Catalog.objects.filter(pk=catalog.pk)).get()
    check()
    now = database_now()
    problems = [
        *_describe_changes(remember_contents(row, found.packages, now)),
        *((problem.where, problem.words) for problem in found.problems),
    ]
    edition.read_at = now
    edition.package_count = len(found.packages)
    edition.channel_count = sum(len(package.channels) for package in found.packages.values())
    edition.bundle_count = sum(len(package.bundles) for package in found.packages.values())
    edition.problems, edition.problem_count = problems, len(problems)
    edition.save()
    # Whoever has begun to read the one before reads on.
    row.editions.exclude(pk__in=[edition.pk, row.edition_id]).delete()
    row.edition = edition
    row.save(update_fields=["edition"])
    catalog.edition = edition


def _describe_changes(changes: list[ContentChange]) -> Iterator[tuple[str, str]]:
    for change in changes[:MOST_CHANGES_LISTED]:
        words = f"{change.bundle} changed its content under version {change.version}: {change.after}, before"
        yield (
            f"package {change.package}",
            f"{words} {change.before}; ask its publisher why, and pin the content that you reviewed",
        )
    left = len(changes) - MOST_CHANGES_LISTED
    if left > 0:
        yield "the catalog", f"{left} more versions changed their content"
