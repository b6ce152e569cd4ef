"""A search and its pages are bounded as the manual says, whatever is asked for."""

from __future__ import annotations

import pytest

from approvals.catalogs.editions import list_packages
from approvals.catalogs.search import best_matches, search_packages, search_words
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, stored, with_words

pytestmark = pytest.mark.django_db


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
