"""One run of pytest as a process of its own, with a deadline: what it recorded, and how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.patience import NotInTime, wait_for
from tests.support.runner import leftovers
from tests.support.runner.plugin import FOLDER, STACKS, STACKS_SIGNAL
from tests.support.runner.record import Record, read

PYTEST = (sys.executable, "-m", "pytest", "-p", "tests.support.runner.plugin")
DUMP_SECONDS = 5


@dataclass(frozen=True)
class Session:
    """`code` is pytest's exit code, None where the deadline ended it; `stacks` are those of that moment, by process."""

    record: Record
    code: int | None
    stacks: Mapping[str, str]

    @property
    def has_passed(self) -> bool:
        return self.code == 0


@dataclass
class Pytest:
    """The sessions of one run: all in the checkout `root`, with `environment`, before `deadline` (monotonic seconds).

    Each keeps its events in a folder of its own in `kept`.
    """

    root: Path
    kept: Path
    environment: Mapping[str, str]
    deadline: float
    count: int = 0

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def run(self, words: Sequence[str]) -> Session:
        """Run pytest with these words, until the deadline at most."""
        self.count += 1
        folder = self.kept / str(self.count)
        folder.mkdir()
        known = {**os.environ, **self.environment, FOLDER: str(folder)}
        child = subprocess.Popen([*PYTEST, *words], cwd=self.root, env=known)
        try:
            code = child.wait(max(0.0, self.seconds_left))
        except subprocess.TimeoutExpired:
            stacks = _stop(child, folder, self.environment[leftovers.MARK])
            return Session(read(folder), None, stacks)
        except KeyboardInterrupt:
            # Pytest has got it too, and tells what it did so far.
            child.wait()
            raise
        return Session(read(folder), code, {})


def _stop(child: subprocess.Popen[bytes], folder: Path, mark: str) -> dict[str, str]:
    """Have each process of pytest write its stacks, and end it with all that it started."""
    files = sorted(folder.glob(f"{STACKS}*"))
    for file in files:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(file.name.removeprefix(STACKS)), STACKS_SIGNAL)
    with contextlib.suppress(NotInTime):
        wait_for(lambda: all(file.stat().st_size for file in files), "stacks", DUMP_SECONDS)
    # Not before all of it is written.
    time.sleep(1)
    child.send_signal(signal.SIGKILL)
    child.wait()
    leftovers.kill(leftovers.processes(mark))
    return {file.name.removeprefix(STACKS): file.read_text() for file in files if file.stat().st_size}
