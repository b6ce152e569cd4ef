"""The runner on small folders of tests: what fails once, always, hangs, dies, or leaves something behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.folders import ROOT
from tests.support.patience import VARIABLE, scaled
from tests.support.runner.__main__ import MINUTES
from tests.support.runner.plugin import TOGETHER, unit_of

SECONDS = 120


@dataclass(frozen=True)
class Run:
    code: int
    said: str
    results: Path

    @property
    def proof(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.results / "passed").read_text())
        return found


Runner = Callable[..., Run]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """Run a ring over modules of tests."""

    def run(*codes: str, ring: str = "test", minutes: float = 60) -> Run:
        folder, results = tmp_path / "tests" / "small", tmp_path / "test-results"
        folder.mkdir(parents=True)
        results.mkdir()
        (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    thorough\n    proof\n")
        for number, code in enumerate(codes):
            (folder / f"test_{number}.py").write_text(dedent(code))
        command = [sys.executable, "-m", "tests.support.runner", ring, "--root", str(tmp_path)]
        # A stale proof must not outlive a run that fails.
        (results / "passed").write_text("stale")
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={
                **os.environ,
                # Each process of pytest loads these plugins alone, which is a fifth of the work.
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
                "PYTEST_ADDOPTS": "-p xdist -p pytest_timeout",
                VARIABLE: "1",
                MINUTES: str(minutes),
                "STATE": str(tmp_path),
                "PYTHONPATH": str(ROOT),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=scaled(SECONDS),
        )
        return Run(done.returncode, done.stdout + done.stderr, results)

    return run


def test_files_that_share_a_kubernetes_are_run_by_one_worker() -> None:
    assert all((ROOT / folder).is_dir() for folder in TOGETHER)
    assert unit_of("tests/rights/test_a.py::test_a[x::y]") == unit_of("tests/rights/test_b.py::test_b")
    assert unit_of("tests/contract/test_a.py::test_a") != unit_of("tests/contract/test_b.py::test_b")


def test_what_fails_once_is_unstable_and_the_run_passes(runner: Runner) -> None:
    done = runner("""
        import os
        from pathlib import Path
        import pytest
        def test_fails_once():
            mark = Path(os.environ["STATE"], "tried")
            first = not mark.exists()
            mark.touch()
            assert not first, "only the first time"
        def test_passes(request):
            assert request.node.get_closest_marker("timeout").args == (120,)
        @pytest.mark.thorough
        def test_is_of_the_other_ring():
            raise AssertionError
        @pytest.mark.thorough
        @pytest.mark.proof
        def test_is_of_this_ring_all_the_same():
            pass
    """)
    assert done.code == 0, done.said
    assert "UNSTABLE" in done.said
    assert done.said.endswith("3 passed, 0 failed\n")
    assert "only the first time" in (done.results / "unstable.md").read_text()
    (unstable,) = done.proof["unstable"]  # type: ignore[misc]  # JSON that has a list here
    assert unstable.endswith("test_fails_once")
    assert done.proof["passed"] == 3


def test_what_always_fails_hangs_or_dies_fails_the_run(runner: Runner) -> None:
    done = runner(
        """
        import time
        import pytest
        def test_always_fails():
            raise AssertionError("again and again")
        @pytest.mark.timeout(2)
        def test_hangs():
            def waits_for_nothing():
                time.sleep(3600)
            waits_for_nothing()
        """,
        """
        import os
        def test_dies():
            os._exit(3)
        def test_comes_after_a_death():
            pass
        """,
    )
    assert done.code == 1
    failed = done.said.partition("== FAILED ==")[2]
    assert "again and again" in failed
    assert "waits_for_nothing" in failed
    assert "test_dies" in failed
    assert "3 tests failed." in failed
    assert "1 tests were not run." in failed
    assert not (done.results / "passed").exists()


@pytest.mark.thorough
def test_what_is_left_behind_fails_the_run(runner: Runner) -> None:
    done = runner("""
        import subprocess, sys, tempfile
        def test_leaves_things_behind():
            subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
            tempfile.mkdtemp(prefix="forgotten-")
    """)
    assert done.code == 1
    assert "time.sleep(3600)" in done.said.partition("== LEFT RUNNING ==")[2]
    assert "forgotten-" in done.said.partition("== LEFT IN THE TEMPORARY FOLDER ==")[2]
    assert not (done.results / "passed").exists()


def test_a_run_beyond_its_deadline_says_what_is_missing_and_where_it_was(runner: Runner) -> None:
    done = runner(
        """
        import time
        def test_1_hangs():
            def waits_for_nothing():
                time.sleep(3600)
            waits_for_nothing()
        def test_2_never_begins():
            pass
        """,
        minutes=scaled(5) / 60,
    )
    assert done.code == 1
    assert "waits_for_nothing" in done.said.partition("== STACKS ==")[2].partition("==")[0]
    assert "test_1_hangs" in done.said.partition("== RUNNING AT THE DEADLINE ==")[2].partition("==")[0]
    assert "test_2_never_begins" in done.said.partition("== NOT RUN ==")[2].partition("==")[0]
    assert not (done.results / "passed").exists()


@pytest.mark.thorough
def test_the_thorough_ring_has_a_line_for_each_part(runner: Runner) -> None:
    done = runner(
        """
        import pytest
        @pytest.mark.thorough
        def test_takes_long(request):
            assert request.node.get_closest_marker("timeout").args == (600,)
        def test_is_of_the_other_ring():
            raise AssertionError
        """,
        ring="thorough",
    )
    assert done.code == 0, done.said
    assert "| small | 1 |" in (done.results / "thorough.md").read_text()
    assert done.proof["ring"] == "thorough"


@pytest.mark.thorough
def test_a_module_that_cannot_be_read_fails_the_run(runner: Runner) -> None:
    done = runner("import something_that_is_nowhere")
    assert done.code == 1
    assert "something_that_is_nowhere" in done.said.partition("== NOT COLLECTED ==")[2]
