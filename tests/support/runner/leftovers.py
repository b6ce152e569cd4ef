"""What a run leaves behind: processes that it started, by a mark in their environment, and files in its own folder."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.patience import NotInTime, wait_for

# Every process that a run starts inherits it.
MARK = "PRATIQUE_TEST_RUN"
ENDING_SECONDS = 30
MEMORY = Path("/dev/shm")
# Many times what a run leaves there.
ROOM_BYTES = 6 * 2**30
# Those of pytest's own `tmp_path`, which it keeps on purpose: the folder of the run goes with all of them. Their paths
# are short, as a Unix socket's has to be.
PYTESTS = "pytest-of-"
KEPT = "t"


@dataclass(frozen=True, order=True)
class Process:
    pid: int
    command: str

    def __str__(self) -> str:
        return f"{self.pid} {self.command}"


def processes(mark: str) -> list[Process]:
    """The living processes that carry the mark, but this one."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            # One that ends meanwhile, or is somebody else's.
            with contextlib.suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    found.append(Process(int(folder.name), command.strip()[:200]))
    return sorted(found)


def end(mark: str) -> list[Process]:
    """Wait for the processes of a run to end; kill those that do not, and return them."""
    with contextlib.suppress(NotInTime):
        wait_for(lambda: processes(mark), "all processes end", ENDING_SECONDS, is_so=lambda left: not left)
    left = processes(mark)
    kill(left)
    return left


def kill(found: list[Process]) -> None:
    for process in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for all that a run writes into the temporary folder; it goes with what is in it."""
    # PostgreSQL runs as somebody else, and a Unix socket's path is short.
    with tempfile.TemporaryDirectory(prefix="pt-", dir=_in_memory(), ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def _in_memory() -> Path | None:
    """The file system in memory, where there is one with room and programs: registries and stores wait for a disk."""
    try:
        memory = os.statvfs(MEMORY)
    except OSError:
        return None
    (available,) = re.findall(r"MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text())
    has_room = min(memory.f_bavail * memory.f_frsize, int(available) * 1024 // 2) >= ROOM_BYTES
    return MEMORY if has_room and os.access(MEMORY, os.W_OK) and not memory.f_flag & os.ST_NOEXEC else None


def files(folder: Path) -> list[str]:
    """What nobody removed from the temporary folder of a run."""
    return sorted(one.name for one in folder.iterdir() if not (one.name == KEPT or one.name.startswith(PYTESTS)))
