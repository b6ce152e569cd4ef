"""Every service that the tests need is started by a plugin of tests/support, on a free port, and stopped after.

A test that uses such a fixture gets its marker by itself. Tests of the corpus of real bundles are left out where that
is not there, and the end of the run says so, once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest
from django.conf import settings

from tests.support.folders import CORPUS, VECTORS

pytest_plugins = [
    "tests.support.servers.fixtures",
    "tests.support.kubernetes.fixtures",
    "tests.support.kubernetes.sandbox",
    "tests.support.approvals.fixtures",
    "tests.support.approvals.pages",
    "tests.support.approvals.chat",
    "tests.support.approvals.databases",
    "tests.support.approvals.quay",
    "tests.support.approvals.revisions",
    "tests.support.journeys.fixtures",
]

MARKERS = {
    "controlplane": {"binaries", "kubectl", "controlplane", "own_controlplane"},
    "services": {"postgres", "redis", "registry", "registry_with_auth", "git_server", "git_server_with_auth", "nginx"},
    "browser": {"chromium", "browser", "page"},
}
# What is drawn at random is drawn alike in every run, so that a failure is the change's. Another PRATIQUE_SEED looks elsewhere.
# Nothing is timed here: these machines are shared (tests/bench measures).
hypothesis.settings.register_profile(
    "alike", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
LEFT_OUT = pytest.StashKey[Counter[str]]()


def pytest_configure(config: pytest.Config) -> None:
    import approvals.project.celery  # noqa: F401 - wakes are sent with its settings: without a queue they give up at once

    config.stash[LEFT_OUT] = Counter()
    # Those of production take a quarter of a second on purpose, for each sign-in.
    # Nothing listens there: what is counted in the tests is counted in this process, and never beside somebody's Redis.
    settings.PRATIQUE["LOCAL_ACCOUNTS"] = True
    settings.PRATIQUE["REDIS_URL"] = "redis://127.0.0.1:1/0"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    if "PRATIQUE_SEED" not in os.environ:
        hypothesis.settings.load_profile("alike")


@pytest.fixture(autouse=True)
def no_attempts_yet() -> None:
    """The doors' limits are on in all tests; what one test tried does not count in the next."""
    from approvals.limits import counters

    counters.memory.clear()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        for marker, names in MARKERS.items():
            if fixtures & names:
                item.add_marker(marker)
    if not (CORPUS.is_dir() and VECTORS.is_dir()):
        _leave_out_the_corpus(config, items)


def _leave_out_the_corpus(config: pytest.Config, items: list[pytest.Item]) -> None:
    without = [item for item in items if item.get_closest_marker("corpus")]
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = [item for item in items if not item.get_closest_marker("corpus")]
    left_out = Counter(item.nodeid.split("::")[0] for item in without)
    config.stash[LEFT_OUT] = left_out
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = dict(left_out)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test logs may hold half a surrogate pair, which xdist cannot send to the process that prints it."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker collects the same tests, so the last one's word is everybody's."""
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash[LEFT_OUT]
    if left_out:
        where = ", ".join(f"{file} ({count})" for file, count in sorted(left_out.items()))
        missing = " and ".join(str(folder) for folder in (CORPUS, VECTORS) if not folder.is_dir())
        terminalreporter.write_line(f"not run for lack of the corpus ({missing}): {left_out.total()} tests in {where}")
