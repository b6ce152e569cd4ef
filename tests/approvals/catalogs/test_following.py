"""Whose a source is: the one who wrote it, whatever others change beside it (S05)."""

from __future__ import annotations

from typing import Any

import pytest

from approvals import catalogs
from approvals.models import Catalog, Cluster
from tests.support.approvals.world import cluster

pytestmark = pytest.mark.django_db

AUTH = {"secret": {"name": "pull", "namespace": "port"}}
MALLORYS = {"kind": "http", "http": {"url": "https://mallory.example.com/catalog.yaml", "auth": AUTH}}
ALICES = {"kind": "http", "http": {"url": "https://port.example.com/catalog.yaml", "auth": AUTH}}
MALLORY, ALICE = {"username": "mallory"}, {"username": "alice"}


def saw(of: Cluster, generation: int, source: dict[str, Any], writer: dict[str, Any] | None, **more: Any) -> Catalog:
    meta = {"name": "port", "uid": "u", "generation": generation, "resourceVersion": str(100 + generation)}
    catalogs.see(cluster=of, obj={"metadata": meta, "spec": {"source": source, **more}}, writer=writer)
    return Catalog.objects.get()


@pytest.mark.parametrize("author", [MALLORY, None], ids=["a known author", "an unknown author"])
def test_S05_who_changes_the_interval_is_not_the_author_of_the_source(author: dict[str, Any] | None) -> None:
    here = cluster()
    saw(here, 1, MALLORYS, author)
    row = saw(here, 2, MALLORYS, ALICE, interval="5m")
    assert (row.spec["interval"], row.writer) == ("5m", author or {})
    assert saw(here, 4, MALLORYS, ALICE, interval="6m").writer == (author or {}), "after a gap as well"


def test_whoever_wrote_the_source_and_writes_again_has_their_groups_proved_anew() -> None:
    here, again = cluster(), {**ALICE, "groups_at": "2026-11-25T12:00:00Z"}
    saw(here, 1, ALICES, ALICE)
    assert saw(here, 2, ALICES, again, interval="5m").writer == again


def test_S05_who_writes_another_source_is_its_author() -> None:
    here = cluster()
    saw(here, 1, MALLORYS, MALLORY)
    assert saw(here, 2, ALICES, ALICE).writer == ALICE
    assert saw(here, 3, MALLORYS, None).writer == {}


def test_S05_a_source_that_is_new_after_a_generation_nobody_saw_is_nobodys() -> None:
    """Mallory may have written it in between, and the last writer no more than the interval."""
    here = cluster()
    saw(here, 1, ALICES, ALICE)
    assert saw(here, 3, MALLORYS, ALICE, interval="5m").writer == {}
