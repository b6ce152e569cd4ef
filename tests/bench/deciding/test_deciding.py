"""What deciding costs where there is much of it: policies and rules, open requests, past ones, and members of a set.

Run by `make bench`, on PostgreSQL; the page of a set is that of the shipped service, on a real API server.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from approvals.services.policies import replays
from tests.bench.deciding import figures, large_set
from tests.bench.service import environment, migrate
from tests.bench.visiting import installed, late, made, show
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.servers.postgresql import Postgres

JUDGE_SECONDS, CHANGE_SECONDS, DECISION_SECONDS, SWEEP_SECONDS = 0.200, 2.0, 0.5, 0.5
# Beyond its own bound a replay leaves requests out.
REPLAY_SECONDS, SET_SECONDS = replays.SECONDS, 0.500
ROUNDS = 40


@pytest.fixture
def measure(postgres: Postgres, redis: str, tmp_path: Path) -> Callable[[str], dict[str, Any]]:
    """What `figures` measures in a new database."""

    def run(what: str) -> dict[str, Any]:
        about = environment(tmp_path, database=postgres.fresh_database(), queue=redis)
        migrate(about)
        return made(about, "tests.bench.deciding.figures", what)

    return run


def test_figures_of_a_thousand_policies_and_two_hundred_rules(measure: Callable[[str], dict[str, Any]]) -> None:
    found = measure("judge")
    parts = ", ".join(f"{name} {1000 * seconds:.0f}" for name, seconds in found["parts"].items())
    print(
        f"\n{figures.POLICIES:,} policies and {figures.RULES} rules on one request: {1000 * found['seconds']:.0f} ms a"
        f" look (goal {1000 * JUDGE_SECONDS:.0f}; {parts}), {1000 * found['plain']:.0f} ms without any"
    )
    assert (sum(found["said"].values()), found["said"]["holds"]) == (figures.POLICIES, figures.POLICIES // 100)
    assert found["satisfied"] == figures.RULES
    assert found["seconds"] <= JUDGE_SECONDS


def test_figures_of_ten_thousand_open_requests_when_a_rule_changes(measure: Callable[[str], dict[str, Any]]) -> None:
    found, half = measure("change"), figures.OPEN // 2
    before, after = found["decision"]
    print(
        f"\na rule changes with {figures.OPEN:,} open requests: {found['seconds']:.2f} s in {found['queries']} queries; a"
        f" decision beside it takes {1000 * after:.0f} ms at most ({1000 * before:.0f} before it); a sweep over them"
        f" {1000 * found['sweep']:.0f} ms, a look at one {1000 * found['look']:.0f} ms"
    )
    assert found["released"] == half
    assert found["due"]["due"] >= half
    assert found["seconds"] <= CHANGE_SECONDS
    assert after <= DECISION_SECONDS
    assert found["sweep"] <= SWEEP_SECONDS


def test_figures_of_a_draft_that_is_replayed_on_a_thousand_requests(measure: Callable[[str], dict[str, Any]]) -> None:
    found = measure("replay")
    print(f"\na draft on {figures.REPLAYED:,} past requests: {found['seconds']:.1f} s (goal {REPLAY_SECONDS:.0f})")
    assert (found["left_out"], found["why"]) == (0, "")
    assert found["counts"]["held"] >= figures.REPLAYED
    assert found["seconds"] <= REPLAY_SECONDS


@pytest.mark.controlplane
def test_figures_of_a_set_of_five_hundred(
    controlplane: Endpoint, postgres: Postgres, redis: str, tmp_path: Path
) -> None:
    about = {"rights": large_set.rights(), "module": "tests.bench.deciding.large_set"}
    with installed(controlplane, postgres, redis, tmp_path, **about) as site:
        visitor, taken = site.visitor("ada"), dict[str, list[float]]()
        for path in ("/sets", "/sets/spring"):
            text, _ = visitor.get(path)
            taken[path] = [visitor.get(path)[1] for _ in range(ROUNDS)]
        show(f"a set of {large_set.MEMBERS} requests", taken)
        assert "470" in text
        assert not late(taken, dict.fromkeys(taken, SET_SECONDS))
