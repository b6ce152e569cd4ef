"""The warden looks at real processes: what they and those that they started use, and that they give way and end."""

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
from approvals.working.warden import Ward, Warden
from tests.support.patience import scaled, wait_for

# Starts with little of the processor, by which the warden judges.
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


def others_mib(*wards: subprocess.Popen[bytes]) -> float:
    """What this process holds, with all that earlier tests of it started and that still run."""
    own = {pid for ward in wards for pid in linux.family(ward.pid)}
    return sum(linux.own_mib(pid) for pid in linux.family(os.getpid()) if pid not in own)


def until(is_so: Callable[[], bool], what: str = "the warden sees it") -> None:
    wait_for(is_so, what, 240.0, every=0.02)


class Counting(Warden):
    looks = 0

    def look(self) -> None:
        super().look()
        self.looks += 1


def until_it_looked(warden: Counting, times: int) -> None:
    """Until the warden has looked so often again, from the beginning."""
    before = warden.looks
    until(lambda: warden.looks > before + times, "the warden looks")


def nice(pid: int) -> int:
    return os.getpriority(os.PRIO_PROCESS, pid)


def test_S26_a_process_gives_way_with_what_it_started() -> None:
    with running(PARENT) as (process,):
        until(lambda: len(linux.family(process.pid)) == 2)
        evaluator = linux.family(process.pid)[1]
        until(lambda: linux.cpu_seconds(evaluator) > 0.25)
        warden = Warden()
        warden.expect()
        warden.watch(Ward(process.pid, is_suspect=False, end=process.kill))
        until(lambda: nice(evaluator) >= 4 and nice(process.pid) >= 4)


def test_S26_what_is_about_to_be_started_goes_before_all_others() -> None:
    with running(SMALL, SMALL) as (first, second):
        warden = Warden()
        for process in (first, second):
            warden.expect()
            warden.watch(Ward(process.pid, is_suspect=False, end=process.kill))
        assert nice(first.pid) >= 6
        assert nice(second.pid) == os.getpriority(os.PRIO_PROCESS, 0), "as it was started"
        warden.expect()
        assert nice(second.pid) >= 6


def test_S26_a_stream_of_new_ones_does_not_hold_up_who_takes_longer() -> None:
    """Each of the stream is young; all of them together are not."""
    with running(SMALL, BUSY, SMALL, SMALL) as (innocent, heavy, *stream):
        warden = Counting()
        warden.expect("innocent")
        warden.watch(Ward(innocent.pid, is_suspect=False, end=innocent.kill, group="innocent"))
        until(lambda: linux.cpu_seconds(heavy.pid) > 1.5)
        warden.expect("stream")
        warden.watch(Ward(heavy.pid, is_suspect=False, end=heavy.kill, group="stream"))
        until(lambda: nice(heavy.pid) >= 8)
        before = nice(innocent.pid)
        for process in stream:
            warden.expect("stream")
            warden.watch(Ward(process.pid, is_suspect=False, end=process.kill, group="stream"))
        until(lambda: nice(stream[-1].pid) >= 6)
        until_it_looked(warden, 2)
        assert nice(innocent.pid) == before <= 6, "only what began before anybody knew the stream"


def test_S26_the_largest_process_is_ended_and_only_that(settings: Any) -> None:
    with one_too_large(settings) as (large, small):
        warden = Warden()
        wards = [Ward(process.pid, is_suspect=False, end=process.kill) for process in (large, small)]
        for ward in wards:
            warden.expect()
            warden.watch(ward)
        assert large.wait(scaled(240)) == -signal.SIGKILL
        assert [ward.was_too_large for ward in wards] == [True, False]
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
        linux.give_way(process.pid, 5)


def test_S26_while_one_that_was_ended_still_holds_its_memory_no_other_is_ended(settings: Any) -> None:
    """On a busy machine a killed process is there for some looks more."""
    with one_too_large(settings) as (large, small):
        warden = Counting()
        ended: list[str] = []
        for process, name in ((large, "large"), (small, "small")):
            warden.expect()
            warden.watch(Ward(process.pid, is_suspect=False, end=partial(ended.append, name)))
        until(lambda: bool(ended))
        until_it_looked(warden, 5)
        assert ended == ["large"]
