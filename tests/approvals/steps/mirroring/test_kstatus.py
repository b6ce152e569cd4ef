"""The column kstatus of the table of conditions, by the library that Flux itself judges with."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from approvals.steps.mirroring.conditions import Readiness
from tests.approvals.steps.mirroring.rows import ROWS, shown, wish
from tests.support.built import built
from tests.support.patience import scaled

pytestmark = pytest.mark.thorough

SECONDS = 30


@pytest.fixture(scope="module")
def kstatus() -> Path:
    found = built("kstatus")
    assert found is not None
    return found


def judged(kstatus: Path, objects: Sequence[dict[str, Any]]) -> list[str]:
    done = subprocess.run(
        [kstatus], input=json.dumps(objects), capture_output=True, text=True, check=False, timeout=scaled(SECONDS)
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_each_row_is_judged_as_the_table_says(kstatus: Path) -> None:
    found = dict(zip(Readiness, judged(kstatus, [shown(one) for one in Readiness]), strict=True))
    assert {one.name: state for one, state in found.items()} == {one.name: row[-1] for one, row in ROWS.items()}


def test_a_spec_that_was_not_looked_at_yet_is_in_progress_whatever_was_said_before(kstatus: Path) -> None:
    assert set(judged(kstatus, [shown(one, seen=2) for one in Readiness])) == {"InProgress"}


def test_what_is_deleted_is_terminating_whatever_is_said(kstatus: Path) -> None:
    told = {"metadata": {**wish()["metadata"], "deletionTimestamp": "2026-11-26T00:00:00Z"}}
    assert set(judged(kstatus, [shown(one) | told for one in Readiness])) == {"Terminating"}
