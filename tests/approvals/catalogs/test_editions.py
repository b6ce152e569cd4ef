"""Editions of a catalog: read as written, stored whole or not at all, on every database, and searched within bounds."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.catalogs.editions import find_catalog, find_package, find_presentation, list_packages, store_edition
from approvals.catalogs.search import best_matches, search_packages, search_words
from approvals.models import CatalogEdition, CatalogPackage
from provisioner.catalogs.file_based import CatalogFile, CatalogLimits, read_catalog
from provisioner.errors import BundleTooLarge, InvalidManifest
from tests.support.approvals.databases import manage
from tests.support.approvals.world import cluster
from tests.support.provisioner.catalogs import bundle, channel, deprecated, package, read
from tests.support.stored_catalogs import HARBOUR, PNG, catalog, files, stored, with_words

pytestmark = pytest.mark.django_db


def test_a_package_is_read_as_its_publisher_wrote_it() -> None:
    row = catalog()
    stored(row, *HARBOUR)
    assert find_package(row, "harbour") == read(*HARBOUR).packages["harbour"]
    assert find_package(row, "port") is None
    with CaptureQueriesContext(connection) as asked:
        assert find_package(row, "harbour") is not None
    assert not len(asked), "an edition does not change, so that a look at a request unpacks it once"


def test_the_head_of_the_default_channel_speaks_for_the_package() -> None:
    row = catalog()
    stored(row, *HARBOUR)
    shown = find_presentation(row, "harbour")
    assert shown is not None
    assert (shown.display_name, shown.summary, shown.provider) == ("Harbour Operator", "Keeps ships", "Port Authority")
    assert shown.description == "# Harbour\n\nKeeps ships."
    assert shown.icon is not None
    assert (shown.icon.data, shown.icon.media_type) == (PNG, "image/png")
    assert find_presentation(row, "port") is None


def test_a_summary_names_the_head_and_whether_the_package_is_deprecated() -> None:
    row = catalog()
    stored(row, *HARBOUR, package("quay"), deprecated("olm.package", "", of="quay"))
    harbour, quay = list_packages(row).packages
    assert (harbour.default_channel, harbour.head, harbour.head_version) == ("stable", "harbour.v1.1.0", "1.1.0")
    assert (harbour.channel_count, harbour.bundle_count, harbour.is_deprecated) == (2, 2, False)
    assert (quay.head, quay.is_deprecated) == ("", True)


def test_pages_of_packages_follow_each_other_without_gap() -> None:
    row = catalog()
    stored(row, *(package(name) for name in "edcba"))
    first = list_packages(row, limit=2)
    second = list_packages(row, after=first.after, limit=2)
    third = list_packages(row, after=second.after, limit=2)
    assert [[one.name for one in page.packages] for page in (first, second, third)] == [["a", "b"], ["c", "d"], ["e"]]
    assert third.after == ""


@pytest.mark.parametrize(
    ("search", "found"),
    [
        pytest.param("harb", ["harbour"], id="part of a name"),
        pytest.param("KEEPS port", ["harbour"], id="words of summary and provider"),
        pytest.param("ships quay", [], id="every word"),
        pytest.param("SHIPS.", ["harbour"], id="words of a description"),
        pytest.param("100%", [], id="no pattern"),
        pytest.param("a\0", ["harbour", "quay"], id="what no database takes"),
    ],
)
def test_a_search_looks_in_names_and_words(search: str, found: list[str]) -> None:
    row = catalog()
    stored(row, *HARBOUR, package("quay"))
    assert [one.name for one in list_packages(row, search).packages] == found


def test_a_catalog_that_was_never_read_has_no_packages() -> None:
    row = catalog()
    assert list_packages(row).packages == ()
    assert find_package(row, "harbour") is None


def test_a_catalog_is_found_by_one_question_without_its_problems() -> None:
    prod = cluster()
    stored(catalog("a", of=prod), package(), {"no": "schema"})
    with CaptureQueriesContext(connection) as asked:
        found = find_catalog(prod, "a")
        assert found is not None
        assert (found.name, found.cluster.name, found.edition.problem_count) == ("a", "prod", 1)  # type: ignore[union-attr] # it has an edition
    assert len(asked) == 1
    assert '"problems"' not in asked[0]["sql"]
    assert find_catalog(prod, "c") is None


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


PROGRAM = """
import io, json
from datetime import timedelta
from django.db import connections
from django.utils import timezone
from approvals.catalogs.editions import find_catalog, find_presentation, list_packages, store_edition
from approvals.catalogs.history import find_content_change, forget_removed_history
from approvals.catalogs.schedule import forget_catalog, observe_catalog
from approvals.catalogs.search import best_matches, search_excerpts, search_packages
from approvals.models import Catalog, CatalogEdition, CatalogPackage, Cluster
from provisioner.catalogs.file_based import CatalogFile

