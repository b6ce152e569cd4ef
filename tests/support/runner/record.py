"""What happens in a test run, written line by line while it happens: a run that is ended from outside keeps it.

`plugin` writes it in pytest's own process, the runner reads it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EVENTS = "events.jsonl"
# Of what a failed test printed; the pages of pytest have all of it.
KEPT_CHARACTERS = 20_000


@dataclass(frozen=True)
class Test:
    """One test of a run. `seconds` are of its setup, call and teardown; `words` are what its failure printed."""

    nodeid: str
    seconds: float = 0.0
    is_over: bool = False
    has_failed: bool = False
    was_skipped: bool = False
    words: str = ""
    # Pytest would try to collect it.
    __test__ = False

    @property
    def folder(self) -> str:
        return self.nodeid.split("::")[0].rpartition("/")[0]


@dataclass(frozen=True)
class Record:
    """`collected` are the tests that were to run, `broken` the files that could not be read, with the reason."""

    tests: dict[str, Test] = field(default_factory=dict)
    collected: frozenset[str] = frozenset()
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> list[Test]:
        return [test for test in self.tests.values() if test.has_failed]

    @property
    def passed(self) -> list[Test]:
        return [test for test in self.tests.values() if test.is_over and not test.has_failed and not test.was_skipped]

    @property
    def running(self) -> list[str]:
        return sorted(test.nodeid for test in self.tests.values() if not test.is_over)

    @property
    def missing(self) -> list[str]:
        """What was collected and never begun."""
        return sorted(self.collected - self.tests.keys())


def read(folder: Path) -> Record:
    """What was written so far; nothing where pytest did not come as far as that."""
    file = folder / EVENTS
    lines = file.read_text().splitlines() if file.exists() else []
    events = [json.loads(line) for line in lines if line.endswith("}")]
    grouped: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        grouped[event["event"]].append(event)
    by_test: dict[str, list[dict[str, Any]]] = {event["test"]: [] for event in grouped["begun"]}
    for event in grouped["report"]:
        by_test.setdefault(event["test"], []).append(event)
    return Record(
        tests={nodeid: _test(nodeid, reports) for nodeid, reports in by_test.items()},
        collected=frozenset(test for event in grouped["collected"] for test in event["tests"]),
        broken={event["file"]: event["words"] for event in grouped["broken"]},
    )


def _test(nodeid: str, reports: Iterable[dict[str, Any]]) -> Test:
    reports = list(reports)
    return Test(
        nodeid,
        seconds=sum(report["seconds"] for report in reports),
        # A process that died in the middle is reported once, and never gets to a teardown.
        is_over=any(report["when"] not in ("setup", "call") for report in reports),
        has_failed=any(report["outcome"] == "failed" for report in reports),
        was_skipped=any(report["outcome"] == "skipped" for report in reports),
        words="\n".join(report["words"] for report in reports if report["words"]),
    )
