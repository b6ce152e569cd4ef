"""A Catalog as it is seen: whose each part of its source is, and what counts where a cluster was restored."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals.catalogs.schedule import authors_by_part, observe_catalog, schedule_rereads
from approvals.models import Catalog, CatalogEdition, Cluster
from provisioner.catalogs.values import READING
from tests.support.approvals.world import cluster
from tests.support.stored_catalogs import HARBOUR, stored
from tests.support.stored_catalogs import catalog as stored_catalog

pytestmark = pytest.mark.django_db

AUTH = {"secret": {"name": "pull", "namespace": "port"}}
MALLORYS = {"kind": "http", "http": {"url": "https://mallory.example.com/catalog.yaml", "auth": AUTH}}
ALICES = {"kind": "http", "http": {"url": "https://port.example.com/catalog.yaml", "auth": AUTH}}
OTHER = {"kind": "git", "git": {"repository": "https://git.example.com/x", "ref": {"tag": "v1"}, "directory": ""}}
MALLORY, ALICE = {"username": "mallory"}, {"username": "alice"}


def saw(
    of: Cluster,
    generation: int,
    source: dict[str, Any],
    writer: dict[str, Any] | None,
    *,
    listed: bool = False,
    **more: Any,
) -> Catalog:
    meta = {"name": "port", "uid": "u", "generation": generation, "resourceVersion": str(100 + generation)}
    obj = {"metadata": meta, "spec": {"source": source, **more}}
    observe_catalog(cluster=of, obj=obj, writer=writer, is_listed=listed)
    return Catalog.objects.get()


def authors(row: Catalog) -> dict[str, str] | None:
    found = authors_by_part(row.authors, row.spec)
    return None if found is None else {part: writer["username"] for part, writer in found.items()}


def all_of(name: str) -> dict[str, str]:
    return dict.fromkeys(("kind", "http.url", "http.auth.secret.name", "http.auth.secret.namespace"), name)


@pytest.mark.parametrize(("reading", "is_due"), [(READING - 1, True), (READING, False)], ids=["before", "now"])
def test_what_is_never_looked_at_is_read_anew_where_its_rules_are_of_before(reading: int, is_due: bool) -> None:
    here, now = cluster(), timezone.now()
    pinned, unread = stored_catalog(of=here), stored_catalog("unread", of=here)
    stored(pinned, *HARBOUR)
    CatalogEdition.objects.update(reading=reading)
    schedule_rereads(now)
    pinned.refresh_from_db()
    assert pinned.look_at == (now if is_due else None)
    unread.refresh_from_db()
    assert unread.look_at is None


def test_a_look_that_waits_for_its_time_is_not_called_forward() -> None:
    row, now = stored_catalog(), timezone.now()
    stored(row, *HARBOUR)
    Catalog.objects.update(look_at=now + timedelta(minutes=5))
    CatalogEdition.objects.update(reading=READING - 1)
    schedule_rereads(now)
    row.refresh_from_db()
    assert row.look_at == now + timedelta(minutes=5)


@pytest.mark.parametrize("author", [MALLORY, None], ids=["a known author", "an unknown author"])
def test_S05_who_changes_the_interval_is_not_the_author_of_the_source(author: dict[str, Any] | None) -> None:
    here, expected = cluster(), all_of("mallory") if author else None
    saw(here, 1, MALLORYS, author)
    row = saw(here, 2, MALLORYS, ALICE, interval="5m")
    assert (row.spec["interval"], authors(row)) == ("5m", expected)
    assert authors(saw(here, 4, MALLORYS, ALICE, interval="6m")) == expected, "after a gap as well"


def test_whoever_wrote_the_source_and_writes_again_has_their_groups_proved_anew() -> None:
    here, again = cluster(), {**ALICE, "groups_at": "2026-11-25T12:00:00Z"}
    saw(here, 1, ALICES, ALICE)
    row = saw(here, 2, ALICES, again, interval="5m")
    assert {one["writer"]["groups_at"] for one in row.authors} == {again["groups_at"]}


def test_S05_who_writes_a_part_of_the_source_is_the_author_of_that_part() -> None:
    here = cluster()
    saw(here, 1, MALLORYS, MALLORY)
    assert authors(saw(here, 2, ALICES, ALICE)) == {**all_of("mallory"), "http.url": "alice"}
    assert authors(saw(here, 3, MALLORYS, None)) is None


def test_S05_who_takes_a_part_of_the_source_out_has_written_it_too() -> None:
    here = cluster()
    folder = {**OTHER, "git": {**OTHER["git"], "directory": "public"}}  # type: ignore[dict-item] # OTHER has a mapping there
    saw(here, 1, folder, ALICE)
    found = authors(saw(here, 2, OTHER, MALLORY))
    assert found is not None
    assert (found["git.directory"], found["git.repository"]) == ("mallory", "alice")


def test_S05_a_source_of_another_kind_has_no_part_of_the_one_before() -> None:
    here = cluster()
    saw(here, 1, MALLORYS, MALLORY)
    found = authors(saw(here, 2, OTHER, ALICE))
    assert found == dict.fromkeys(("kind", "git.repository", "git.ref.tag"), "alice")


def test_S05_a_source_that_is_new_after_a_generation_nobody_saw_is_nobodys() -> None:
    """Mallory may have written it in between, and the last writer no more than the interval."""
    here = cluster()
    saw(here, 1, ALICES, ALICE)
    assert authors(saw(here, 3, MALLORYS, ALICE, interval="5m")) is None


def test_S05_authors_of_another_text_than_the_spec_has_are_nobody() -> None:
    """A row that a process of another version has written, say."""
    here = cluster()
    row = saw(here, 1, MALLORYS, ALICE)
    assert authors_by_part(row.authors, {"source": ALICES}) is None
    assert authors_by_part([], {"source": ALICES}) is None


@pytest.mark.parametrize("generation", [2, 5], ids=["an earlier generation", "the same generation"])
def test_a_restored_cluster_has_the_catalog_that_it_lists(generation: int) -> None:
    here = cluster()
    saw(here, 5, ALICES, ALICE)
    row = saw(here, generation, MALLORYS, None, listed=True)
    assert (row.generation, row.spec["source"], authors(row)) == (generation, MALLORYS, None)
    row = saw(here, generation + 1, MALLORYS, ALICE, interval="5m")
    assert authors(row) is None, "nobody knows who wrote what came back"


def test_an_event_that_is_older_than_the_row_changes_nothing() -> None:
    here = cluster()
    saw(here, 5, ALICES, ALICE)
    row = saw(here, 4, MALLORYS, MALLORY)
    assert (row.generation, row.spec["source"]) == (5, ALICES)


def test_labels_and_priority_of_a_catalog_are_kept_as_they_were_seen_last() -> None:
    here = cluster()
    for generation, priority, labels in ((1, 10, {"tier": "stable"}), (1, 10, {"tier": "beta"}), (2, -1, {})):
        meta = {"name": "port", "uid": "u", "generation": generation, "resourceVersion": "7", "labels": labels}
        observe_catalog(
            cluster=here, obj={"metadata": meta, "spec": {"source": ALICES, "priority": priority}}, writer=None
        )
        row = Catalog.objects.get()
        assert (row.labels, row.priority) == (labels, priority)
    assert saw(here, 3, ALICES, None).priority == 0
