"""The page about tests names tests that exist, each in the ring that it says."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support.folders import ROOT
from tests.support.runner.__main__ import RINGS

PAGE = ROOT / "docs/contributing/tests.md"
ROWS = [found for line in PAGE.read_text().splitlines() if len(found := re.findall(r"`(tests/[\w/.:]+)`", line)) > 1]


@pytest.mark.thorough
def test_each_promise_has_a_proof_in_each_ring() -> None:
    assert len(ROWS) > 20
    firsts, seconds = zip(*ROWS, strict=True)
    assert {"test": missing("test", firsts), "thorough": missing("thorough", seconds)} == {"test": [], "thorough": []}


def missing(ring: str, names: tuple[str, ...]) -> list[str]:
    """Those of these tests, or files of tests, of which nothing is in the ring."""
    files = sorted({name.partition("::")[0] for name in names})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", RINGS[ring].marks, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    collected = {line.partition("[")[0] for line in re.findall(r"^tests/\S+::\S+", done.stdout, re.MULTILINE)}
    collected |= {line.partition("::")[0] for line in collected}
    assert collected, done.stdout + done.stderr
    return [name for name in names if name not in collected]
