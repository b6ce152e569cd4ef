"""A version that comes to mean something else is found, also when it was away in between."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals import tasks
from approvals.catalogs import history
from approvals.catalogs.history import (
    find_content_change,
    forget_removed_history,
    list_content_changes,
    package_last_seen,
)
from approvals.catalogs.schedule import forget_catalog, observe_catalog
from approvals.models import Catalog, CatalogHistory
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.provisioner.catalogs import bundle, package
from tests.support.stored_catalogs import catalog, stored

pytestmark = pytest.mark.django_db
OLD, NEW = (
    {**bundle("1.0.0"), "image": "example.com/harbour@sha256:old"},
    {**bundle("1.0.0"), "image": "example.com/harbour@sha256:new"},
)


def changed(row: Catalog, name: str = "harbour.v1.0.0") -> tuple[str, str] | None:
    found = find_content_change(row, "harbour", name)
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
    assert len(list_content_changes(row)) == bool(found)


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


def again(row: Catalog, *, is_forgotten: bool) -> Catalog:
    """Somebody deletes the Catalog and creates it again; the events of both come, or a list that has the new one."""
    if is_forgotten:
        forget_catalog(cluster=row.cluster, uid=row.uid)
    meta = {"name": row.name, "uid": f"{row.uid}-2", "generation": 1, "resourceVersion": "9"}
    made = observe_catalog(cluster=row.cluster, obj={"metadata": meta, "spec": row.spec}, writer=None)
    assert made is not None
    return made


@pytest.mark.parametrize("is_forgotten", [True, False], ids=["events", "a list"])
def test_a_catalog_that_is_created_again_knows_what_its_versions_had(is_forgotten: bool) -> None:
    row = catalog()
    stored(row, package(), OLD)
    made = again(row, is_forgotten=is_forgotten)
    assert package_last_seen(made, "harbour") is not None
    assert changed(made) is None
    edition = stored(made, package(), NEW)
    assert changed(made) == ("old", "new")
    assert "changed its content under version 1.0.0" in edition.problems[0][1]
    assert changed(again(made, is_forgotten=is_forgotten)) == ("old", "new"), "nor does that clean it"


def gone(names: str, of: World) -> None:
    for name in names:
        row = catalog(name, of=of.cluster)
        stored(row, package(), OLD)
        forget_catalog(cluster=of.cluster, uid=row.uid)


def known() -> str:
    return "".join(sorted(CatalogHistory.objects.values_list("catalog_name", flat=True)))


def follow(env: World, name: str) -> None:
    source = {"kind": "catalog", "catalog": {"name": name, "package": "harbour"}}
    world.submit_spec(env.cluster, world.seen("quay", world.spec(format="registry-v1", sources=[source])), env.rita)


def test_of_catalogs_that_are_gone_the_last_and_those_that_deployments_follow_are_kept(
    env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_GONE_CATALOGS", 2)
    follow(env, "a")
    stored(catalog("z", of=env.cluster), package(), OLD)
    gone("abcd", env)
    assert known() == "abcdz"
    forget_removed_history(timezone.now())
    assert known() == "acdz"


def test_what_is_gone_for_long_and_that_nobody_follows_is_forgotten(env: World) -> None:
    follow(env, "a")
    stored(catalog("z", of=env.cluster), package(), OLD)
    gone("abc", env)
    again(Catalog(cluster=env.cluster, name="c", uid="uid-c", spec={}), is_forgotten=False)
    forget_removed_history(timezone.now() + history.KEPT_GONE - timedelta(minutes=5))
    assert known() == "abcz"
    CatalogHistory.objects.filter(gone_at__isnull=False).update(gone_at=timezone.now() - history.KEPT_GONE)
    tasks.clear()
    assert known() == "acz"
