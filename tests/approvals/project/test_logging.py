"""What is written down of a crash: where it was, whatever the format, and no value of any variable (promise 8)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.folders import ROOT

CRASHING = """
import logging
def look_at_it():
    password = "hunter" + str(1 + 1)
    raise ValueError("a bug")
try:
    look_at_it()
except ValueError:
    logging.getLogger("approvals.steps").exception("a step crashed", extra={"request_id": 7})
"""


@pytest.mark.parametrize("style", ["json", pytest.param("console", marks=pytest.mark.thorough)])
def test_a_crash_is_logged_with_its_traceback_and_without_values(style: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--verbosity", "0", "--command", CRASHING],
        cwd=ROOT,
        env={
            **os.environ,
            "PRATIQUE_SECRET_KEY": "x" * 50,
            "PRATIQUE_DATABASE_URL": f"sqlite:///{tmp_path}/unused",
            "PRATIQUE_LOG_FORMAT": style,
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert "a step crashed" in done.stderr
    assert "request_id" in done.stderr
    assert "in look_at_it" in done.stderr
    assert "ValueError: a bug" in done.stderr
    assert "hunter2" not in done.stderr
