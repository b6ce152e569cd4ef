"""How often references that may move are looked at, for whom one look is, and how often a host is asked by anybody."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

from approvals.ledger import references
from approvals.models import BundleDeployment, Catalog, Cluster, FloatingReference, TaskClaim
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


def allow(settings: Any, most: int, **values: int) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "SOURCE_POLLS_PER_HOST": most, "SOURCE_POLL_SECONDS": 900, **values}


def followed(deployment: BundleDeployment, key: str, *, position: int = 0, **columns: Any) -> FloatingReference:
    """A reference that is due and that a deployment follows."""
    known = {"kind": "git", "host": "example.com", "look_at": timezone.now(), **columns}
    row = FloatingReference.objects.create(key=key, **known)
    row.followers.create(deployment=deployment, position=position, name=key, interval_seconds=600)
    return row


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
    env: World, settings: Any, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(settings, 1)
    asked: list[str] = []

    def see(reference: FloatingReference, *_: Any) -> Polled:
        asked.append(reference.key)
        return Polled("sha256:a")

    monkeypatch.setattr(source_checks, "_ask_readers", lambda *_: None)
    monkeypatch.setattr(source_checks, "_seen", see)
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    now = timezone.now()
    rows = [
        followed(deployment, key, position=position, seen="sha256:a")
        for position, key in enumerate(("first", "second"))
    ]
    for row in rows:
        do(Poll(row.pk))
    assert asked == ["first"]
    waits = FloatingReference.objects.get(key="second").look_at
    assert waits is not None
    assert now + timedelta(seconds=50) < waits < now + timedelta(seconds=70)


def test_S40_those_who_wrote_what_follows_a_reference_take_turns(env: World) -> None:
    now, keys = timezone.now(), dict[str, int]()
    writers = [(f"slow-{number}", env.rita, 60) for number in range(6)] + [("innocent", env.ada, 1)]
    for name, writer, minutes in writers:
        deployment = world.submit_spec(env.cluster, world.seen(name, world.spec()), writer)
        since = now - timedelta(minutes=minutes)
        keys[name] = followed(deployment, name, position=9, host=f"{name}.example.com", look_at=since).pk
    line = source_checks.in_line(now)
    assert [name for name, pk in keys.items() if pk in line] == ["slow-0", "slow-1", "slow-2", "innocent"]
    for number in range(3):
        rest = {"worker_deaths": 1, "rests_until": now + timedelta(hours=1)}
        TaskClaim.objects.update_or_create(task=references.POLL, key=keys[f"slow-{number}"], defaults=rest)
    line = source_checks.in_line(now)
    assert [name for name, pk in keys.items() if pk in line] == ["slow-3", "slow-4", "slow-5", "innocent"]


def test_S40_a_reference_that_cannot_be_looked_at_leaves_its_place(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    row = followed(deployment, "odd")

    def fails(*_: Any) -> None:
        raise ValueError("nobody expected this")

    monkeypatch.setattr(source_checks, "_ask_readers", fails)
    with pytest.raises(ValueError, match="nobody expected this"):
        Poll(row.pk).look("worker")
    assert source_checks.in_line(timezone.now()) == []


def test_a_catalog_waits_for_a_turn_of_its_host(
    env: World, settings: Any, clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(settings, 1)
    asked: list[str] = []

    def read(_: RefreshCatalog, row: Catalog, *__: Any) -> str:
        asked.append(row.name)
        return ""

    monkeypatch.setattr(RefreshCatalog, "_store_content", read)
    monkeypatch.setattr(refresh, "_show_status", lambda _: None)
    now = timezone.now()
    for name in ("first", "second"):
        row = catalog(name, of=env.cluster)
        source = {"kind": "http", "http": {"url": f"https://example.com/{name}.yaml"}}
        Catalog.objects.filter(pk=row.pk).update(spec={"source": source}, look_at=now, show_at=None)
        do(RefreshCatalog(row.pk))
    assert asked == ["first"]
    waits = Catalog.objects.get(name="second").look_at
    assert waits is not None
    assert now + timedelta(seconds=50) < waits < now + timedelta(seconds=70)


REPOSITORY = "https://git.example.com/harbour.git"


def follows(
    cluster: Cluster, name: str, *, interval: str = "", secret: str = "", repository: str = REPOSITORY
) -> BundleDeployment:
    """A deployment of a branch; `secret` opens it."""
    auth = {"auth": {"secret": {"name": secret, "namespace": "harbour"}}} if secret else {}
    git = {"repository": repository, "ref": {"branch": "main"}, **auth}
    source = {"kind": "git", "git": git, **({"interval": interval} if interval else {})}
    return world.submit_spec(cluster, world.seen(name, world.spec(sources=[source])))


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        pytest.param(["1s"], 300, id="no shorter than the operator allows"),
        pytest.param([""], 900, id="as the operator has it"),
        pytest.param(["2h", "10m", "Never"], 600, id="the shortest of all"),
        pytest.param(["Never"], 0, id="never"),
    ],
)
def test_a_reference_is_looked_at_as_often_as_somebody_wants_and_may(
    env: World, settings: Any, asked: list[str], seconds: int
) -> None:
    allow(settings, 10, SOURCE_POLL_MIN_SECONDS=300)
    for number, interval in enumerate(asked):
        follows(env.cluster, f"harbour-{number}", interval=interval)
    reference = FloatingReference.objects.get()
    assert references.interval(reference) == seconds
    assert (reference.look_at is not None) is bool(seconds)
    allow(settings, 0, SOURCE_POLL_MIN_SECONDS=300)
    assert references.interval(reference) == 0, "the operator has turned looks off"


def test_one_look_is_for_all_deployments_that_name_the_reference(env: World, settings: Any) -> None:
    allow(settings, 10)
    for number in range(3):
        follows(env.cluster, f"harbour-{number}")
    other = Cluster.objects.create(name="test", uid="other", kubeconfig="{}", created_at=timezone.now())
    follows(other, "harbour")
    assert FloatingReference.objects.get().followers.count() == 4
    follows(env.cluster, "quay", repository="https://git.example.com/quay.git")
    assert FloatingReference.objects.count() == 2


def test_a_look_with_a_secret_is_for_those_of_the_same_secret_of_the_same_cluster(env: World, settings: Any) -> None:
    allow(settings, 10)
    other = Cluster.objects.create(name="test", uid="other", kubeconfig="{}", created_at=timezone.now())
    for cluster, name, secret in (
        (env.cluster, "open", ""),
        (env.cluster, "one", "pull"),
        (env.cluster, "two", "pull"),
        (env.cluster, "three", "other"),
        (other, "four", "pull"),
    ):
        follows(cluster, name, secret=secret)
    found = [
        sorted(follower.deployment.name for follower in row.followers.select_related("deployment"))
        for row in FloatingReference.objects.all()
    ]
    assert sorted(found) == [["four"], ["one", "two"], ["open"], ["three"]]
