"""Work that waits for a cluster leaves the worker's thread to others, and takes back what it left before it goes on."""

from __future__ import annotations

import threading
import time

import pytest

from approvals.steps import apply_limit
from approvals.working import Pledge, background, go_on, pledged, rest, resting, run_aside
from tests.support.kubernetes.live import wait_until
from tests.support.patience import scaled

SECONDS = 60.0


def test_what_does_not_rest_is_waited_for_and_raises_here() -> None:
    done: list[str] = []

    def work() -> None:
        time.sleep(0.05)  # so that who does not wait comes before it
        done.append(threading.current_thread().name)
        raise ValueError("here")

    with pytest.raises(ValueError, match="here"):
        run_aside(work)
    assert done == ["aside"]


def test_who_gave_the_order_is_free_as_soon_as_the_work_rests() -> None:
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        rest(9.0)
        assert ready.wait(scaled(SECONDS))
        go_on()
        done.set()

    run_aside(work)
    assert not done.is_set()
    ready.set()
    assert done.wait(scaled(SECONDS))
    wait_until(lambda: not background._resting, "nothing rests")


def test_threads_are_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    threads, seen = background.Threads(), set[int]()
    monkeypatch.setattr(background, "_THREADS", threads)
    for _ in range(5):
        run_aside(lambda: seen.add(threading.get_ident()))
        wait_until(lambda: len(threads._idle) == 1, "the thread is idle")
    assert len(seen) == 1


def test_what_work_has_taken_is_left_while_it_rests_and_is_back_before_it_goes_on() -> None:
    told: list[str] = []
    resting, ready, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        with pledged(Pledge(lambda: told.append("left"), lambda: told.append("back"))):
            rest(9.0)
            rest(9.0)
            resting.set()
            assert ready.wait(scaled(SECONDS))
            go_on()
            told.append("works")
        rest(9.0)
        done.set()

    run_aside(work)
    assert resting.wait(scaled(SECONDS))
    assert told == ["left"]
    ready.set()
    assert done.wait(scaled(SECONDS))
    assert told == ["left", "back", "works"]


def test_what_says_nothing_while_it_takes_long_rests_as_well_and_comes_back() -> None:
    """As a long list: it holds up neither the thread of the worker nor a place."""
    told: list[str] = []
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        with pledged(Pledge(lambda: told.append("left"), lambda: told.append("back"))):
            with resting():
                told.append("soon done")
            with resting():
                assert ready.wait(scaled(SECONDS))
            told.append("works")
        done.set()

    run_aside(work)
    assert told == ["soon done", "left"]
    ready.set()
    assert done.wait(scaled(SECONDS))
    assert told == ["soon done", "left", "back", "works"]


def test_what_fails_while_it_rests_comes_back_first() -> None:
    told: list[str] = []

    def work() -> None:
        with pledged(Pledge(lambda: told.append("left"), lambda: told.append("back"))):
            try:
                with resting():
                    wait_until(lambda: bool(told), "it rests")
                    raise ValueError
            except ValueError:
                told.append("failed")

    run_aside(work)
    wait_until(lambda: told == ["left", "back", "failed"], "it failed after it came back")


def test_outside_of_a_worker_nothing_rests() -> None:
    with resting():
        pass


def test_what_is_ready_soon_keeps_the_thread() -> None:
    resting: list[bool] = []

    def work() -> None:
        for waited in (0.1, 1.9, 2.0):
            rest(waited)
            resting.append(bool(background._resting))

    run_aside(work)
    wait_until(lambda: len(resting) == 3)
    assert resting == [False, False, True]


def test_outside_of_a_turn_nothing_rests() -> None:
    told: list[str] = []
    with pledged(Pledge(lambda: told.append("left"))):
        rest(9.0)
        go_on()
    assert told == []


def test_only_so_many_rest_and_the_next_one_keeps_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MOST_RESTING", 1)
    ready, ended = threading.Event(), threading.Event()
    asked: list[str] = []

    def work() -> None:
        rest(9.0)
        asked.append("to rest")
        assert ready.wait(scaled(SECONDS))

    run_aside(work)
    second = threading.Thread(target=lambda: (run_aside(work), ended.set()))
    second.start()
    wait_until(lambda: len(asked) == 2, "both have asked to rest")
    assert len(background._resting) == 1
    assert not ended.wait(0.2)  # a slow machine may only hide that it ended
    ready.set()
    assert ended.wait(scaled(SECONDS))


def test_an_apply_that_rests_takes_none_of_the_room_and_waits_for_it_to_go_on(
    monkeypatch: pytest.MonkeyPatch, settings: pytest.MonkeyPatch
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPLIES_AT_ONCE": 1}  # type: ignore[attr-defined]  # pytest-django's fixture
    ready, comes_back, went_on = threading.Event(), threading.Event(), threading.Event()

    def come_back() -> None:
        comes_back.set()
        apply_limit.await_place(1)

    def work() -> None:
        assert apply_limit.take_place(1)
        pledge = Pledge(lambda: apply_limit.leave_place(1), come_back)
        with pledged(pledge):
            rest(9.0)
            assert ready.wait(scaled(SECONDS))
            go_on()
            went_on.set()
        apply_limit.leave_place(1)

    run_aside(work)
    assert apply_limit.take_place(2)
    ready.set()
    assert comes_back.wait(scaled(SECONDS))
    assert not went_on.wait(0.2), "another one is at work"  # a slow machine may only hide that it went on
    apply_limit.leave_place(2)
    assert went_on.wait(scaled(SECONDS))
    wait_until(lambda: not apply_limit.applied_now, "nothing is applied")
