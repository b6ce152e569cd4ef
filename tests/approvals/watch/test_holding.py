"""Who watches a cluster: one process at a time, the next one when it is gone."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from approvals.ledger import claims
from approvals.models import BundleDeployment, Cluster
from approvals.watch import loop
from provisioner.errors import Expired
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.patience import scaled, wait_for

FOR_EVER_SECONDS = 3600.0


def until_begun(running: list[threading.Event], count: int) -> None:
    """Until so many watches have begun, in their threads."""
    wait_for(lambda: len(running), "watches begin", is_so=lambda begun: begun == count)


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> list[threading.Event]:
    """The stop words of the watches that were started; the watching itself is proved against real API servers."""
    found: list[threading.Event] = []

    def wait_for_the_end(_: Cluster, stop: threading.Event) -> None:
        found.append(stop)
        stop.wait(FOR_EVER_SECONDS)

    monkeypatch.setattr(loop, "watch_cluster", wait_for_the_end)
    return found


def test_of_two_processes_one_watches(env: World, running: list[threading.Event]) -> None:
    one, two = loop.Watches("one"), loop.Watches("two")
    one.look()
    two.look()
    assert (len(one.threads), len(two.threads)) == (1, 0)
    until_begun(running, 1)
    one.end()
    assert running[0].is_set()
    two.look()
    assert len(two.threads) == 1
    two.end()


def test_a_dead_watchers_cluster_is_taken_over_and_the_slow_one_stops(
    env: World, running: list[threading.Event]
) -> None:
    slow, next_one = loop.Watches("slow"), loop.Watches("next")
    slow.look()
    (first,) = slow.threads.values()
    Cluster.objects.update(watched_until=timezone.now() - timedelta(seconds=1))
    next_one.look()
    _, stop = first
    slow.look()
    assert (stop.is_set(), slow.threads, len(next_one.threads)) == (True, {}, 1)
    next_one.end()


def test_holding_on_keeps_the_watch_and_a_finished_thread_is_started_again(
    env: World, running: list[threading.Event]
) -> None:
    watches = loop.Watches("one")
    watches.look()
    thread, stop = watches.threads[env.cluster.pk]
    watches.look()
    assert watches.threads[env.cluster.pk] == (thread, stop)
    stop.set()
    thread.join(scaled(60))
    watches.look()
    until_begun(running, 2)
    assert not claims.hold_watch(env.cluster.pk, "two")
    watches.end()


def test_another_kubeconfig_counts_at_once_also_where_the_one_before_still_works(
    env: World, running: list[threading.Event]
) -> None:
    """The operator may have replaced it because somebody else has it."""
    watches = loop.Watches("one")
    watches.look()
    until_begun(running, 1)
    env.cluster.kubeconfig = "{another: one}"
    env.cluster.save(update_fields=["kubeconfig"])
    watches.look()
    watches.look()
    until_begun(running, 2)
    assert [stop.is_set() for stop in running] == [True, False]
    watches.end()


def test_an_object_that_cannot_be_kept_hides_no_other_and_is_said(env: World) -> None:
    hostile = world.seen("mine", world.spec(config={"tide": "\ud800"}))
    for obj in (hostile, world.seen("strimzi", world.spec())):
        loop._see(env.cluster, obj)
    assert [one.name for one in BundleDeployment.objects.all()] == ["strimzi"]
    env.cluster.refresh_from_db()
    assert env.cluster.problem.startswith("BundleDeployment mine is skipped: the database cannot store it")


class Idle:
    """Informers with nothing to look at."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def run(self, stop: threading.Event) -> None:
        stop.wait(FOR_EVER_SECONDS)


def test_a_watch_that_crashes_takes_its_informers_with_it(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: Cluster) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(loop, "Informers", Idle)
    monkeypatch.setattr(loop, "connect", crash)
    stop = threading.Event()
    with pytest.raises(ZeroDivisionError):
        loop.watch_cluster(env.cluster, stop)
    assert stop.is_set()


def test_a_watch_outlives_a_database_that_does_not_answer_for_a_while(
    env: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, tries = threading.Event(), []

    def answer_late(_: Cluster) -> None:
        tries.append(1)
        if len(tries) > 1:
            stop.set()
        raise OperationalError("deadlock detected")

    monkeypatch.setattr(loop, "Informers", Idle)
    monkeypatch.setattr(loop, "connect", answer_late)
    loop.watch_cluster(env.cluster, stop)
    assert len(tries) == 2


class Waits(threading.Event):
    """Where the test itself waits, that takes no time and is kept; the third time is the last."""

    def __init__(self, waits: list[float]) -> None:
        super().__init__()
        self._waits = waits

    def wait(self, timeout: float | None = None) -> bool:
        if threading.current_thread() is not threading.main_thread():
            return super().wait(timeout)
        self._waits.append(timeout or 0.0)
        if len(self._waits) == 3:
            self.set()
        return self.is_set()


def test_a_version_that_is_always_too_old_is_no_storm_of_lists(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    stop, lists = Waits(waits), []

    def expire(*_: object) -> str:
        raise Expired("too old resource version")

    def begin(*_: object) -> tuple[None, str]:
        lists.append(1)
        return None, "1"

    monkeypatch.setattr(loop, "Informers", Idle)
    monkeypatch.setattr(loop, "connect", lambda _: None)
    monkeypatch.setattr(loop, "_begin", begin)
    monkeypatch.setattr(loop, "follow", expire)
    loop.watch_cluster(env.cluster, stop)
    assert (len(lists), waits) == (3, [loop.EXPIRED_SECONDS] * 3)
