"""A thread that watches over the processes of their own of a worker: their share of the processor and of the memory."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.conf import settings

from approvals.working import linux, shares

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.025
# Seconds of processor time.
FORGOTTEN = 0.01


@dataclass(eq=False)
class Ward:
    """A process of its own, for `group`. `end` kills it. `was_too_large` where the warden had it ended.

    `used` is the processor time (s) that was seen of it.
    """

    pid: int
    is_suspect: bool
    end: Callable[[], None]
    group: str = ""
    was_too_large: bool = False
    used: float = 0.0
    niceness: dict[int, int] = field(default_factory=dict)


class Warden:
    """Begins with its first ward, and rests while there is none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wards: list[Ward] = []
        self._coming: list[str] = []
        self._used: dict[str, float] = {}
        self._looked_at = time.monotonic()
        self._has_wards = threading.Event()
        self._thread: threading.Thread | None = None

    def expect(self, group: str = "") -> None:
        """One more is about to be started, which `watch` or `expect_no_more` ends: the others give way at once."""
        with self._lock:
            self._coming.append(group)
        self._share_processor()

    def expect_no_more(self, group: str = "") -> None:
        with self._lock:
            self._coming.remove(group)

    def watch(self, ward: Ward) -> None:
        with self._lock:
            self._coming.remove(ward.group)
            self._wards.append(ward)
            self._has_wards.set()
            if self._thread is None:
                thread = threading.Thread(target=self._run, daemon=True, name="warden")
                thread.start()
                self._thread = thread

    def leave(self, ward: Ward) -> None:
        with self._lock:
            self._wards.remove(ward)
            if not self._wards:
                self._has_wards.clear()

    def _run(self) -> None:
        while True:
            self._has_wards.wait()
            try:
                self.look()
            except Exception:  # its wards go on without it until the next look
                logger.exception("the warden failed")
            time.sleep(TICK_SECONDS)

    def look(self) -> None:
        families = self._share_processor()
        if families:
            _share_memory(families, self._ending())

    def _ending(self) -> set[int]:
        """Processes that were ended and may not be gone yet: what they still hold is about to be free."""
        with self._lock:
            ended = [one.pid for one in self._wards if one.was_too_large]
        return {pid for one in ended for pid in linux.family(one)}

    def _share_processor(self) -> dict[Ward, list[int]]:
        """The processes of each ward."""
        with self._lock:
            coming, wards = list(self._coming), [one for one in self._wards if not one.was_too_large]
        families = {ward: linux.family(ward.pid) for ward in wards}
        used = self._note_used({ward: sum(map(linux.cpu_seconds, pids)) for ward, pids in families.items()})
        for place, ward in enumerate(wards):
            others = [(other.group, at > place) for at, other in enumerate(wards) if other is not ward]
            others += [(group, True) for group in coming]
            before = [
                shares.goes_first(is_later, used.get(group, 0.0), used.get(ward.group, 0.0))
                for group, is_later in others
            ]
            _give_way(ward, families[ward], sum(before))
        return families

    def _note_used(self, seen: dict[Ward, float]) -> dict[str, float]:
        """The processor time that each group has used lately; what is small enough is forgotten."""
        with self._lock:
            now = time.monotonic()
            passed, self._looked_at = now - self._looked_at, now
            lately = {group: shares.remembered(used, passed) for group, used in self._used.items()}
            for ward, seconds in seen.items():
                lately[ward.group] = lately.get(ward.group, 0.0) + max(0.0, seconds - ward.used)
                ward.used = max(ward.used, seconds)
            self._used = {group: used for group, used in lately.items() if used > FORGOTTEN}
            return self._used


def _give_way(ward: Ward, pids: list[int], newer: int) -> None:
    niceness = shares.niceness(ward.used, newer)
    for pid in pids:
        if ward.niceness.get(pid, 0) < niceness:
            linux.give_way(pid, niceness)
            ward.niceness[pid] = niceness


def _share_memory(families: dict[Ward, list[int]], ending: set[int]) -> None:
    most, alone = most_mib(), settings.PRATIQUE["ALONE_MEMORY_MIB"]
    of_wards = {pid for pids in families.values() for pid in pids}
    others = [pid for pid in linux.family(os.getpid()) if pid not in of_wards | ending]
    if not shares.is_near(sum(map(linux.resident_mib, [*others, *of_wards])), most):
        return
    weights = [shares.Weight(ward, sum(map(linux.own_mib, pids)), ward.is_suspect) for ward, pids in families.items()]
    ward = shares.to_end(weights, sum(map(linux.own_mib, others)), most, alone)
    if isinstance(ward, Ward):
        ward.was_too_large = True
        ward.end()
        logger.warning("a process was ended: the memory is nearly used up", extra={"pid": ward.pid, "most_mib": most})


def most_mib() -> float:
    """What this worker and all that it starts may hold together."""
    return float(settings.PRATIQUE["WORKER_MEMORY_MIB"]) or linux.memory_limit_mib()


WARDEN = Warden()
