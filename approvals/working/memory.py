"""A thread that ends the largest subprocess of a worker before all of them together use up its memory."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.conf import settings

from approvals.working import linux

logger = logging.getLogger(__name__)

# A process may take 2 GiB a second: a tick takes 50 MiB of what is left above NEAR.
TICK_SECONDS = 0.025
NEAR = 0.9
# Steps of priority (nice) by which a process gives way to each that begins after it, and the last there is.
NEWER_STEPS, LOWEST = 6, 19


@dataclass(eq=False)
class WatchedProcess:
    """A subprocess for the requester `group`, which `end` kills.

    `is_suspect`: its row has killed before. `was_too_large`: it was ended here. `newer`: so many began after it that go
    before it.
    """

    pid: int
    is_suspect: bool
    end: Callable[[], None]
    group: str = ""
    was_too_large: bool = False
    newer: int = 0


@dataclass(frozen=True, slots=True)
class Weight:
    """What a subprocess holds (MiB), with those that it started."""

    process: WatchedProcess
    mib: float


class MemoryWatch:
    """Begins with the first process, and rests while there is none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: list[WatchedProcess] = []
        self._has_processes = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, process: WatchedProcess) -> None:
        with self._lock:
            self._processes.append(process)
            self._has_processes.set()
            if self._thread is None:
                thread = threading.Thread(target=self._run, daemon=True, name="memory")
                thread.start()
                self._thread = thread

    def remove(self, process: WatchedProcess) -> None:
        with self._lock:
            if process in self._processes:
                self._processes.remove(process)
            if not self._processes:
                self._has_processes.clear()

    def give_way(self, is_before: Callable[[str], bool]) -> None:
        """Have those processes give way to one that is about to start whose group the new one goes before."""
        with self._lock:
            processes = [process for process in self._processes if is_before(process.group)]
        for process in processes:
            process.newer += 1
            linux.give_way(linux.family(process.pid), min(LOWEST, NEWER_STEPS * process.newer))

    def _run(self) -> None:
        while True:
            self._has_processes.wait()
            try:
                self.look()
            except Exception:  # the processes run on unwatched until the next look
                logger.exception("the memory could not be looked at")
            time.sleep(TICK_SECONDS)

    def look(self) -> None:
        with self._lock:
            processes = list(self._processes)
        families = {process: linux.family(process.pid) for process in processes}
        # What was ended may not be gone yet: what it still holds is about to be free.
        ending = {pid for process, pids in families.items() if process.was_too_large for pid in pids}
        families = {process: pids for process, pids in families.items() if not process.was_too_large}
        if not families:
            return
        watched = {pid for pids in families.values() for pid in pids}
        others = [pid for pid in linux.family(os.getpid()) if pid not in watched | ending]
        most = most_mib()
        # What is shared is counted for each here, which is read quickly and is never too little.
        if not is_near(sum(map(linux.resident_mib, [*others, *watched])), most):
            return
        weights = [Weight(process, sum(map(linux.own_mib, pids))) for process, pids in families.items()]
        largest = process_to_end(weights, sum(map(linux.own_mib, others)), most, settings.PRATIQUE["ALONE_MEMORY_MIB"])
        if largest:
            largest.was_too_large = True
            largest.end()
            logger.warning(
                "a process was ended: the memory is nearly used up", extra={"pid": largest.pid, "most_mib": most}
            )


def is_near(mib: float, most_mib: float) -> bool:
    return mib > most_mib * NEAR


def process_to_end(
    weights: Sequence[Weight], own_mib: float, most_mib: float, room_mib: float
) -> WatchedProcess | None:
    """Return the process that has to end so that the worker lives; None where all have room.

    A suspect has a room of its own, `room_mib` or half of what there is for all: within that, others make room for it.
    """
    if not is_near(own_mib + sum(weight.mib for weight in weights), most_mib):
        return None
    room = min(room_mib, max(0.0, most_mib * NEAR - own_mib) / 2)
    candidates = [weight for weight in weights if not (weight.process.is_suspect and weight.mib <= room)] or weights
    return max(candidates, key=lambda weight: weight.mib).process if candidates else None


def most_mib() -> float:
    """Return what this worker and all that it starts may hold together, in MiB."""
    return float(settings.PRATIQUE["WORKER_MEMORY_MIB"]) or linux.memory_limit_mib()


MEMORY = MemoryWatch()
