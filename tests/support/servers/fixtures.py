"""Fixtures of the services around us: PostgreSQL, Redis, an OCI registry, git, HTTP and Chromium, all of them real.

Each worker of a test run has its own; they start in well under a second. What is not installed fails the test and says
how to install it: `tests/install` does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import playwright.sync_api as pw
import pytest

from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers.http import Authority, FileServer, GitServer, make_authority
from tests.support.servers.postgresql import Postgres, find_programs
from tests.support.servers.registry import CREDENTIALS, Registry
from tests.support.servers.s3 import S3Server
from tests.support.servers.valkey import Valkey

CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PAGE_TIMEOUT_MILLISECONDS = 60_000
SCREENSHOTS = ROOT / "test-results"
FAILED = pytest.StashKey[bool]()


def _missing(what: str) -> str:
    return f"{what} is not installed: run tests/install"


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.fail(_missing(name))
    return found


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """`.url` (a superuser's DATABASE_URL) and `.fresh_database()`, which returns the URL of a new one."""
    programs = find_programs()
    if programs is None:
        pytest.fail(_missing("postgresql"))
    server = Postgres(programs)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def redis() -> Iterator[str]:
    """URL of an empty queue server."""
    with tempfile.TemporaryDirectory(prefix="pratique-redis-") as folder:
        server = Valkey(Path(folder))
        yield server.url
        server.stop()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Valkey]:
    """A queue server of this test alone, to be stopped and started again: `.url`, `.client`."""
    server = Valkey(tmp_path, keeps=True)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """An OCI registry over plain http, open to everyone: `.host`, `.push(ref, files)`, `.push_index`, `.tamper`."""
    server = Registry.start(_program("docker-registry"), tmp_path_factory.mktemp("registry"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def registry_with_auth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """The same behind Basic auth: `.credentials` is (user, password)."""
    server = Registry.start(_program("docker-registry"), tmp_path_factory.mktemp("registry-auth"), with_auth=True)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server, built now (two minutes) if it never was: `.bucket()` makes a bucket, `.files_of(it)` its files."""
    build = [sys.executable, str(ROOT / "tests/objectstore/build")]
    built = subprocess.run(build, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.fail(f"tests/objectstore/build failed:\n{built.stderr[-4000:]}")
    server = S3Server(Path(built.stdout.splitlines()[0]), tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def git_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    """Git over plain http: `.repository(name)` makes one with `.url`, `.commit(files)`, `.tag(name, commit)`."""
    _program("git")
    server = GitServer(tmp_path_factory.mktemp("git"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def git_server_with_auth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    """The same behind Basic auth with the registry's CREDENTIALS."""
    _program("git")
    server = GitServer(tmp_path_factory.mktemp("git-auth"), CREDENTIALS)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """A certificate authority of our own, with a server certificate for 127.0.0.1 and localhost."""
    return make_authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def http_server(authority: Authority) -> Iterator[FileServer]:
    """`.serve(path, body)`, `.serve_folder(folder)`, over `.url` and `.https_url`; `.asked` is what was requested."""
    server = FileServer(authority)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of Debian's Chromium, without what only people see of it where that is installed: a third of the work."""
    return shutil.which("chromium-headless-shell") or _program("chromium")


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[pw.Browser]:
    """One Chromium for the session; take `page` unless a test needs several people."""
    # Playwright keeps an event loop running in this thread, and Django refuses its database under one.
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    with pw.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(CHROMIUM_ARGUMENTS))
        yield browser
        browser.close()
    if before is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
    else:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


@pytest.fixture
def page(browser: pw.Browser, request: pytest.FixtureRequest) -> Iterator[pw.Page]:
    """A page of a browser without history; its screenshot is kept in test-results/ if the test fails."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB", timezone_id="UTC")
    context.set_default_timeout(scaled(PAGE_TIMEOUT_MILLISECONDS))
    page = context.new_page()
    yield page
    if request.node.stash.get(FAILED, False) and not page.is_closed():
        name = re.sub(r"[^\w.-]+", "-", request.node.nodeid)
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
    context.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report
