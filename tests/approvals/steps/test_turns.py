"""How often a host is asked within a minute, whoever asks: references that may move and catalogs share its turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from approvals.ledger import references
from approvals.models import Catalog, FloatingReference, TaskClaim
from approvals.steps import source_checks
from approvals.steps.catalogs import refresh
from approvals.steps.catalogs.refresh import RefreshCatalog
from approvals.steps.source_checks import Poll
from approvals.working import do
from provisioner.source import Polled
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.stored_catalogs import catalog


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    now = SimpleNamespace(seconds=timezone.now().timestamp())
    monkeypatch.setattr(references, "database_now", lambda: datetime.fromtimestamp(now.seconds, UTC))
    return now


def allow(settings: Any, most: int) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "SOURCE_POLLS_PER_HOST": most}


@pytest.mark.django_db
def test_a_host_has_so_many_turns_within_any_minute(settings: Any, clock: SimpleNamespace) -> None:
    allow(settings, 2)
    assert references.take_turn("example.com") == 0.0
    clock.seconds += 20
    assert references.take_turn("example.com") == 0.0
    clock.seconds += 20
    assert references.take_turn("example.com") == pytest.approx(20.0)
    assert references.take_turn("other.example.com") == 0.0, "each host has its own"
    clock.seconds += 20
    assert references.take_turn("example.com") == 0.0, "the first one was a minute ago"
    assert references.take_turn("example.com") == pytest.approx(20.0)


@pytest.mark.django_db
def test_a_host_with_no_turns_is_never_asked(settings: Any, clock: SimpleNamespace) -> None:
    allow(settings, 0)
    assert references.take_turn("example.com") == 60.0


def test_a_reference_waits_for_a_turn_of_its_host(
    here: World, settings: Any, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(settings, 1)
    asked: list[str] = []

    def see(reference: FloatingReference, *_: Any) -> Polled:
        asked.append(reference.key)
        return Polled("sha256:a")

    monkeypatch.setattr(source_checks, "_ask_readers", lambda *_: None)
    monkeypatch.setattr(source_checks, "_seen", see)
    deployment = world.wish(here.cluster, world.seen("strimzi", world.spec()), here.rita)
    now = timezone.now()
    rows = [
        FloatingReference.objects.create(key=key, kind="git", host="example.com", seen="sha256:a", look_at=now)
        for key in ("first", "second")
    ]
    for position, row in enumerate(rows):
        row.followers.create(deployment=deployment, position=position, name=row.key, interval_seconds=600)
    for row in rows:
        do(Poll(row.pk))
    assert asked == ["first"]
    waits = FloatingReference.objects.get(key="second").look_at
    assert waits is not None
    assert now + timedelta(seconds=50) < waits < now + timedelta(seconds=70)


def test_S40_those_who_wrote_what_follows_a_reference_take_turns(here: World) -> None:
    now, keys = timezone.now(), dict[str, int]()
    writers = [(f"slow-{number}", here.rita, 60) for number in range(6)] + [("innocent", here.ada, 1)]
    for name, writer, minutes in writers:
        deployment = world.wish(here.cluster, world.seen(name, world.spec()), writer)
        row = FloatingReference.objects.create(
            key=name, kind="git", host=f"{name}.example.com", look_at=now - timedelta(minutes=minutes)
        )
        row.followers.create(deployment=deployment, position=9, name=name, interval_seconds=600)
        keys[name] = row.pk
    line = source_checks.in_line(now)
    assert [name for name, pk in keys.items() if pk in line] == ["slow-0", "slow-1", "slow-2", "innocent"]
    for number in range(3):
        rest = {"worker_deaths": 1, "rests_until": now + timedelta(hours=1)}
        TaskClaim.objects.update_or_create(task=references.POLL, key=keys[f"slow-{number}"], defaults=rest)
    line = source_checks.in_line(now)
    assert [name for name, pk in keys.items() if pk in line] == ["slow-3", "slow-4", "slow-5", "innocent"]


def test_S40_a_reference_that_cannot_be_looked_at_leaves_its_place(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = world.wish(here.cluster, world.seen("strimzi", world.spec()), here.rita)
    row = FloatingReference.objects.create(key="odd", kind="git", host="example.com", look_at=timezone.now())
    row.followers.create(deployment=deployment, position=0, name="odd", interval_seconds=600)

    def fails(*_: Any) -> None:
        raise ValueError("nobody expected this")

    monkeypatch.setattr(source_checks, "_ask_readers", fails)
    with pytest.raises(ValueError, match="nobody expected this"):
        Poll(row.pk).look("worker")
    assert source_checks.in_line(timezone.now()) == []


def test_a_catalog_waits_for_a_turn_of_its_host(
    here: World, settings: Any, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(settings, 1)
    asked: list[str] = []

    def read(_: RefreshCatalog, row: Catalog, *__: Any) -> str:
        asked.append(row.name)
        return ""

    monkeypatch.setattr(RefreshCatalog, "_read", read)
    monkeypatch.setattr(refresh, "_show_status", lambda _: None)
    now = timezone.now()
    for name in ("first", "second"):
        row = catalog(name, of=here.cluster)
        source = {"kind": "http", "http": {"url": f"https://example.com/{name}.yaml"}}
        Catalog.objects.filter(pk=row.pk).update(spec={"source": source}, look_at=now, show_at=None)
        do(RefreshCatalog(row.pk))
    assert asked == ["first"]
    waits = Catalog.objects.get(name="second").look_at
    assert waits is not None
    assert now + timedelta(seconds=50) < waits < now + timedelta(seconds=70)
