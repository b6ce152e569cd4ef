"""The folder in which the processes of one gunicorn keep their counts: made at its start, gone with it.

Named before prometheus_client is imported, which looks once. A process that is killed (-9) leaves its folder; the next
start removes it. A folder is in use while a process holds its lock, which workers inherit.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
PREFIX = "pratique-metrics-"
LOCK = "lock"


def provide() -> None:
    """Name a folder of our own in the environment, unless the operator has named one."""
    if VARIABLE not in os.environ:
        _remove_unused()
        unnamed = Path(tempfile.mkdtemp(prefix=f"new-{PREFIX}"))
        fcntl.flock(os.open(unnamed / LOCK, os.O_CREAT | os.O_RDWR), fcntl.LOCK_EX)
        # Locked before another start could see it.
        folder = unnamed.rename(unnamed.with_name(unnamed.name.removeprefix("new-")))
        atexit.register(_remove, folder, os.getpid())
        os.environ[VARIABLE] = str(folder)


def _remove(folder: Path, owner: int) -> None:
    """Not in workers, which inherit this and end before the others."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_unused() -> None:
    """Those of processes that were killed. Where another user's folders lie, they are left to that user."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder / LOCK, os.O_RDWR)
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
