"""How much memory this process holds, for tests that bound what something costs it."""

from __future__ import annotations

import resource
from pathlib import Path


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
