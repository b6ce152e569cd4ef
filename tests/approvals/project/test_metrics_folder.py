"""The folder of gunicorn's counts goes with the process, however that ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from approvals.project.metrics_folder import PREFIX
from tests.support.folders import ROOT

# A worker ends before the process that made the folder.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from approvals.project import metrics_folder
metrics_folder.provide()
folder = Path(os.environ[metrics_folder.VARIABLE])
if not (worker := os.fork()):
    sys.exit(0)
os.waitpid(worker, 0)
print(folder.is_dir())
{end}
"""


def run(folder: Path, end: str = "", **more: str) -> str:
    environment = {**os.environ, "TMPDIR": str(folder), **more}
    if not more:
        environment.pop("PROMETHEUS_MULTIPROC_DIR", None)
    command = [sys.executable, "-u", "-c", PROGRAM.format(end=end)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    ).stdout.strip()


def left(folder: Path) -> list[str]:
    return [one.name for one in folder.glob(f"{PREFIX}*")]


def test_the_folder_outlives_its_workers_and_goes_with_their_parent(tmp_path: Path) -> None:
    assert run(tmp_path) == "True"
    assert left(tmp_path) == []


def test_a_start_that_is_refused_leaves_no_folder(tmp_path: Path) -> None:
    run(tmp_path, "sys.exit(1)")
    assert left(tmp_path) == []


def test_what_a_killed_process_left_goes_with_the_next_start(tmp_path: Path) -> None:
    run(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    assert len(left(tmp_path)) == 1
    run(tmp_path)
    assert left(tmp_path) == []


def test_the_folder_of_a_process_that_lives_stays(tmp_path: Path) -> None:
    beside = f"""
import subprocess
subprocess.run([sys.executable, "-c", {PROGRAM.format(end="")!r}], check=True, env={{k: v for k, v in os.environ.items() if k != "PROMETHEUS_MULTIPROC_DIR"}})
print(folder.is_dir())
"""
    assert run(tmp_path, beside).split() == ["True", "True", "True"]
    assert left(tmp_path) == []


def test_a_folder_that_the_operator_named_is_used_and_kept(tmp_path: Path) -> None:
    named = tmp_path / "named"
    named.mkdir()
    assert run(tmp_path, PROMETHEUS_MULTIPROC_DIR=str(named)) == "True"
    assert named.is_dir()
    assert left(tmp_path) == []
