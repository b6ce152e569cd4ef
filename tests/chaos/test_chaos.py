"""Whatever happens between any two writes: after it, all is as if nothing had happened.

In `make bench` every kind that draw.NAMED lists meets every point of every scenario of the sandbox, so little is left
to chance: who begins where two kinds take turns, where a rival takes over, and the order. `make thorough` draws some of
them, `make test` a few: after each death a process is started for the request alone, which takes seconds. Runs on a real control plane
are always drawn, each class of write before any a second time. The seed is the same every day: what fails is then the
change's and fails again; another PRATIQUE_SEED looks elsewhere.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.draw import Harm, Kind, Scenario, begins_of, unvisited
from tests.chaos.found import differences
from tests.chaos.starting import Starter
from tests.support.patience import scaled
from tests.support.servers.postgresql import Postgres

# So many at most. 0: everything, which is some thousand, as `make bench` does.
RUNS = int(os.environ.get("PRATIQUE_CHAOS_RUNS", "60"))
FEW_RUNS = 2
REAL_RUNS = int(os.environ.get("PRATIQUE_CHAOS_REAL_RUNS", "8"))
SEED = int(os.environ.get("PRATIQUE_SEED", "20261121"))
# What everything is at least.
LEAST_RUNS = 200
# Each has a database, a cluster and a share of the runs.
PARTS = 3


@dataclass(frozen=True)
class Run:
    """One line of the runner: the harm, what the hurt worker did until then, and what there is after all."""

    harm: Harm
    events: list[str]
    has_happened: bool
    is_killed: bool
    is_forgotten: bool
    turns: int
    found: dict[str, Any]

    @classmethod
    def read(cls, line: str) -> Run:
        told = json.loads(line)
        harm = Harm(Scenario(told.pop("scenario")), Kind(told.pop("kind")), told.pop("event"))
        return cls(harm, **told)


def started(starter: Starter, runs: int, part: int, parts: int, *more: str | Path) -> list[Run]:
    words = ("--runs", runs, "--seed", SEED, "--part", part, "--parts", parts, *more)
    return [Run.read(line) for line in starter.lines("tests.chaos.runner", f"part-{part}", *words)]


# Objects by which the scenarios differ.
TELLING = ("ConfigMap old", "ConfigMap sealed", "ConfigMap lying", "Widget boat")


def told(old: str, sealed: str, lying: str = "", widget: str = "") -> dict[str, str]:
    return dict(zip(TELLING, (old, sealed, lying, widget), strict=True))


def check_undisturbed(runs: dict[Scenario, Run]) -> None:
    """What the others are compared with is what it has to be."""
    founds = {scenario: run.found for scenario, run in runs.items()}
    ends = {scenario: (*run.found["requests"][-1], run.found["is_gone"]) for scenario, run in runs.items()}
    assert ends == {
        Scenario.FIRST: ("deploy", "applied", "", False),
        Scenario.UPDATE: ("deploy", "applied", "", False),
        Scenario.ROLLBACK: ("rollback", "applied", "", False),
        Scenario.RESTORE: ("deploy", "failed", "apply-failed", False),
        Scenario.DELETION: ("delete", "applied", "", True),
        Scenario.OPTIONAL: ("deploy", "applied", "", False),
    }
    done = {
        scenario: {one: str(found["planned"].get(one, "")) for one in TELLING} for scenario, found in founds.items()
    }
    assert done == {
        Scenario.FIRST: told(old="create", sealed="create"),
        Scenario.UPDATE: told(old="delete", sealed="replace", lying="adopt"),
        Scenario.ROLLBACK: told(old="create", sealed="replace", lying="delete"),
        Scenario.RESTORE: told(old="delete", sealed="none"),
        Scenario.DELETION: told(old="delete", sealed="delete"),
        Scenario.OPTIONAL: told(old="create", sealed="create", widget="skip"),
    }
    assert founds[Scenario.UPDATE]["is_same"] == {
        "configmaps settings": True,
        "configmaps sealed": False,
        "configmaps lying": True,
        "serviceaccounts boat": True,
        "serviceaccounts installer": True,
        "services boat": True,
        "deployments boat": True,
    }
    assert founds[Scenario.OPTIONAL]["left out"] == [["boat", "created", ""]]
    assert "widgets boat" in founds[Scenario.OPTIONAL]["objects"]
    assert "revision 1 was restored" in runs[Scenario.RESTORE].found["problem"]
    for run in runs.values():
        assert all(run.found["inventory"].values()), run.found["inventory"]
        assert run.found["is_chain_whole"]
        assert run.found["audit"].count("request.start") == 1


def check(runs: list[Run], undisturbed: dict[Scenario, Run]) -> None:
    different = {}
    for run in runs:
        found = differences(run.found, undisturbed[run.harm.scenario].found)
        if found or run.is_forgotten:
            different[str(run.harm)] = found or "the sweep did not wake it"
    assert different == {}, f"{len(different)} of {len(runs)} runs ended otherwise; again with PRATIQUE_SEED={SEED}"


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


@pytest.mark.timeout(scaled(120 + 60 * FEW_RUNS))
@pytest.mark.services
def test_a_few_harms_between_two_writes_leave_all_as_if_nothing_had_happened(
    bundles: str, postgres: Postgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # PostgreSQL ends the transaction of a worker that is stopped only after 30 s: such harms are left to the long tests.
    few = ("--kinds", Kind.KILLED_BEFORE)
    hurt, _ = all_as_undisturbed(Starter(postgres, bundles, tmp_path), FEW_RUNS, 1, capsys, *few)
    assert len(hurt) == FEW_RUNS
    assert any(run.is_killed for run in hurt)


@pytest.mark.services
@pytest.mark.thorough
def test_whatever_happens_between_two_writes_all_is_as_if_nothing_had_happened(
    bundles: str, postgres: Postgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hurt, missed = all_as_undisturbed(Starter(postgres, bundles, tmp_path), RUNS, PARTS, capsys)
    if RUNS:
        assert len(hurt) == RUNS
    else:
        assert missed == []
        assert len(hurt) >= LEAST_RUNS


def all_as_undisturbed(
    starter: Starter, runs: int, count: int, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[list[Run], list[Any]]:
    """The runs that were hurt, all of which ended as those that were not, and the points that no promised harm met."""
    with ThreadPoolExecutor(count) as parts:
        shares = list(parts.map(lambda part: started(starter, runs, part, count, *more), range(count)))
    hurt, counted = [], []
    for share in shares:
        undisturbed = {run.harm.scenario: run for run in share[: len(Scenario)]}
        check_undisturbed(undisturbed)
        check(share[len(Scenario) :], undisturbed)
        hurt += share[len(Scenario) :]
        counted.append(undisturbed)
    points = points_of(*counted)
    begins = max(begins_of({one: run.events for one, run in runs.items()})[Scenario.RESTORE] for runs in counted)
    happened = [run.harm for run in hurt if run.has_happened]
    missed = unvisited(points, happened, {Scenario.RESTORE: begins})
    say(capsys, hurt, points, f"points that something promised did not meet: {len(missed)}")
    return hurt, missed


@pytest.mark.thorough
def test_a_real_api_server_and_etcd_may_go_and_come_back_between_two_writes(
    bundles: str, postgres: Postgres, binaries: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    share = started(Starter(postgres, bundles, tmp_path), REAL_RUNS, 0, 1, "--binaries", binaries)
    undisturbed, hurt = {run.harm.scenario: run for run in share[: len(Scenario)]}, share[len(Scenario) :]
    check_undisturbed(undisturbed)
    check(hurt, undisturbed)
    events = {(run.harm.scenario, name) for run in undisturbed.values() for name in run.events}
    met = {(run.harm.scenario, undisturbed[run.harm.scenario].events[run.harm.event - 1]) for run in hurt}
    say(capsys, hurt, points_of(undisturbed), f"kinds of writes met: {len(met)} of {len(events)}")
    assert len(hurt) == REAL_RUNS