prod = Cluster.objects.create(name="prod", uid="u", kubeconfig="{}", created_at=timezone.now())
obj = {"metadata": {"name": "port", "uid": "c", "generation": 1, "resourceVersion": "5"}, "spec": {"source": {}}}
row = observe_catalog(cluster=prod, obj=obj, writer=None)
seen = []

def bundle(version, image):
    about = {"type": "olm.package", "value": {"packageName": "harbour", "version": version}}
    words = {"type": "olm.csv.metadata", "value": {"displayName": "Har\\0bour", "description": "a\\0b calls a Pilot",
        "keywords": ["Ti\\0de", "Moor"]}}
    return {"schema": "olm.bundle", "name": "harbour.v" + version, "package": "harbour", "image": image,
            "properties": [about, words]}

def files(*more):
    documents = [{"schema": "olm.package", "name": "harbour"}, *more]
    text = "\\n".join(map(json.dumps, documents)).encode()
    return [CatalogFile("a.json", lambda: io.BytesIO(text))]

def look():
    shown = find_catalog(prod, "port")
    seen.append([one.head_version for one in list_packages(shown).packages])

store_edition(row, "sha256:one", files(bundle("1.0.0", "old")))
store_edition(row, "sha256:two", files(bundle("1.0.0", "new"), bundle("2.0.0", "two")), check=look)
look()
changed = find_content_change(row, "harbour", "harbour.v1.0.0")
found = search_packages([row.pk], "PILOT harbour")
excerpts = list(search_excerpts(found, "pilot").values()) + best_matches(found, "pilot")
by_keyword = [[one.name, one.is_by_keyword] for word in ("moor", "pilot") for one in search_packages([row.pk], word)]
words = find_presentation(find_catalog(prod, "port"), "harbour")
forget_catalog(cluster=prod, uid="c")
left = CatalogEdition.objects.count() + CatalogPackage.objects.count()
forgotten = [forget_removed_history(timezone.now() + timedelta(days=days)) for days in (364, 366)]
print(json.dumps({"seen": seen, "changed": [changed.before, changed.after], "name": words.display_name, "left": left,
    "forgotten": forgotten, "excerpts": excerpts, "by_keyword": by_keyword, "keywords": words.facts.keywords}))
"""


def test_an_edition_is_shown_when_it_is_whole(migrated_database_url: str) -> None:
    found = json.loads(manage(migrated_database_url, "shell", "--verbosity", "0", "-c", PROGRAM).splitlines()[-1])
    assert found == {
        "seen": [["1.0.0"], ["2.0.0"]],
        "changed": ["old", "new"],
        "name": "Har\ufffdbour",
        "left": 0,
        "forgotten": [0, 1],
        "by_keyword": [["harbour", 1], ["harbour", 0]],
        "keywords": ["Tide", "Moor"],
        "excerpts": ["a\ufffdb calls a Pilot"],
    }


@pytest.mark.parametrize(
    ("search", "words"),
    [
        pytest.param(" ".join("abcdefgh"), 8, id="eight words"),
        pytest.param(" ".join("abcdefghi"), 8, id="nine words"),
        pytest.param(f"{'a' * 198} b", 2, id="200 characters"),
        pytest.param(f"{'a' * 199} b", 1, id="201 characters"),
    ],
)
def test_so_many_words_and_characters_are_looked_for(search: str, words: int) -> None:
    assert len(search_words(search)) == words


@pytest.mark.parametrize(("before", "found"), [(16_384 - 5, ["harbour"]), (16_384 - 4, [])], ids=["within", "beyond"])
def test_so_much_of_a_description_is_searched(before: int, found: list[str]) -> None:
    row = catalog()
    described = with_words(bundle("1.0.0"), description=f"{'.' * before}pilot")
    stored(row, package(defaultChannel="stable"), described, channel("stable", {"name": "harbour.v1.0.0"}))
    assert [one.name for one in list_packages(row, "pilot").packages] == found


def test_a_page_has_at_most_200_packages_and_a_search_names_20_of_them_first() -> None:
    row = catalog()
    stored(row, *(package(f"quay-{at:03}") for at in range(201)))
    page = list_packages(row, "quay", limit=1_000)
    assert (len(page.packages), page.after) == (200, "quay-199")
    rows = search_packages([row.pk], "quay")
    assert rows.count() == 201
    assert len(best_matches(rows, "quay")) == 20
