"""A version that comes to mean something else is found, also when it was away in between."""

from __future__ import annotations

from typing import Any

import pytest

from approvals import catalogs
from approvals.models import Catalog
from tests.support.provisioner.catalogs import bundle, package
from tests.support.stored_catalogs import catalog, stored

pytestmark = pytest.mark.django_db
OLD, NEW = (
    {**bundle("1.0.0"), "image": "example.com/harbour@sha256:old"},
    {
        **bundle("1.0.0"),
        "image": "example.com/harbour@sha256:new",
    },
)


def changed(row: Catalog, name: str = "harbour.v1.0.0") -> tuple[str, str] | None:
    found = catalogs.changed_content(row, "harbour", name)
    return (found.before[-3:], found.after[-3:]) if found else None


@pytest.mark.parametrize(
    ("editions", "found"),
    [
        pytest.param([[OLD], [OLD]], None, id="the same"),
        pytest.param([[OLD], [NEW]], ("old", "new"), id="another image"),
        pytest.param([[OLD], [], [NEW]], ("old", "new"), id="away in between"),
        pytest.param([[OLD], [NEW], [NEW]], ("old", "new"), id="it stays said"),
        pytest.param([[OLD], [NEW], [], [NEW]], ("old", "new"), id="taking it away does not clean it"),
        pytest.param([[OLD], [NEW], [OLD]], ("new", "old"), id="and back"),
        pytest.param([[{**OLD, "name": "old-name"}], [NEW]], ("old", "new"), id="under another name"),
        pytest.param([[{**OLD, "image": ""}], [NEW]], None, id="it named none before"),
    ],
)
def test_content_that_changes_under_a_version_is_found(
    editions: list[list[Any]], found: tuple[str, str] | None
) -> None:
    row = catalog()
    for documents in editions:
        stored(row, package(), *documents)
    assert changed(row) == found
    assert len(catalogs.changes_of(row)) == bool(found)


def test_a_change_is_a_problem_of_the_edition_that_brought_it() -> None:
    row = catalog()
    stored(row, package(), OLD)
    edition = stored(row, package(), NEW)
    assert edition.problems[0] == (
        "package harbour",
        (
            "harbour.v1.0.0 changed its content under version 1.0.0: example.com/harbour@sha256:new, before "
            "example.com/harbour@sha256:old; ask its publisher why, and pin the content that you reviewed"
        ),
    )


def test_another_catalog_knows_nothing_of_it() -> None:
    row = catalog()
    stored(row, package(), OLD)
    other = catalog("other", of=row.cluster)
    stored(other, package(), NEW)
    assert changed(other) is None
