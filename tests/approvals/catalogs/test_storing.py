"""An edition of a catalog is shown when it is whole, and never in part."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from approvals.catalogs.editions import find_catalog, list_packages, store_edition
from approvals.models import CatalogEdition, CatalogPackage
from provisioner.catalogs.file_based import CatalogFile, CatalogLimits, read_catalog
from provisioner.errors import BundleTooLarge, InvalidManifest
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, files, stored

pytestmark = pytest.mark.django_db


def names(row: Any) -> list[str]:
    return [one.name for one in list_packages(row).packages]


def test_an_edition_counts_what_it_holds_and_lists_its_problems() -> None:
    row = catalog()
    edition = stored(row, package(), bundle("1.0.0"), channel("stable", {"name": "harbour.v1.0.0"}), {"no": "schema"})
    edition.refresh_from_db()
    assert (edition.package_count, edition.channel_count, edition.bundle_count) == (1, 1, 1)
    assert edition.problems == [["catalog.json:4", "no document of a catalog: it has no schema"]]
    assert edition.problem_count == 1
    assert edition.read_at is not None


def test_a_reader_sees_the_edition_before_until_the_new_one_is_whole() -> None:
    row, seen = catalog(), []
    stored(row, package("one"))

    def slow() -> Iterator[CatalogFile]:
        yield from files(*(package(f"two{number:03}") for number in range(60)))
        seen.append(names(find_catalog(row.cluster, row.name)))

    def before_it_is_shown() -> None:
        seen.append(names(find_catalog(row.cluster, row.name)))

    store_edition(row, "sha256:two", slow(), check=before_it_is_shown)
    assert seen == [["one"], ["one"]]
    assert len(names(find_catalog(row.cluster, row.name))) == 50


def test_who_has_begun_to_read_an_edition_reads_it_to_its_end() -> None:
    row = catalog()
    stored(row, package("one"))
    reading = find_catalog(row.cluster, row.name)
    stored(row, package("two"))
    assert (names(reading), names(find_catalog(row.cluster, row.name))) == (["one"], ["two"])


def test_of_older_editions_one_is_kept() -> None:
    row = catalog()
    for name in ("one", "two", "three"):
        stored(row, package(name))
    assert sorted(CatalogPackage.objects.values_list("name", flat=True)) == ["three", "two"]


class Breaking(io.BytesIO):
    def readline(self, size: int | None = -1, /) -> bytes:
        if self.tell():
            raise OSError("the connection was closed")
        return super().readline(size)


def test_a_stream_that_breaks_leaves_what_was_shown_and_nothing_else() -> None:
    row = catalog()
    edition = stored(row, package("one"))
    text = f"{json.dumps(package('two'))}\n{json.dumps(package('three'))}\n".encode()
    with pytest.raises(OSError, match="the connection was closed"):
        store_edition(row, "sha256:two", [CatalogFile("catalog.json", lambda: Breaking(text))])
    assert list(CatalogEdition.objects.all()) == [edition]
    assert names(find_catalog(row.cluster, row.name)) == ["one"]


def test_a_page_of_a_server_that_is_down_leaves_what_was_shown() -> None:
    row = catalog()
    stored(row, package("one"))
    page = CatalogFile("index.yaml", lambda: io.BytesIO(b"<html>503 Service Unavailable</html>"))
    with pytest.raises(InvalidManifest, match="this is no catalog"):
        store_edition(row, "sha256:page", [page])
    assert names(find_catalog(row.cluster, row.name)) == ["one"]


def test_what_is_not_wanted_any_more_is_not_shown() -> None:
    row = catalog()

    def not_wanted() -> None:
        raise LookupError("the catalog names another image now")

    with pytest.raises(LookupError):
        store_edition(row, "sha256:one", files(package()), check=not_wanted)
    assert not CatalogEdition.objects.exists()


def test_a_catalog_past_a_limit_is_not_stored() -> None:
    row = catalog()
    with pytest.raises(BundleTooLarge, match="max_documents"):
        store_edition(
            row,
            "sha256:one",
            files(package("a"), package("b")),
            read=partial(read_catalog, limits=CatalogLimits(max_documents=1)),
        )
    assert not CatalogEdition.objects.exists()
