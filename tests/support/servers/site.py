"""The service as it is shipped: its gunicorn, with its settings, in processes of its own."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from pathlib import Path

from approvals.encryption.keys import new_key
from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers import migrated
from tests.support.servers.process import Options, Server, free_port

START_SECONDS = 60
# Of one answer, where one is expected; far above what it takes.
ANSWER_SECONDS = 60.0
CONFIG = "python:approvals.project.gunicorn"
GUNICORN = [sys.executable, "-m", "gunicorn", "--config", CONFIG, "approvals.project.wsgi:application"]
# The shipped settings, but for an hour strangers' requests are not forgotten, and the probes wait for the site: so what
# is served beside slow clients is not served because they are gone, and a slow test is limited as a quick one.
PATIENT = """
import dataclasses
from approvals.project.gunicorn import *
from approvals.project.gunicorn import post_worker_init as begin

def post_worker_init(worker):
    from approvals.health_endpoints import checks, listener
    from approvals.project import middleware
    slow = {listener: ("HEAD_SECONDS", "ANSWER_SECONDS"), checks: ("PATIENCE_SECONDS",)}
    for module, names in slow.items():
        for name in names:
            assert getattr(module, name), f"{name} is called something else now"
            setattr(module, name, 3600.0)
    middleware.STRANGER = dataclasses.replace(middleware.STRANGER, seconds=3600)
    begin(worker)
"""


class Site:
    """`port` serves the pages, `probe_port` the probes. Its database is a SQLite file in `folder`.

    Where a proxy on a Unix socket is trusted, as it is shipped, the pages are at `socket`, too. One that `is_patient`
    cuts off slow clients of the probes, and forgets strangers' requests, only after an hour.
    """

    def __init__(self, folder: Path, redis: str, *, is_patient: bool = False, **settings: str) -> None:
        self.port, self.probe_port = free_port(), free_port()
        self.folder = folder
        self.socket = folder / "web.sock"
        # What the tests' own process has set would be inherited.
        self._env = {name: "" for name in os.environ if name.startswith("PYTEST")} | {
            "PRATIQUE_LOCAL_ACCOUNTS": "true",
            "PRATIQUE_SECRET_KEY": "only-for-tests-" * 4,
            "PRATIQUE_ENCRYPTION_KEYS": new_key(),
            "PRATIQUE_DATABASE_URL": f"sqlite:///{folder / 'site.sqlite3'}",
            "PRATIQUE_CONTENT_DIR": str(folder / "content"),
            "PRATIQUE_REDIS_URL": redis,
            "PRATIQUE_PROBE_ADDRESS": f"127.0.0.1:{self.probe_port}",
            "PYTHONPATH": str(ROOT),
            **settings,
        }
        migrated.make(self.environment)
        command = [*GUNICORN, "--access-logfile", "-", "--bind", f"127.0.0.1:{self.port}"]
        if is_patient:
            config = folder / "patient.py"
            config.write_text(PATIENT)
            command[command.index(CONFIG)] = str(config)
        if settings.get("PRATIQUE_TRUSTED_PROXIES") == "unix":
            command += ["--bind", f"unix:{self.socket}"]
        self.server = Server("site", command, folder / "site.log", Options(env=self._env))
        self.server.wait(lambda: self.probe("/readyz") == 200, START_SECONDS)

    def probe(self, path: str, seconds: float = ANSWER_SECONDS) -> int:
        """The status that the probes' own address answers; 0 where it does not."""
        return status_of(self.probe_port, path, seconds)

    def page(self, path: str = "/sign-in", seconds: float = ANSWER_SECONDS) -> int:
        """The status of a page; 0 where it does not answer."""
        return status_of(self.port, path, seconds)

    @property
    def environment(self) -> dict[str, str]:
        """Of its processes, to run a command as they are."""
        return {**os.environ, **self._env}

    def stop(self) -> None:
        self.server.stop()


def refusal_of(*words: str, **settings: str) -> str:
    """What the shipped gunicorn says that does not start with these words on its command line."""
    known = {"PRATIQUE_SECRET_KEY": "only-for-tests-" * 4, "PRATIQUE_ENCRYPTION_KEYS": new_key()}
    env = {**os.environ, **known, "PRATIQUE_PROBE_ADDRESS": "", "PYTHONPATH": str(ROOT), **settings}
    done = subprocess.run(
        [*GUNICORN, *words], env=env, capture_output=True, text=True, check=False, timeout=scaled(START_SECONDS)
    )
    assert done.returncode, "it started"
    return done.stdout + done.stderr


def status_of(port: int, path: str, seconds: float = ANSWER_SECONDS) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=scaled(seconds))
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
