"""What the runner asks of pytest: a record of events, a bound for each test, stacks when it is told to stop.

Named with `-p tests.support.runner.plugin`, which pytest-xdist hands on to its workers. Events are written by the one process
that hears of all; stacks by each.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, TextIO

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.support.patience import scaled
from tests.support.runner.record import EVENTS, KEPT_CHARACTERS
from tests.support.servers.process import running_logs

FOLDER = "PRATIQUE_TEST_RECORD"
STACKS = "stacks-"
STACKS_SIGNAL = signal.SIGUSR1
# Of a quiet machine. A test that takes longer hangs: it fails, with the stacks of all threads.
TEST_SECONDS = 120
THOROUGH_SECONDS = 600
# Folders whose files one worker runs, since they share a Kubernetes that no other test can use.
TOGETHER = ("tests/journeys/kubectl", "tests/rights", "tests/contract/policies")
# What one worker runs for long begins first, lest the others wait for it at the end.
FIRST = (*TOGETHER, "tests/chaos", "tests/browser/journeys", "tests/support/runner")


def unit_of(nodeid: str) -> str:
    """What is run by one worker: a file, or the files that share a Kubernetes."""
    file = nodeid.partition("::")[0]
    folder = file.rpartition("/")[0]
    return folder if folder in TOGETHER else file


class ByUnit(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


class Events:
    """Each event is one line, written at once."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._collected: set[str] = set()

    def _write(self, event: str, **facts: Any) -> None:
        self._file.write(json.dumps({"event": event, **facts}) + "\n")
        self._file.flush()

    def collected(self, tests: Iterable[str]) -> None:
        """Every worker collects the same."""
        if new := set(tests) - self._collected:
            self._collected |= new
            self._write("collected", tests=sorted(new))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self.collected(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected(item.nodeid for item in session.items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write("broken", file=report.nodeid, words=report.longreprtext[-KEPT_CHARACTERS:])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write("begun", test=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        words = _words(report) if report.failed else ""
        self._write(
            "report", test=report.nodeid, when=report.when, outcome=report.outcome, seconds=report.duration, words=words
        )


def _words(report: pytest.TestReport) -> str:
    printed = [f"--- {name} ---\n{text}" for name, text in report.sections]
    return "\n".join([f"{report.when}: {report.longreprtext}", *printed])[-KEPT_CHARACTERS:]


def pytest_configure(config: pytest.Config) -> None:
    folder = Path(os.environ[FOLDER])
    # Left open: the handler of the signal writes to it.
    stacks = (folder / f"{STACKS}{os.getpid()}").open("w")
    faulthandler.register(STACKS_SIGNAL, file=stacks, all_threads=True)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Events((folder / EVENTS).open("a")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByUnit:
    return ByUnit(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
    for item in items:
        if not item.get_closest_marker("timeout"):
            seconds = THOROUGH_SECONDS if item.get_closest_marker("thorough") else TEST_SECONDS
            item.add_marker(pytest.mark.timeout(scaled(seconds)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure shows what the processes wrote that the test started and that still run."""
    report = yield
    if report.failed:
        report.sections += [(f"the end of the log of {name}", text) for name, text in running_logs()]
    return report
