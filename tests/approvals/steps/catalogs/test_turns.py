"""Catalogs are read the longest due first, and nobody's keep all others waiting (S40)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals.ledger import claims
from approvals.models import Catalog, Cluster
from approvals.steps.catalogs import refresh
from approvals.steps.catalogs.refresh import RefreshCatalog
from approvals.working import do
from provisioner.catalogs.fetch import FetchedCatalog
from provisioner.errors import SourceTooSlow, Unreachable
from provisioner.source import EgressPolicy
from tests.support.approvals.world import cluster
from tests.support.stored_catalogs import catalog

pytestmark = pytest.mark.django_db(transaction=True)


def due(name: str, author: str, minutes: int, of: Cluster) -> Catalog:
    """One whose image is named as it is, due since so many minutes."""
    row = catalog(name, of=of, look_at=timezone.now() - timedelta(minutes=minutes))
    row.spec = {"source": {"kind": "image", "image": {"ref": f"example.com/{name}:latest"}}}
    row.authors = [{"part": "image.ref", "value": "", "writer": {"username": author} if author else {}}]
    row.save()
    return row


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The catalogs whose reading has begun, in order. While each is read, workers come by for all others."""
    names: list[str] = []

    @contextmanager
    def fetched(source: Any, **_: Any) -> Iterator[FetchedCatalog]:
        names.append(source.ref.removeprefix("example.com/").removesuffix(":latest"))
        for row in Catalog.objects.exclude(name__in=names).order_by("look_at"):
            if row.name not in names:
                do(RefreshCatalog(row.pk))
        raise Unreachable("it sends too slowly")
        yield

    monkeypatch.setattr(refresh, "fetch_catalog", fetched)
    monkeypatch.setattr(refresh, "_show_status", lambda _: None)
    return names


def test_S40_one_author_never_has_all_places(begun: list[str]) -> None:
    env = cluster()
    rows = [due(f"slow-{number}", "mallory", 60 - number, env) for number in range(4)]
    due("innocent", "alice", 1, env)
    do(RefreshCatalog(rows[0].pk))
    assert begun[:3] == ["slow-0", "slow-1", "innocent"]
    assert set(begun) == {"slow-0", "slow-1", "slow-2", "slow-3", "innocent"}
    assert not Catalog.objects.filter(reading_since__isnull=False).exists()


def test_S40_one_cluster_never_has_all_places(begun: list[str]) -> None:
    env, there = cluster("here"), cluster("there")
    rows = [due(f"slow-{number}", f"mallory-{number}", 60 - number, env) for number in range(5)]
    due("innocent", "alice", 1, there)
    do(RefreshCatalog(rows[0].pk))
    assert begun[:4] == ["slow-0", "slow-1", "slow-2", "innocent"]


def test_S40_what_is_slow_holds_no_place_of_what_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people with three catalogs each, whose servers send all they have to, but never end."""
    env, given = cluster(), dict[str, list[float]]()

    @contextmanager
    def fetched(source: Any, *, egress: EgressPolicy, **_: Any) -> Iterator[FetchedCatalog]:
        given.setdefault(source.ref, []).append(egress.timeout_seconds)
        raise SourceTooSlow("not finished within its time")
        yield

    monkeypatch.setattr(refresh, "fetch_catalog", fetched)
    monkeypatch.setattr(refresh, "_show_status", lambda _: None)
    rows = [due(f"slow-{n}", f"mallory-{n % 2}", 60 - n, env) for n in range(6)]
    for row in rows:
        do(RefreshCatalog(row.pk))
    assert set(map(tuple, given.values())) == {(refresh.READ_SECONDS,)}
    innocent = due("innocent", "alice", 1, env)
    assert refresh.in_line(timezone.now()) == [innocent.pk, rows[0].pk], "one of them all in a long turn, behind others"
    do(RefreshCatalog(rows[0].pk))
    assert given["example.com/slow-0:latest"] == [refresh.READ_SECONDS, refresh.LONG_READ_SECONDS]
    assert rows[0].pk not in refresh.in_line(timezone.now()), "and then it rests as whatever fails"


def test_S40_who_is_due_for_longest_comes_first(begun: list[str]) -> None:
    env = cluster()
    late, early = due("late", "", 1, env), due("early", "", 30, env)
    Catalog.objects.filter(pk=early.pk).update(reading_since=timezone.now())  # by a worker that died over it
    busy = [due(f"busy-{number}", f"u{number}", 60, cluster(f"c{number}")) for number in range(3)]
    for row in busy:
        Catalog.objects.filter(pk=row.pk).update(reading_since=timezone.now())
        claims.take(claims.rows_of_task(refresh.TASK, row.pk), f"worker {row.pk}")
    do(RefreshCatalog(late.pk))
    assert begun == []
    assert refresh.in_line(timezone.now()) == [early.pk]
    do(RefreshCatalog(early.pk))
    assert begun == ["early"]


def test_S40_what_crashes_is_not_the_next_in_line_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    row = due("crashing", "mallory", 60, cluster())
    monkeypatch.setattr(refresh, "fetch_catalog", lambda *_, **__: 1 / 0)
    monkeypatch.setattr(refresh, "_show_status", lambda _: None)
    do(RefreshCatalog(row.pk))
    row.refresh_from_db()
    assert (row.problem_code, refresh.in_line(timezone.now())) == ("crashed", [])
