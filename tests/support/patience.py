"""One patience: every wait of the tests asks a condition again until it holds, and says at the end what it saw last.

Bounds are those of a quiet machine; `factor()` makes them longer on one that is slow when the run starts. A bound costs
nothing where the condition comes to hold, so it is long. Only the standard library: `tests/controlplane/run` uses it too.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")

# Whoever starts the run measures, and all of its processes wait alike.
VARIABLE = "PRATIQUE_TEST_PATIENCE"
SECONDS = 60.0
LOOK_SECONDS = 0.05
LEAST, MOST = 1.0, 8.0
STEPS = 1_000_000
# What both take on a quiet machine of two cores.
QUIET_COMPUTATION_SECONDS = 0.06
QUIET_START_SECONDS = 0.016
TRIALS = 3


class NotInTime(AssertionError):
    """What a test waited for did not come to hold; the message says what was seen last."""


@functools.cache
def factor() -> float:
    """How much slower than a quiet machine this one is, from 1 to 8; measured once for a run."""
    if (known := os.environ.get(VARIABLE)) is None:
        known = f"{measure():.2f}"
        os.environ[VARIABLE] = known
    return min(MOST, max(LEAST, float(known)))


def measure() -> float:
    """How often the quiet machine's seconds a computation and the start of a process take now: the worse of both."""
    return max(_median(_compute) / QUIET_COMPUTATION_SECONDS, _median(_start) / QUIET_START_SECONDS)


def scaled(seconds: float) -> float:
    """The bound that this machine gets where a quiet one gets `seconds`."""
    return seconds * factor()


def wait_for(
    look: Callable[[], Seen],
    what: str,
    seconds: float = SECONDS,
    *,
    is_so: Callable[[Seen], object] = bool,
    every: float = LOOK_SECONDS,
    log: Callable[[], str] = str,
) -> Seen:
    """Return what `look()` sees once `is_so` of it; by itself, once it is true.

    Raises NotInTime after `seconds` of a quiet machine, with `what`, what was seen last, and `log()`.
    """
    bound = scaled(seconds)
    deadline = time.monotonic() + bound
    while not is_so(seen := look()):
        if time.monotonic() > deadline:
            raise NotInTime("\n".join(filter(None, (f"{what}: not within {bound:.0f} s; seen last: {seen!r}", log()))))
        time.sleep(every)
    return seen


def _median(act: Callable[[], object]) -> float:
    return sorted(_seconds(act) for _ in range(TRIALS))[TRIALS // 2]


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _compute() -> None:
    number = 1
    for step in range(STEPS):
        number = (number * 31 + step) % 65_521


def _start() -> None:
    subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
