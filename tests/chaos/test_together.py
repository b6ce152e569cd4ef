"""Several workers with the same messages, started in the same moment: one apply, and each object is written once.

Every writer is a process of the test and tells of each write as the API server answers it. What is to be written how
often follows from the approved plan alone: a replacement is a deletion and a creation, what stays is not written.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from tests.chaos.draw import Scenario
from tests.chaos.found import differences
from tests.chaos.scenarios import SHARED
from tests.chaos.starting import Starter
from tests.support.servers.postgresql import Postgres

ROUNDS = int(os.environ.get("PRATIQUE_TOGETHER_ROUNDS", "6"))
SEED = int(os.environ.get("PRATIQUE_SEED", "20261121"))
WRITTEN = {
    "create": ["apply"],
    "update": ["apply"],
    "adopt": ["apply"],
    "replace": ["delete", "apply"],
    "delete": ["delete"],
    "none": [],
    "skip": [],
}
# What is put back, and what is created when its API appears, is in no plan of the request.
BY_MORE_THAN_THE_PLAN = (Scenario.RESTORE, Scenario.OPTIONAL)
Round = dict[str, Any]


@dataclass(frozen=True)
class Rounds:
    alone: dict[str, Round]
    together: list[Round]

    def of(self, *cases: str) -> list[Round]:
        return [one for one in self.together if one["cases"] == list(cases)]


@pytest.fixture(scope="module")
def rounds(bundles: str, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Rounds:
    words = ("--rounds", ROUNDS, "--seed", SEED)
    starter = Starter(postgres, bundles, tmp_path_factory.mktemp("together"))
    told = [json.loads(line) for line in starter.lines("tests.chaos.together", "it", *words)]
    return Rounds(
        {one["cases"][0]: one for one in told if one["workers"] == 1}, [one for one in told if one["workers"] > 1]
    )


def done(one: Round) -> Counter[tuple[str, str]]:
    """How often each object was written as it was asked for."""
    return Counter((verb, name) for verb, name, refusal in one["writes"] if not refusal)


def planned(found: dict[str, Any]) -> Counter[tuple[str, str]]:
    """The same by the approved plan."""
    return Counter((verb, name) for name, action in found["planned"].items() for verb in WRITTEN[action])


def by_name(writes: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Without the namespace, which a plan's words do not have here."""
    named: Counter[tuple[str, str]] = Counter()
    for (verb, name), count in writes.items():
        kind, *_, last = name.split()
        named[verb, f"{kind} {last}"] += count
    return named


def check_whole(one: Round) -> None:
    assert (set(one["ended"]), one["errors"], one["is_chain_whole"]) == ({0}, [], True)


def check_one_apply(one: Round, alone: Round) -> None:
    check_whole(one)
    assert differences(one["found"][0], alone["found"][0]) == {}, one["cases"]
    assert one["found"][0]["audit"].count("request.start") == 1
    assert done(one) == done(alone), one["cases"]


def check_side_by_side(one: Round) -> None:
    """Neither wrote anything before both had begun: they would have waited for each other in vain."""
    check_whole(one)
    for found in one["found"]:
        assert (found["requests"], found["problem"]) == ([["deploy", "applied", ""]], "")
        assert found["audit"].count("request.start") == 1
    assert by_name(done(one)) == planned(one["found"][0]) + planned(one["found"][1])
    assert set(done(one).values()) == {1}


def check_one_gets_it(one: Round) -> None:
    check_whole(one)
    winner, loser = sorted(one["found"], key=lambda found: found["requests"][-1][1])
    assert [found["requests"] for found in (winner, loser)] == [
        [["deploy", "applied", ""]],
        [["deploy", "failed", "apply-failed"]],
    ]
    assert f"ConfigMap NS/{SHARED} exists already" in loser["problem"]
    owner = f"BundleDeployment {winner['name']}, revision 1"
    assert owner not in loser["problem"]
    ((met, said),) = loser["server words"]
    assert met.endswith(f"ConfigMap NS/{SHARED}")
    assert said.startswith(owner)
    assert loser["owners"][f"configmaps {SHARED}"] == owner
    assert f"ConfigMap {SHARED}" in winner["held"]
    assert f"ConfigMap {SHARED}" not in loser["held"]
    assert set(done(one).values()) == {1}
    refused = [(verb, name.split()[-1], refusal) for verb, name, refusal in one["writes"] if refusal]
    assert refused == [("apply", SHARED, "AlreadyExists")]


@pytest.mark.thorough
def test_workers_that_start_at_once_make_one_apply_of_it(rounds: Rounds) -> None:
    for case, one in rounds.alone.items():
        check_whole(one)
        if case not in BY_MORE_THAN_THE_PLAN:
            assert by_name(done(one)) == planned(one["found"][0]), case
    one_request = [one for one in rounds.together if len(one["cases"]) == 1]
    assert len(one_request) == ROUNDS
    for one in one_request:
        check_one_apply(one, rounds.alone[one["cases"][0]])
    assert {one["workers"] for one in one_request} == {2, 3}


@pytest.mark.thorough
def test_two_deployments_of_one_cluster_are_applied_side_by_side(rounds: Rounds) -> None:
    found = rounds.of("apart-one", "apart-two")
    assert len(found) == ROUNDS
    for one in found:
        check_side_by_side(one)


@pytest.mark.thorough
def test_an_object_that_two_deployments_wish_for_is_one_s_and_the_other_is_told_whose(rounds: Rounds) -> None:
    found = rounds.of("rivals-this", "rivals-that")
    assert len(found) == ROUNDS
    for one in found:
        check_one_gets_it(one)
