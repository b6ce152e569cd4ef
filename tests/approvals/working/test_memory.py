"""Real subprocesses: those that take long give way, and the largest ends before the memory is used up."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from approvals.working import linux
from approvals.working.memory import MemoryWatch, WatchedProcess, Weight, is_near, process_to_end
from approvals.working.subprocess_main import niceness
from tests.support.patience import scaled, wait_for

# Starts with little of the processor, by which is judged.
PYTHON = (sys.executable, "-I", "-S", "-c")
BUSY = "while True: pass"
LARGE = "kept = bytearray(b'x') * (300 << 20); print(flush=True); input()"
# Starts one that is busy, as a preparation starts an evaluator, and waits for it.
PARENT = f"import subprocess, sys; subprocess.run([*{PYTHON!r}, {BUSY!r}], process_group=0)"
SMALL = "print(flush=True); input()"


@contextmanager
def running(*programs: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    made = [
        subprocess.Popen([*PYTHON, one], process_group=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for one in programs
    ]
    try:
        yield made
    finally:
        for process in made:
            for pid in linux.family(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


@contextmanager
def one_too_large(settings: Any) -> Iterator[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    """A large and a small process that have started, which together use more than a worker may."""
    with running(LARGE, SMALL) as (large, small):
        for process in (large, small):
            assert process.stdout
            assert process.stdout.readline()
        most = int((others_mib(large, small) + 200) / 0.9)
        settings.PRATIQUE = {**settings.PRATIQUE, "WORKER_MEMORY_MIB": most}
        yield large, small


def others_mib(*watched: subprocess.Popen[bytes]) -> float:
    """What this process holds, with all that earlier tests of it started and that still run."""
    own = {pid for process in watched for pid in linux.family(process.pid)}
    return sum(linux.own_mib(pid) for pid in linux.family(os.getpid()) if pid not in own)


def until(is_so: Callable[[], bool], what: str = "it is seen") -> None:
    wait_for(is_so, what, 240.0, every=0.02)


class Counting(MemoryWatch):
    looks = 0

    def look(self) -> None:
        super().look()
        self.looks += 1


def until_it_looked(memory: Counting, times: int) -> None:
    """Until the memory was looked at so often again, from the beginning."""
    before = memory.looks
    until(lambda: memory.looks > before + times, "the memory is looked at")


def nice(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)


@pytest.mark.parametrize(
    ("cpu_seconds", "expected"),
    [
        pytest.param(0.19, 0, id="a small bundle, all the way"),
        pytest.param(0.2, 5, id="a larger one"),
        pytest.param(0.6, 10, id="long"),
        pytest.param(60.0, 16, id="very long"),
    ],
)
def test_S26_who_has_used_more_of_the_processor_gives_way(cpu_seconds: float, expected: int) -> None:
    assert niceness(cpu_seconds) == expected


def test_S26_a_process_gives_way_with_what_it_started() -> None:
    with running(PARENT) as (process,):
        until(lambda: len(linux.family(process.pid)) == 2)
        evaluator = linux.family(process.pid)[1]
        linux.give_way(linux.family(process.pid), 5)
        assert nice(evaluator) >= 5
        assert nice(process.pid) >= 5


def test_S26_what_begins_goes_before_those_that_began_earlier_but_for_groups_that_used_less() -> None:
    with running(SMALL, SMALL) as (first, second):
        memory, as_started = MemoryWatch(), nice(second.pid)
        for process, group in ((first, "heavy"), (second, "light")):
            memory.add(WatchedProcess(process.pid, is_suspect=False, end=process.kill, group=group))
        memory.give_way(lambda group: group == "heavy")
        assert nice(first.pid) >= as_started + 6
        assert nice(second.pid) == as_started


def test_S26_the_largest_process_is_ended_and_only_that(settings: Any) -> None:
    with one_too_large(settings) as (large, small):
        memory = MemoryWatch()
        watched = [WatchedProcess(process.pid, is_suspect=False, end=process.kill) for process in (large, small)]
        for process in watched:
            memory.add(process)
        assert large.wait(scaled(240)) == -signal.SIGKILL
        assert [process.was_too_large for process in watched] == [True, False]
        assert small.poll() is None


def test_the_limit_of_memory_is_known_and_never_more_than_the_machine_has() -> None:
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    assert 0 < linux.memory_limit_mib() <= machine


@pytest.mark.parametrize("read", [linux.cpu_seconds, linux.resident_mib, linux.own_mib])
def test_of_a_process_that_is_gone_nothing_is_known(read: Callable[[int], float]) -> None:
    with running("pass") as (process,):
        process.wait()
        assert read(process.pid) == 0.0
        assert linux.family(process.pid) == [process.pid]
        linux.give_way([process.pid], 5)


def test_S26_while_one_that_was_ended_still_holds_its_memory_no_other_is_ended(settings: Any) -> None:
    """On a busy machine a killed process is there for some looks more."""
    with one_too_large(settings) as (large, small):
        memory = Counting()
        ended: list[str] = []
        for process, name in ((large, "large"), (small, "small")):
            memory.add(WatchedProcess(process.pid, is_suspect=False, end=partial(ended.append, name)))
        until(lambda: bool(ended))
        until_it_looked(memory, 5)
        assert ended == ["large"]


def weight(name: str, mib: float, *, is_suspect: bool = False) -> Weight:
    return Weight(WatchedProcess(hash(name), is_suspect, print), mib)


FRESH, LARGE_ONE, SUSPECT = weight("fresh", 100), weight("large", 700), weight("suspect", 700, is_suspect=True)
LARGE_SUSPECT, SMALL_SUSPECT = weight("suspect", 900, is_suspect=True), weight("suspect", 300, is_suspect=True)


@pytest.mark.parametrize(
    ("weights", "own", "most", "ended"),
    [
        pytest.param([FRESH, LARGE_ONE], 200, 2048, None, id="room for all"),
        pytest.param([FRESH, LARGE_ONE], 200, 1024, LARGE_ONE, id="the largest"),
        pytest.param([], 2000, 1024, None, id="nobody to end: it is the worker itself"),
        pytest.param([FRESH, LARGE_ONE, SUSPECT], 200, 1800, LARGE_ONE, id="in its room"),
        pytest.param([FRESH, LARGE_SUSPECT], 100, 1200, LARGE_SUSPECT, id="past its room"),
        pytest.param([LARGE_SUSPECT], 950, 2000, LARGE_SUSPECT, id="past half of the rest"),
        pytest.param([SMALL_SUSPECT], 700, 1000, SMALL_SUSPECT, id="nobody else"),
    ],
)
def test_S26_the_largest_ends_before_the_memory_is_used_up(
    weights: list[Weight], own: float, most: float, ended: Weight | None
) -> None:
    assert process_to_end(weights, own, most, 1024) is (ended.process if ended else None)


def test_S26_the_limit_is_near_before_it_is_reached() -> None:
    assert not is_near(1840, 2048)
    assert is_near(1850, 2048)
