"""The demo's own processes on this machine: workers that can be killed (-9), a watch, and the database they share."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from approvals.encryption.keys import new_key
from approvals.management.demo.seeds import pack_bundles
from tests.support.folders import ROOT
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled
from tests.support.servers import migrated
from tests.support.servers.process import free_port

SEED_SECONDS = 150
# So short that a test can wait until the claim of a killed worker lapses. Where none does, LONG_CLAIM is sturdier.
CLAIM_SECONDS = 3
LONG_CLAIM = {"PRATIQUE_CLAIM_SECONDS": "15"}
POOL = ("--pool", "threads")
CHAIN = "from approvals.audit import verify_chain; print(verify_chain().is_whole)"


def environment(folder: Path, redis: str) -> dict[str, str]:
    """The settings of a service that keeps everything in `folder` and fetches from this machine."""
    return {
        "PRATIQUE_SECRET_KEY": "x" * 50,
        "PRATIQUE_LOCAL_ACCOUNTS": "true",
        "PRATIQUE_ENCRYPTION_KEYS": new_key(),
        "PRATIQUE_DATABASE_URL": f"sqlite:///{folder}/pratique.sqlite3",
        "PRATIQUE_CONTENT_DIR": str(folder / "content"),
        "PRATIQUE_REDIS_URL": redis,
        "PRATIQUE_ALLOWED_NETWORKS": "127.0.0.0/8",
        "PRATIQUE_PLAIN_HTTP_HOSTS": "127.0.0.1",
        "PRATIQUE_CLAIM_SECONDS": str(round(scaled(CLAIM_SECONDS))),
        "DEMO_PASSWORD": "for this test only",
    }


class Machine:
    """The demo's processes in one folder, with workers that can be killed."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self.folder = folder
        # What killed processes leave goes with it. Not in `folder`: the path of a Unix socket is short.
        self.temporary = Path(tempfile.mkdtemp(prefix="machine-"))
        self.environment = {**os.environ, "TMPDIR": str(self.temporary), **environment}
        self.working_folder = ROOT
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, *command: object) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *map(str, command)],
                cwd=self.working_folder,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def run(self, *command: object) -> str:
        done = subprocess.run(
            [sys.executable, *map(str, command)],
            cwd=self.working_folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=scaled(SEED_SECONDS),
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def have_people(self, *what: object) -> str:
        """Have people do this (tests.support.journeys.people); the keys of what was made."""
        return self.run("-m", "tests.support.program", "tests.support.journeys.people", *what)

    def make_database(self) -> None:
        migrated.make(self.environment)

    def worker(self) -> subprocess.Popen[bytes]:
        """A worker that is its own beat."""
        return self.celery("worker", *POOL, "--concurrency", 24, "--beat", "--schedule", self.folder / "beat")

    def celery(self, *words: object) -> subprocess.Popen[bytes]:
        return self.start("-m", "celery", "--app", "approvals.project.celery", *words)

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def prepare(self, cluster: Endpoint) -> list[object]:
        """Serve the demo's bundles and make the database; returns the command that seeds it for `cluster`."""
        kubeconfig, port = self.folder / "kubeconfig", free_port()
        kubeconfig.write_text(cluster.kubeconfig("admin"))
        pack_bundles(ROOT / "deploy/demo/bundles", self.folder / "bundles")
        self.start("-m", "http.server", port, "--bind", "127.0.0.1", "--directory", self.folder / "bundles")
        self.make_database()
        return ["manage.py", "demo_seed", "--kubeconfig", kubeconfig, "--bundles", f"http://127.0.0.1:{port}"]

    def chain_is_whole(self) -> bool:
        return self.run("manage.py", "shell", "--verbosity", "0", "-c", CHAIN).strip().endswith("True")

    def log(self) -> str:
        """Its end, for whoever has to find out why."""
        return self.whole_log()[-3000:]

    def whole_log(self) -> str:
        return (self.folder / "log").read_text()

    def stop(self) -> None:
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.temporary, ignore_errors=True)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(self.folder / "pratique.sqlite3", timeout=scaled(60)) as database:
            return database.execute(query).fetchall()
