"""A thread that keeps a watch goes on whatever it meets, more and more rarely, and what it met is logged and counted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import OperationalError

from approvals import instruments
from approvals.models import Cluster
from approvals.watch import expected_changes, informers, lookout
from approvals.watch.expected_changes import ExpectedChanges
from approvals.watch.informers import Informers
from approvals.watch.lookout import Lookout
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import Expired, Forbidden, TryLater
from tests.support.approvals.fixtures import World
from tests.support.kubernetes.live import wait_until

FOR_EVER_SECONDS = 3600.0
UNFORESEEN = "uncaught exception: a watch was interrupted and continues"


@dataclass
class Meeting(Lookout):
    """Meets one thing after the other, and then looks until it is ended."""

    meets: Iterator[BaseException]
    looks: list[float] = field(default_factory=list)
    doubts: int = 0
    refusals: int = 0

    @property
    def what(self) -> str:
        return "things"

    def look(self, api: Api) -> None:
        self.looks.append(time.monotonic())
        for one in self.meets:
            raise one
        self.stop.wait(FOR_EVER_SECONDS)

    def doubt(self) -> None:
        self.doubts += 1

    def refused(self) -> None:
        self.refusals += 1


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookout, "connect", lambda _: None)
    monkeypatch.setattr(lookout, "FIRST_WAIT_SECONDS", 0.02)
    monkeypatch.setattr(lookout, "MOST_JITTER_SECONDS", 0.02)


def after(*meets: BaseException) -> Meeting:
    """A lookout that has met all of these in its thread, and has looked once more."""
    made = Meeting(iter(meets), cluster=Cluster(name="met"))
    made.start()
    try:
        wait_until(lambda: len(made.looks) > len(meets), "it looks again")
        assert made.is_alive
    finally:
        made.end()
    return made


def counted(name: str, **labels: str) -> float:
    return instruments.registry.get_sample_value(f"pratique_{name}_total", labels) or 0.0


def figures() -> tuple[float, float]:
    """Breaks of the watches of this cluster, and uncaught exceptions."""
    return counted("watch_breaks", cluster="met"), counted("uncaught_exceptions", where="thread")


def grown(before: tuple[float, float]) -> tuple[float, float]:
    return figures()[0] - before[0], figures()[1] - before[1]


def messages(records: Iterable[logging.LogRecord]) -> list[str]:
    return [one.getMessage() for one in records if one.name.startswith("approvals.watch")]


def test_what_nobody_foresaw_is_logged_whole_and_counted_and_the_watch_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = figures()
    made = after(ZeroDivisionError("a bug"), KeyError("another"))
    assert messages(caplog.records) == [UNFORESEEN] * 2
    assert all(one.exc_info for one in caplog.records)
    assert (grown(before), made.doubts) == ((2, 2), 2)


def test_what_a_cluster_or_database_does_is_no_bug(caplog: pytest.LogCaptureFixture) -> None:
    before = figures()
    made = after(TryLater("no answer"), OperationalError("no answer"))
    assert messages(caplog.records) == ["a watch broke off"] * 2
    assert grown(before) == (2, 0)
    assert made.doubts == 1, "what a database did not take was not told"


def test_an_old_version_and_a_refusal_are_no_break() -> None:
    before = figures()
    made = after(Expired("too old", status=410), Forbidden("no", status=403))
    assert (made.doubts, made.refusals, grown(before)) == (1, 1, (0, 0))


def test_it_is_tried_again_more_and_more_rarely(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda least, most: most)
    waits: list[float] = []
    made = Meeting(iter([ZeroDivisionError("a bug") for _ in range(5)]), cluster=Cluster(name="met"))
    monkeypatch.setattr(lookout, "LONGEST_WAIT_SECONDS", 0.1)
    made.stop = _Waits(waits)
    made.run()
    assert waits == [0.02, 0.04, 0.08, 0.1, 0.1]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_lookout_whose_thread_is_dead_is_started_again(monkeypatch: pytest.MonkeyPatch, env: World) -> None:
    """SystemExit ends a thread without a word; what requests wait for is watched all the same."""
    deaths = iter([SystemExit(), SystemExit()])
    looks: list[int] = []

    def look(kind: Any, _: Api) -> None:
        looks.append(1)
        for death in deaths:
            raise death
        kind.stop.wait(FOR_EVER_SECONDS)

    monkeypatch.setattr(expected_changes._Kind, "look", look)
    monkeypatch.setattr(expected_changes.retries, "waiting", lambda *_: _One())
    monkeypatch.setattr(expected_changes, "KINDS", dict.fromkeys(expected_changes.KINDS, (("", "ServiceAccount"),)))
    made = ExpectedChanges(env.cluster)
    try:
        for now in range(0, 10, 2):
            made.look(float(now))
            expected = min(now // 2 + 1, 3)
            wait_until(lambda: len(looks) == expected, "the thread looks")  # noqa: B023 - called in this round alone
            (one,) = made.running.values()
            if expected < 3:
                wait_until(lambda: not one.is_alive, "it is dead")  # noqa: B023 - called in this round alone
        assert len(looks) == 3
        assert [one.is_alive for one in made.running.values()] == [True]
    finally:
        made.end()


def test_who_starts_the_watches_of_a_cluster_goes_on_after_a_bug(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, env: World
) -> None:
    stop, looks, before = threading.Event(), list[int](), counted("uncaught_exceptions", where="thread")

    def look(_: Informers, __: float) -> None:
        looks.append(1)
        if len(looks) == 1:
            raise ZeroDivisionError("a bug")
        stop.set()

    monkeypatch.setattr(Informers, "look", look)
    monkeypatch.setattr(informers, "REFRESH_SECONDS", 0.01)
    Informers(env.cluster).run(stop)
    assert len(looks) == 2
    assert messages(caplog.records) == [UNFORESEEN]
    assert counted("uncaught_exceptions", where="thread") == before + 1


class _Waits(threading.Event):
    """Waits for no time, and keeps for how long it should have been."""

    def __init__(self, waits: list[float]) -> None:
        super().__init__()
        self._waits = waits

    def wait(self, timeout: float | None = None) -> bool:
        if timeout == FOR_EVER_SECONDS:
            self.set()
        elif timeout is not None:
            self._waits.append(timeout)
        return self.is_set()


class _One:
    """Somebody waits for it, and nobody in particular."""

    def exists(self) -> bool:
        return True

    def values_list(self, *_: str) -> list[tuple[int, dict[str, str]]]:
        return []


@dataclass
class Watching(Meeting):
    """Watches once, and nothing happens."""

    def look(self, api: Api) -> None:
        list(self.events(api, None, "1"))  # type: ignore[arg-type]  # the resource is not looked at
        super().look(api)


def test_what_waits_for_events_holds_no_connection_to_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    watched: list[int] = []

    class Nothing:
        def watch(self, *_: object, **__: object) -> Nothing:
            watched.append(closed.count(name))
            return self

        def __iter__(self) -> Iterator[Any]:
            return iter(())

        def close(self) -> None:
            pass

    monkeypatch.setattr(lookout, "connect", lambda _: Nothing())
    monkeypatch.setattr(lookout.connections, "close_all", lambda: closed.append(threading.current_thread().name))
    made = Watching(iter(()), cluster=Cluster(name="quiet"))
    name = f"quiet {made.what}"
    made.start()
    wait_until(lambda: bool(made.looks), "it has watched")
    made.end()
    wait_until(lambda: not made.is_alive, "it ends")
    # Threads of other tests may still be about to end.
    assert (watched, closed.count(name)) == ([1], 2)
