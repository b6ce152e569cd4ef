"""The kernel's limits hold before the program runs: what it may not do, it does not even begin."""

from __future__ import annotations

import sys

from provisioner.child_process import started
from provisioner.confined_program import MODULE, PROGRAM


def test_S37_a_program_that_would_open_a_file_does_not_start() -> None:
    """One that is not linked statically opens its libraries first, which are not there for it."""
    process = started(MODULE, **{PROGRAM: sys.executable})
    answer, _ = process.communicate(b"", timeout=60)
    assert (answer, process.returncode != 0) == (b"", True)
