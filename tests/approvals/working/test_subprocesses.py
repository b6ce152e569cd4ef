"""A process of its own that cannot begin, and a heartbeat that meets an error which nobody foresaw, kill no innocents."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError

from approvals.ledger import claims
from approvals.models import Request
from approvals.working import Heartbeat, Work, WorkStep, heartbeat, subprocesses
from approvals.working.memory import MemoryWatch
from approvals.working.places import Places
from tests.support.patience import scaled

PREPARING = WorkStep("preparing its report", is_foreign=True)


class Innocent(Work):
    def __init__(self, key: int = 1):
        super().__init__("advance", key, Request.objects.filter(pk=key))

    def look(self, worker: str) -> bool:
        raise AssertionError("not here")

    def step(self) -> WorkStep:
        return PREPARING

    def give_up(self, error: object) -> None:
        raise AssertionError("not here")


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Places:
    """Two, and processes that are forked from this one, so that they fail as it says."""
    places = Places(lambda: 2)
    monkeypatch.setattr(subprocesses, "_fresh", places)
    monkeypatch.setattr(subprocesses, "MEMORY", MemoryWatch())
    monkeypatch.setattr(subprocesses, "_processes", multiprocessing.get_context("fork"))
    return places


def test_S26_a_process_that_cannot_reach_the_database_is_no_death(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(*_: object) -> bool:
        raise OperationalError("sorry, too many clients already")

    monkeypatch.setattr(claims, "adopt", is_full)
    for _ in range(3):
        with pytest.raises(subprocesses.CouldNotStart, match="could not begin"):
            subprocesses.run_apart(Innocent(), "worker", PREPARING, is_suspect=False)
    assert (places._taken, subprocesses.MEMORY._processes) == ({}, [])


@pytest.mark.parametrize("way", ["start", "watch"])
def test_S26_whatever_fails_at_the_start_gives_its_place_back(
    places: Places, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """Such as a limit of threads, or an order that cannot be sent."""

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    context: Any = subprocesses._processes
    with monkeypatch.context() as broken:
        broken.setattr(*((context.Process, "start") if way == "start" else (threading.Thread, "start")), fails)
        for _ in range(3):
            with pytest.raises(RuntimeError):
                subprocesses.run_apart(Innocent(), "worker", PREPARING, is_suspect=False)
    memory = subprocesses.MEMORY
    assert (places._taken, memory._processes, memory._thread) == ({}, [], None)
    assert multiprocessing.active_children() == []


def test_S26_the_heart_goes_on_whatever_a_beat_meets(monkeypatch: pytest.MonkeyPatch) -> None:
    beats, later = 0, threading.Event()

    class Heart(Heartbeat):
        def beat(self, now: float) -> None:
            nonlocal beats
            beats += 1
            if beats <= len(problems):
                raise problems[beats - 1]
            later.set()

    def nobody(_: Sequence[str]) -> None:
        raise AssertionError("nobody stands still")

    problems = [OperationalError("away"), InterfaceError("the connection is closed"), MemoryError(), KeyError("x")]
    monkeypatch.setattr(heartbeat, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(heartbeat, "close_old_connections", lambda: None)
    Heart(on_still=nobody).start()
    assert later.wait(scaled(60))
