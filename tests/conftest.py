"""Every service that the tests need is started by a plugin of tests/support, on a free port, and stopped after.

A test that uses such a fixture gets its marker by itself. Tests of the corpus of real bundles are left out where that
is not there, and the end of the run says so, once.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import hypothesis
import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.sqlite3.base import DatabaseWrapper
from whitenoise.middleware import WhiteNoiseMiddleware

from tests.support.built import CERT_FILE_OF_BUILDS
from tests.support.folders import CORPUS, VECTORS

pytest_plugins = [
    "tests.support.servers.fixtures",
    "tests.support.plugins",
    "tests.support.kubernetes.fixtures",
    "tests.support.kubernetes.sandbox",
    "tests.support.approvals.fixtures",
    "tests.support.approvals.pages",
    "tests.support.approvals.chat",
    "tests.support.approvals.databases",
    "tests.support.approvals.quay",
    "tests.support.approvals.revisions",
    "tests.support.own_programs",
    "tests.support.stores",
    "tests.support.journeys.fixtures",
]

MARKERS = {
    "controlplane": {"binaries", "kubectl", "controlplane", "own_controlplane", "kustomize", "helm3"},
    "services": {
        "postgres",
        "redis",
        "own_redis",
        "registry",
        "registry_with_auth",
        "git_server",
        "git_server_with_auth",
        "nginx",
        "s3",
    },
    "browser": {"chromium", "browser", "page"},
}
# Fixtures whose parameter is the API server. The contract suite holds the two against each other.
ON_EITHER = ("site", "api_server")
# What is drawn at random is drawn alike in every run, so that a failure is the change's. Another PRATIQUE_SEED looks elsewhere.
# Nothing is timed here: these machines are shared (tests/bench measures).
hypothesis.settings.register_profile(
    "alike", derandomize=True, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
# No public server is met here, and to load the authorities of the system takes longer than to fetch from one of ours.
os.environ.setdefault(CERT_FILE_OF_BUILDS, os.environ.get("SSL_CERT_FILE", ""))
os.environ["SSL_CERT_FILE"] = os.devnull
_close_if_unusable_or_obsolete = DatabaseWrapper.close_if_unusable_or_obsolete
_add_files_from_finders = WhiteNoiseMiddleware.add_files_from_finders
STATIC_FILES: dict[str, Any] = {}
SHOWN_LINES = 30
LEFT_OUT = pytest.StashKey[Counter[str]]()


class FailuresAtOnce:
    """Say what failed when it fails: the whole run takes an hour, and one that is ended says nothing at its end."""

    def __init__(self, config: pytest.Config):
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal:
            last = report.longreprtext.splitlines()[-SHOWN_LINES:]
            terminal.write_line("\n".join(["", f"{report.when} of {report.nodeid} failed:", *last]))


def pytest_configure(config: pytest.Config) -> None:
    import approvals.project.celery  # noqa: F401 - wakes are sent with its settings: without a queue they give up at once

    config.stash[LEFT_OUT] = Counter()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailuresAtOnce(config))
    # Those of production take a quarter of a second on purpose, for each sign-in.
    # Nothing listens there: what is counted in the tests is counted in this process, and never beside somebody's Redis.
    settings.PRATIQUE["LOCAL_ACCOUNTS"] = True
    # Tests are about one thing each, and much of what they deploy is what these guards are there to hold: the tests of the
    # guards switch them on. So do no processes that tests start.
    settings.PRATIQUE["BUILT_IN_GUARDS"] = []
    os.environ.setdefault("PRATIQUE_BUILT_IN_GUARDS", "")
    settings.PRATIQUE["REDIS_URL"] = "redis://127.0.0.1:1/0"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    WhiteNoiseMiddleware.add_files_from_finders = _add_known_files
    if "PRATIQUE_SEED" not in os.environ:
        hypothesis.settings.load_profile("alike")


def _add_known_files(self: WhiteNoiseMiddleware) -> None:
    """A process of the service looks for its static files once; here each browser of a test would, for 9 ms."""
    if not STATIC_FILES:
        _add_files_from_finders(self)
        STATIC_FILES.update(self.files)
    self.files.update(STATIC_FILES)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each worker has its database in a file, with the settings of the demo, so that whoever writes waits for its turn.

    Django's own choice for SQLite, memory that threads share, ignores the timeout: a live page that reads while a step
    writes ends one of both with "database table is locked".
    """
    from tests.support.servers import migrated

    if connection.vendor == "sqlite":
        file = tmp_path_factory.mktemp("database") / "pratique.sqlite3"
        connection.settings_dict["TEST"]["NAME"] = str(file)
        # Nothing needs to outlive a power failure.
        connection.settings_dict["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"
        DatabaseWrapper.close_if_unusable_or_obsolete = _close_unless_in_a_transaction
        migrated.make({**os.environ, "PRATIQUE_DATABASE_URL": f"sqlite:///{file}", "PRATIQUE_SECRET_KEY": "x" * 50})


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """SQLite's is the copy of one with all migrations, of which none has to run again; it goes with the temporary folder."""
    return connection.vendor == "sqlite"


def _close_unless_in_a_transaction(self: DatabaseWrapper) -> None:
    """Loops of ours return old connections, which inside of a test would end its transaction and all that is in it.

    Django ignores each close of a database in memory for the same reason.
    """
    if not self.in_atomic_block:
        _close_if_unusable_or_obsolete(self)


@pytest.fixture(autouse=True)
def no_attempts_yet() -> None:
    """The doors' limits are on in all tests; what one test tried does not count in the next, nor what it had claimed."""
    from approvals.ledger.process_claims import HELD
    from approvals.rate_limits import counters

    counters.memory.clear()
    HELD.let_go(lambda _: None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        for marker, names in MARKERS.items():
            if fixtures & names:
                item.add_marker(marker)
        _prove_once(item)
    if not (CORPUS.is_dir() and VECTORS.is_dir()):
        _leave_out_the_corpus(config, items)


def _prove_once(item: pytest.Item) -> None:
    """A proof that runs on either API server is of the first ring with the real one, and of the second with the sandbox."""
    servers = {item.callspec.params.get(name) for name in ON_EITHER} if hasattr(item, "callspec") else set()
    if "sandbox" in servers and item.get_closest_marker("proof"):
        item.own_markers = [marker for marker in item.own_markers if marker.name != "proof"]
        item.add_marker("thorough")


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


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing of twenty thousand tests is garbage: to look for some takes two fifths of the time to collect them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """They live until the end of the run: what is no garbage is not looked through again and again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash[LEFT_OUT]
    if left_out:
        where = ", ".join(f"{file} ({count})" for file, count in sorted(left_out.items()))
        missing = " and ".join(str(folder) for folder in (CORPUS, VECTORS) if not folder.is_dir())
        terminalreporter.write_line(f"not run for lack of the corpus ({missing}): {left_out.total()} tests in {where}")
