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


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> list[threading.Event]:
    """The stop words of the watches that were started; the watching itself is proved against real API servers."""
    found: list[threading.Event] = []

    def wait_for_the_end(_: Cluster, stop: threading.Event) -> None:
        found.append(stop)
        stop.wait(30)

    monkeypatch.setattr(loop, "watch_cluster", wait_for_the_end)
    return found


def test_of_two_processes_one_watches(here: World, running: list[threading.Event]) -> None:
    one, two = loop.Watches("one"), loop.Watches("two")
    one.look()
    two.look()
    assert (len(one.threads), len(two.threads), len(running)) == (1, 0, 1)
    one.end()
    assert running[0].is_set()
    two.look()
    assert len(two.threads) == 1
    two.end()


def test_a_dead_watchers_cluster_is_taken_over_and_the_slow_one_stops(
    here: World, running: list[threading.Event]
) -> None:
    slow, next_one = loop.Watches("slow"), loop.Watches("next")
    slow.look()
    Cluster.objects.update(watched_until=timezone.now() - timedelta(seconds=1))
    next_one.look()
    slow.look()
    assert (running[0].is_set(), slow.threads, len(next_one.threads)) == (True, {}, 1)
    next_one.end()


def test_holding_on_keeps_the_watch_and_a_finished_thread_is_started_again(
    here: World, running: list[threading.Event]
) -> None:
    watches = loop.Watches("one")
    watches.look()
    watches.look()
    assert len(running) == 1
    thread, stop = watches.threads[here.cluster.pk]
    stop.set()
    thread.join(60)
    watches.look()
    assert len(running) == 2
    assert not claims.hold_watch(here.cluster.pk, "two")
    watches.end()


def test_another_kubeconfig_counts_at_once_also_where_the_one_before_still_works(
    here: World, running: list[threading.Event]
) -> None:
    """The operator may have replaced it because somebody else has it."""
    watches = loop.Watches("one")
    watches.look()
    here.cluster.kubeconfig = "{another: one}"
    here.cluster.save(update_fields=["kubeconfig"])
    watches.look()
    watches.look()
    assert [stop.is_set() for stop in running] == [True, False]
    watches.end()


def test_an_object_that_cannot_be_kept_hides_no_other_and_is_said(here: World) -> None:
    hostile = world.seen("mine", world.spec(config={"tide": "\ud800"}))
    for obj in (hostile, world.seen("strimzi", world.spec())):
        loop._see(here.cluster, obj)
    assert [one.name for one in BundleDeployment.objects.all()] == ["strimzi"]
    here.cluster.refresh_from_db()
    assert here.cluster.problem.startswith("BundleDeployment mine is skipped: the database cannot store it")


class Idle:
    """Informers with nothing to look at."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def run(self, stop: threading.Event) -> None:
        stop.wait(30)


def test_a_watch_that_crashes_takes_its_informers_with_it(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(_: Cluster) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(loop, "Informers", Idle)
    monkeypatch.setattr(loop, "connect", crash)
    stop = threading.Event()
    with pytest.raises(ZeroDivisionError):
        loop.watch_cluster(here.cluster, stop)
    assert stop.is_set()


def test_a_watch_outlives_a_database_that_does_not_answer_for_a_while(
    here: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, tries = threading.Event(), []

    def answer_late(_: Cluster) -> None:
        tries.append(1)
        if len(tries) > 1:
            stop.set()
        raise OperationalError("deadlock detected")

    monkeypatch.setattr(loop, "Informers", Idle)
    monkeypatch.setattr(loop, "connect", answer_late)
    loop.watch_cluster(here.cluster, stop)
    assert len(tries) == 2


def test_a_version_that_is_always_too_old_is_no_storm_of_lists(here: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stop, lists = threading.Event(), []

    def expire(*_: object) -> str:
        raise Expired("too old resource version")

    def begin(*_: object) -> tuple[None, str]:
        lists.append(1)
        return None, "1"

    monkeypatch.setattr(loop, "Informers", Idle)
    monkeypatch.setattr(loop, "connect", lambda _: None)
    monkeypatch.setattr(loop, "_begin", begin)
    monkeypatch.setattr(loop, "follow", expire)
    threading.Timer(0.3, stop.set).start()
    loop.watch_cluster(here.cluster, stop)
    assert len(lists) == 1
