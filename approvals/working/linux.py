"""What Linux says of processes and memory, and what it does for us. Where it is not Linux, nothing is known or done."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

MIB = 1024 * 1024
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
M_ARENA_MAX = -8
ARENAS = 2
# The kernel ends these before the worker that looks after them.
KILL_ME_FIRST = "500"
PROC = Path("/proc")
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def family(pid: int) -> list[int]:
    """The process and all that it started, and they."""
    return [pid, *(one for child in _children(pid) for one in family(child))]


def cpu_seconds(pid: int) -> float:
    """Of processor time that it has used so far, with those of its children that have ended; 0 where it is gone."""
    fields = _stat(pid)
    return sum(map(int, fields[11:15])) / _TICKS if fields else 0.0


def resident_mib(pid: int) -> float:
    """What it holds, with what it shares: never less than `own_mib`, and read much more quickly."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int((PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE / MIB
    return 0.0


def own_mib(pid: int) -> float:
    """What it holds; what it shares with others is counted in part."""
    with contextlib.suppress(OSError, ValueError):
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return resident_mib(pid)


def memory_limit_mib() -> float:
    """What all processes of this container may hold together; without a limit, the machine's memory."""
    machine = os.sysconf("SC_PHYS_PAGES") * _PAGE / MIB
    found = [machine]
    for path in LIMITS:
        with contextlib.suppress(OSError, ValueError):
            found.append(int(path.read_text()) / MIB)
    return min(found)


def give_way(pids: Iterable[int], niceness: int) -> None:
    """Lower the priority of processes, never raise it; what they start later inherits it."""
    for pid in pids:
        with contextlib.suppress(OSError):
            if os.getpriority(os.PRIO_PGRP, pid) < niceness:
                os.setpriority(os.PRIO_PGRP, pid, niceness)


def end_with_parent() -> None:
    """Have the kernel end this process when the process that it was forked from ends."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))


def adopt_orphans() -> None:
    """Have what descendants leave behind become a child of this process, in place of process 1."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def use_few_arenas() -> None:
    """Each arena of malloc is 64 MiB of addresses for a thread that may need one."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)


def be_killed_first() -> None:
    """Have the kernel end this process first where the memory is used up before anybody sees it."""
    with contextlib.suppress(OSError):
        (PROC / "self/oom_score_adj").write_text(KILL_ME_FIRST)


def _children(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):
        for thread in os.listdir(PROC / str(pid) / "task"):
            with contextlib.suppress(OSError):
                yield from map(int, (PROC / str(pid) / "task" / thread / "children").read_text().split())


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may hold anything: the state is the first."""
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return []
