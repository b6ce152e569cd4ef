"""`pratique`: the reports of the library on the command line, without a database; one module for each kind."""

from __future__ import annotations

import gc
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, by default that of this process's arguments; returns the exit status."""
    # Hundreds of modules are loaded, and stay: a review would spend a seventh of its time looking for garbage in them.
    if argv is None:
        gc.disable()
    from provisioner.cli import commands  # noqa: PLC0415 - after gc is off, which is the point

    if argv is None:
        gc.freeze()
        gc.enable()
    return commands.main(argv)
