"""Whatever happens while reviews by kubectl are counted: each counts once, none is lost, and its status says what is true.

On a real API server, which is away and comes back as well; what is hit is drawn, each write of the counting worker
before any a second time. Another PRATIQUE_SEED looks elsewhere, PRATIQUE_CHAOS_REVIEW_RUNS=0 everywhere.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.by_kubectl import RECORDED, Said
from tests.chaos.found import differences
from tests.chaos.starting import Starter
from tests.support.servers.postgresql import Postgres

RUNS = int(os.environ.get("PRATIQUE_CHAOS_REVIEW_RUNS", "24"))
SEED = int(os.environ.get("PRATIQUE_SEED", "20261121"))
# Nobody looks at the report here.
SETTINGS = {"PRATIQUE_UNSEEN_SEVERITY": "critical"}
Run = dict[str, Any]


def check_undisturbed(runs: dict[Said, Run]) -> None:
    """What the others are compared with is what it has to be."""
    founds = {said: run["found"] for said, run in runs.items()}
    by_alice = {said: [[decision, who] for decision, who, _ in one["reviews"]] for said, one in founds.items()}
    assert by_alice == {
        Said.APPROVE: [["Approve", "alice"]],
        Said.DENY: [["Deny", "alice"]],
        Said.CHANGES: [["RequestChanges", "alice"], ["Approve", "alice"]],
        Said.ANOTHER_DIGEST: [],
    }
    assert {said: one["counted"] for said, one in founds.items()} == {
        Said.APPROVE: ["Approve"],
        Said.DENY: ["Deny"],
        Said.CHANGES: ["Approve"],
        Said.ANOTHER_DIGEST: [],
    }
    counted, refused = ["True", "Counted", True], ["False", "DigestMoved", True]
    assert {said: one["statuses"] for said, one in founds.items()} == {
        Said.APPROVE: [counted],
        Said.DENY: [counted],
        Said.CHANGES: [counted, counted],
        Said.ANOTHER_DIGEST: [refused],
    }
    assert {said: (one["state"], one["mirror"][0]) for said, one in founds.items()} == {
        Said.APPROVE: ("approved", "approved"),
        Said.DENY: ("denied", "denied"),
        Said.CHANGES: ("approved", "approved"),
        Said.ANOTHER_DIGEST: ("in_review", "in_review"),
    }
    assert all(one["is_chain_whole"] for one in founds.values())


@pytest.mark.thorough
def test_S23_whatever_happens_while_reviews_are_counted_each_counts_once_and_is_told_so(
    bundles: str, postgres: Postgres, binaries: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--runs", RUNS, "--seed", SEED, "--binaries", binaries)
    told = Starter(postgres, bundles, tmp_path, SETTINGS).lines("tests.chaos.by_kubectl", "it", *words)
    runs: list[Run] = [json.loads(line) for line in told]
    undisturbed, hurt = {Said(run["said"]): run for run in runs[: len(Said)]}, runs[len(Said) :]
    check_undisturbed(undisturbed)
    different = {
        f"{run['said']}: {run['kind']} at event {run['event']}": found
        for run in hurt
        if (found := differences(run["found"], undisturbed[Said(run["said"])]["found"])) or run["is_forgotten"]
    }
    points = sum(len(run["events"]) for run in undisturbed.values())
    kinds = Counter(run["kind"] for run in hurt if run["has_happened"])
    with capsys.disabled():
        what = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
        sys.stdout.write(f"\nchaos of reviews, seed {SEED}: writes: {points}; runs: {len(hurt)}: {what}\n")
    assert different == {}, f"{len(different)} of {len(hurt)} runs ended otherwise; again with PRATIQUE_SEED={SEED}"
    assert any(run["is_killed"] and run["events"][-1] == RECORDED for run in hurt)
    assert len(hurt) == RUNS or not RUNS
