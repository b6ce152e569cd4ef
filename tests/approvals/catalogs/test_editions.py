"""What is read of a catalog is what its publisher wrote, a page or a package at a time."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.catalogs.editions import find_catalog, find_package, find_presentation, list_packages
from tests.support.approvals.world import cluster
from tests.support.provisioner.catalogs import deprecated, package, read
from tests.support.stored_catalogs import HARBOUR, PNG, catalog, stored

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
        assert (found.name, found.cluster.name, found.edition.problem_count) == ("a", "prod", 1)  # type: ignore[union-attr] # it has one
    assert len(asked) == 1
    assert '"problems"' not in asked[0]["sql"]
    assert find_catalog(prod, "c") is None
