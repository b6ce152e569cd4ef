"""Run a ring of the tests: `python -m tests.support.runner test`, `thorough [--part chaos]`, or `quick`, a part of `test`.

Prints what pytest prints, then figures, unstable and failed tests, what was left behind and why the run failed. Exits
with 1 if it failed. PRATIQUE_TEST_MINUTES is the deadline of the whole run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.support import patience
from tests.support.folders import ROOT
from tests.support.runner import leftovers, sessions, summary
from tests.support.runner.record import Test
from tests.support.runner.summary import Outcome

TESTS = Path("tests")
RESULTS = Path("test-results")
MINUTES = "PRATIQUE_TEST_MINUTES"
# What each folder took in `make test` when somebody last agreed to that; each run writes its own into test-results.
FOLDERS = "folders.json"
# More failures are not the machine's: a second trial of some tells enough.
MOST_TRIALS = 20


@dataclass(frozen=True)
class Ring:
    """`marks` select its tests, `minutes` are its deadline where none is named."""

    marks: str
    minutes: int


FIRST = "proof or not thorough"
RINGS = {
    "test": Ring(FIRST, 70),
    "thorough": Ring(f"not ({FIRST})", 240),
    "quick": Ring(f"({FIRST}) and not controlplane and not services and not browser", 30),
}


def main(words: Sequence[str]) -> int:
    given = _parse(words)
    ring = RINGS[given.ring]
    target = TESTS / (given.part or "")
    if not (given.root / target).is_dir():
        print(f"There is no folder {target}. A part is a folder below {TESTS}.", file=sys.stderr)
        return 2
    results = given.root / RESULTS
    for name in ("passed", "unstable.md", *(["thorough.md"] if given.ring == "thorough" else [])):
        (results / name).unlink(missing_ok=True)
    minutes = float(os.environ.get(MINUTES, ring.minutes))
    print(
        f"Waits are {patience.factor():.1f} times as long as on a quiet machine; the run ends after {minutes:.0f} minutes."
    )
    outcome = _run(ring, given.root, target, given.workers, time.monotonic() + minutes * 60)
    _keep(outcome, given.ring, given.root)
    above = patience.scaled(summary.QUICK_SECONDS) if given.ring != "thorough" else None
    budget = None
    if given.ring == "test" and not given.part:
        budget = summary.Budget(json.loads(Path(__file__).with_name(FOLDERS).read_text()), patience.factor())
    print("", summary.closing(outcome, name_above=above, budget=budget), sep="\n", flush=True)
    return 1 if outcome.faults else 0


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.support.runner", description="Run a ring of the tests.")
    parser.add_argument("ring", choices=RINGS)
    parser.add_argument("--part", help="only this folder of the tests")
    parser.add_argument("--workers", type=int, default=4, help="processes of pytest-xdist")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout whose tests are run")
    return parser.parse_args(words)


def _run(ring: Ring, root: Path, target: Path, workers: int, deadline: float) -> Outcome:
    began = time.monotonic()
    mark = f"{os.getpid()}-{time.time_ns()}"
    with leftovers.temporary_folder() as temporary, tempfile.TemporaryDirectory(prefix="pratique-record-") as kept:
        environment = {leftovers.MARK: mark, "TMPDIR": str(temporary)}
        # In the order of `plugin`: else the files with the fewest tests, which take the longest, come last, on one core.
        parallel = [f"--numprocesses={workers}", "--dist=loadfile", "--no-loadscope-reorder"]
        selected = [
            f"--basetemp={temporary / leftovers.KEPT}",
            "-m",
            ring.marks,
            f"--ignore={target / 'bench'}",
            str(target),
        ]
        pytest = sessions.Pytest(root, Path(kept), environment, deadline)
        first = pytest.run([*parallel, *selected])
        processes = leftovers.end(mark)
        passed_alone = _second_trials(pytest, first.record.failed)
        processes += leftovers.end(mark)
        return Outcome(
            first,
            unstable=[test for test in first.record.failed if test.nodeid in passed_alone],
            failed=[test for test in first.record.failed if test.nodeid not in passed_alone],
            processes=[str(process) for process in processes],
            files=leftovers.files(temporary),
            seconds=time.monotonic() - began,
        )


def _second_trials(pytest: sessions.Pytest, failed: Sequence[Test]) -> set[str]:
    """The failed tests that pass alone, in a process of their own, with nothing beside them."""
    passed = set()
    for test in failed[:MOST_TRIALS]:
        if pytest.seconds_left <= 0:
            break
        print(f"\nA second trial, alone: {test.nodeid}", flush=True)
        trial = pytest.run([test.nodeid])
        # A test that is not found, or left out, has proved nothing.
        if trial.has_passed and trial.record.passed:
            passed.add(test.nodeid)
    return passed


def _keep(outcome: Outcome, ring: str, root: Path) -> None:
    results = root / RESULTS
    results.mkdir(exist_ok=True)
    tree, now = _tree(root), datetime.now(UTC)
    (results / "unstable.md").write_text(summary.unstable_page(outcome.unstable, tree, now))
    if ring == "thorough":
        (results / "thorough.md").write_text(summary.parts_page(outcome, tree, now))
    if ring == "test":
        by_folder = summary.seconds_by_folder(outcome.record.tests.values())
        taken = {folder: round(sum(seconds)) for folder, seconds in by_folder.items()}
        (results / FOLDERS).write_text(json.dumps(taken, indent=2) + "\n")
    if not outcome.faults:
        found = summary.proof(outcome, ring, tree, patience.factor())
        (results / "passed").write_text(json.dumps(found, indent=2) + "\n")


def _tree(root: Path) -> str:
    """The hash of what git holds of this checkout, "dirty" where files differ from it."""
    if not (shutil.which("git") and (root / ".git").exists()):
        return "unknown"
    tree, changed = (
        subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()
        for words in (["rev-parse", "HEAD^{tree}"], ["status", "--porcelain"])
    )
    return "dirty" if changed else tree


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
