"""Stores an edition of a catalog: written in parts while nobody sees it, and shown at once when it is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Protocol

from django.db import transaction

from approvals.catalogs.history import ContentChange, remember
from approvals.clock import database_now
from approvals.locks import for_change
from approvals.models import Catalog, CatalogEdition, CatalogPackage, CatalogPresentation
from provisioner.catalogs import (
    READING,
    CatalogFile,
    Package,
    PackagePresentation,
    PresentationShelf,
    head_of,
    packed_facts,
    packed_package,
    read_catalog,
)
from provisioner.catalogs import (
    Catalog as CatalogContent,
)


class ReadCatalog(Protocol):
    def __call__(self, files: Iterable[CatalogFile], /, *, shelf: PresentationShelf) -> CatalogContent: ...


AT_ONCE = 50
MOST_CHANGES_LISTED = 200


def store(
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
                _keep(edition, [(package, shelf.of(package)) for package in batch])
        _show(catalog, edition, found, check)
    except BaseException:
        edition.delete()
        raise
    return edition


def _batches(packages: Iterable[Package]) -> Iterator[list[Package]]:
    left = iter(packages)
    while batch := list(islice(left, AT_ONCE)):
        yield batch


@transaction.atomic
def _keep(edition: CatalogEdition, batch: list[tuple[Package, PackagePresentation]]) -> None:
    rows = CatalogPackage.objects.bulk_create([_row(edition, package, words) for package, words in batch])
    CatalogPresentation.objects.bulk_create(
        CatalogPresentation(
            package=row,
            description=words.description,
            icon=words.icon.data if words.icon else b"",
            icon_type=words.icon.media_type if words.icon else "",
            no_icon=words.no_icon,
            facts=packed_facts(words.facts),
        )
        for row, (_, words) in zip(rows, batch, strict=True)
    )


def _row(edition: CatalogEdition, package: Package, words: PackagePresentation) -> CatalogPackage:
    head = head_of(package)
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
        is_deprecated=any(one.schema == "olm.package" for one in package.deprecations),
        searched_text="\n".join((package.name, words.display_name, words.summary, words.provider)).lower(),
        searched_keywords="\n".join(words.facts.keywords).lower(),
        document=packed_package(package),
    )


@transaction.atomic(durable=True)
def _show(catalog: Catalog, edition: CatalogEdition, found: CatalogContent, check: Callable[[], None]) -> None:
    row = for_change(Catalog.objects.filter(pk=catalog.pk)).get()
    check()
    now = database_now()
    problems = [*_of_changes(remember(row, found.packages, now)), *((one.where, one.words) for one in found.problems)]
    edition.read_at = now
    edition.package_count = len(found.packages)
    edition.channel_count = sum(len(one.channels) for one in found.packages.values())
    edition.bundle_count = sum(len(one.bundles) for one in found.packages.values())
    edition.problems, edition.problem_count = problems, len(problems)
    edition.save()
    # Whoever has begun to read the one before reads on.
    row.editions.exclude(pk__in=[edition.pk, row.edition_id]).delete()
    row.edition = edition
    row.save(update_fields=["edition"])
    catalog.edition = edition


def _of_changes(changes: list[ContentChange]) -> Iterator[tuple[str, str]]:
    for one in changes[:MOST_CHANGES_LISTED]:
        words = f"{one.bundle} changed its content under version {one.version}: {one.after}, before {one.before}"
        yield f"package {one.package}", f"{words}; ask its publisher why, and pin the content that you reviewed"
    left = len(changes) - MOST_CHANGES_LISTED
    if left > 0:
        yield "the catalog", f"{left} more versions changed their content"
