"""Whatever happens between any two writes: after it, all is as if nothing had happened."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from approvals.management.demo.bundles import pack
from tests.chaos.draw import Harm, Kind, Scenario, unvisited
from tests.chaos.scenarios import VERSIONS, boat
from tests.services.postgresql import Postgres

ROOT = Path(__file__).resolve().parents[2]
# kill -9 at every point of every scenario takes 170; the others are what else can happen, at a point each.
RUNS = int(os.environ.get("PRATIQUE_CHAOS_RUNS", "280"))
REAL_RUNS = int(os.environ.get("PRATIQUE_CHAOS_REAL_RUNS", "24"))
SEED = int(os.environ.get("PRATIQUE_SEED", "20261121"))
# Each has a database, a cluster and a share of the runs.
PARTS = 2
SECONDS = 1500


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return None


@pytest.fixture
def bundles(tmp_path: Path) -> Iterator[str]:
    for version in VERSIONS:
        folder = tmp_path / "source" / "boat" / version / "manifests"
        folder.mkdir(parents=True)
        (folder / "all.yaml").write_text(yaml.safe_dump_all(boat(version)))
    pack(tmp_path / "source", tmp_path / "bundles")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "bundles")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@dataclass(frozen=True)
class Run:
    """One line of the runner: the harm, what the hurt worker did until then, and what there is after all."""

    harm: Harm
    events: list[str]
    is_killed: bool
    is_forgotten: bool
    turns: int
    found: dict[str, Any]

    @classmethod
    def read(cls, line: str) -> Run:
        told = json.loads(line)
        harm = Harm(Scenario(told.pop("scenario")), Kind(told.pop("kind")), told.pop("event"))
        return cls(harm, **told)


@dataclass(frozen=True)
class Runner:
    """Starts `tests.chaos.runner` with a database and a folder of its own."""

    postgres: Postgres
    bundles: str
    tmp_path: Path

    def run(self, runs: int, part: int, parts: int, *more: str | Path) -> list[Run]:
        folder = self.tmp_path / f"part-{part}"
        folder.mkdir()
        environment = self._environment(folder)
        run = partial(
            subprocess.run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
        )
        migrated = run([sys.executable, "manage.py", "migrate", "--verbosity", "0"])
        assert migrated.returncode == 0, migrated.stderr
        words = ["--folder", folder, "--bundles", self.bundles, "--runs", runs, "--seed", SEED]
        words += ["--part", part, "--parts", parts, *more]
        done = run([sys.executable, "-m", "tests.chaos.runner", *map(str, words)])
        assert done.returncode == 0, done.stderr[-4000:]
        return [Run.read(line) for line in done.stdout.splitlines()]

    def _environment(self, folder: Path) -> dict[str, str]:
        return {
            **os.environ,
            "PRATIQUE_SECRET_KEY": "x" * 50,
            "PRATIQUE_DATABASE_URL": self.postgres.fresh_database(),
            "PRATIQUE_CONTENT_DIR": str(folder / "content"),
            "PRATIQUE_ALLOWED_NETWORKS": "127.0.0.0/8",
            "PRATIQUE_PLAIN_HTTP": "true",
            "PRATIQUE_MUTABLE_HTTP": "true",
            # Nobody listens: the runner takes out what the sweep puts in.
            "PRATIQUE_REDIS_URL": "memory://",
            "PRATIQUE_LOG_FORMAT": "console",
        }


def differences(found: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """What was found that was not expected, by its path."""
    told: dict[str, Any] = {}
    for key in sorted(found.keys() | expected.keys()):
        ours, theirs = found.get(key), expected.get(key)
        if isinstance(ours, dict) and isinstance(theirs, dict):
            told |= {f"{key}: {path}": value for path, value in differences(ours, theirs).items()}
        elif ours != theirs:
            told[key] = (ours, theirs)
    return told


def check_undisturbed(runs: dict[Scenario, Run]) -> None:
    """What the others are compared with is what it has to be."""
    ends = {scenario: (*run.found["requests"][-1], run.found["is_gone"]) for scenario, run in runs.items()}
    assert ends == {
        Scenario.FIRST: ("deploy", "applied", "", False),
        Scenario.UPDATE: ("deploy", "applied", "", False),
        Scenario.RESTORE: ("deploy", "failed", "apply-failed", False),
        Scenario.DELETION: ("delete", "applied", "", True),
    }
    assert "revision 1 was put back" in runs[Scenario.RESTORE].found["problem"]
    for run in runs.values():
        assert all(run.found["inventory"].values()), run.found["inventory"]
        assert run.found["is_chain_whole"]
        assert run.found["audit"].count("request.start") == 1


def check(runs: list[Run], undisturbed: dict[Scenario, Run]) -> None:
    different = {}
    for run in runs:
        told = differences(run.found, undisturbed[run.harm.scenario].found)
        if told or run.is_forgotten:
            different[str(run.harm)] = told or "the sweep did not wake it"
    assert different == {}, f"{len(different)} of {len(runs)} runs ended otherwise (seed {SEED})"


def points_of(*undisturbed: dict[Scenario, Run]) -> dict[Scenario, int]:
    """How many events each scenario has, at least: one that is tried again on a busy machine writes once more."""
    return {scenario: min(len(runs[scenario].events) for runs in undisturbed) for scenario in Scenario}


def say(capsys: pytest.CaptureFixture[str], runs: list[Run], points: dict[Scenario, int], words: str) -> None:
    """What was tried, for people who read the output of the tests."""
    kinds = Counter(run.harm.kind for run in runs)
    where = ", ".join(f"{scenario} {count}" for scenario, count in points.items())
    what = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    with capsys.disabled():
        sys.stdout.write(f"\nchaos, seed {SEED}: writes: {where}; runs: {len(runs)}: {what}; {words}\n")


@pytest.mark.services
def test_whatever_happens_between_two_writes_all_is_as_if_nothing_had_happened(
    bundles: str, postgres: Postgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runner = Runner(postgres, bundles, tmp_path)
    with ThreadPoolExecutor(PARTS) as parts:
        shares = list(parts.map(lambda part: runner.run(RUNS, part, PARTS), range(PARTS)))
    hurt, counted = [], []
    for share in shares:
        undisturbed = {run.harm.scenario: run for run in share[: len(Scenario)]}
        check_undisturbed(undisturbed)
        check(share[len(Scenario) :], undisturbed)
        hurt += share[len(Scenario) :]
        counted.append(undisturbed)
    points = points_of(*counted)
    missed = unvisited(points, [run.harm for run in hurt if run.is_killed])
    say(capsys, hurt, points, f"points without kill -9: {len(missed)}")
    assert len(hurt) == RUNS
    # Fewer runs than points are for trying things out.
    assert missed == [] or sum(points.values()) + len(points) * PARTS > RUNS


def test_a_real_api_server_and_etcd_may_go_and_come_back_between_two_writes(
    bundles: str, postgres: Postgres, binaries: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    share = Runner(postgres, bundles, tmp_path).run(REAL_RUNS, 0, 1, "--binaries", binaries)
    undisturbed, hurt = {run.harm.scenario: run for run in share[: len(Scenario)]}, share[len(Scenario) :]
    check_undisturbed(undisturbed)
    check(hurt, undisturbed)
    events = {(run.harm.scenario, name) for run in undisturbed.values() for name in run.events}
    met = {(run.harm.scenario, undisturbed[run.harm.scenario].events[run.harm.event - 1]) for run in hurt}
    say(capsys, hurt, points_of(undisturbed), f"kinds of writes met: {len(met)} of {len(events)}")
    assert len(hurt) == REAL_RUNS
