"""What all tests of limits need."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from approvals.rate_limits import counters


@pytest.fixture(autouse=True)
def no_time_passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For what is counted in this process: else a slow machine would be allowed more."""
    # Whole seconds, so that what is left of a window is exact.
    now = float(math.floor(time.monotonic()))
    monkeypatch.setattr(counters, "time", SimpleNamespace(monotonic=lambda: now))
    # Until when Redis is left alone is of the clock of one test.
    counters._shared.cache_clear()
    yield
    counters._shared.cache_clear()
