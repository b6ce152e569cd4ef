"""A private key for libraries that read keys from files only: never in a file that outlives the call."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_file(data: bytes) -> Iterator[str]:
    """A path with `data`: in memory where the system has that, else a file of our own that is removed at once."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("private-key"), "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            yield file.name
