"""Workers are killed (-9) again and again while three bundles go in: nothing is lost, nothing happens twice."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from approvals.management.demo.bundles import pack
from tests.controlplane.endpoint import Endpoint
from tests.services.process import free_port

ROOT = Path(__file__).resolve().parents[2]
KILLS = 8
SEED_SECONDS = 150
CHAIN = "from approvals.audit import verify_chain; print(verify_chain().is_whole)"


class Machine:
    """The demo's processes, with a worker that can be killed."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self.folder = folder
        self.environment = {**os.environ, **environment}
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, *command: object) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *map(str, command)],
                cwd=ROOT,
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
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=SEED_SECONDS,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    def worker(self) -> subprocess.Popen[bytes]:
        return self.start(
            "-m",
            "celery",
            "--app",
            "approvals.project.celery",
            "worker",
            "--pool",
            "threads",
            "--concurrency",
            "2",
            "--beat",
            "--schedule",
            self.folder / "beat",
        )

    def stop(self) -> None:
        for process in self.running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def rows(self, query: str) -> list[tuple[object, ...]]:
        with sqlite3.connect(self.folder / "pratique.sqlite3", timeout=20) as database:
            return database.execute(query).fetchall()


@pytest.fixture
def machine(tmp_path: Path, redis: str) -> Iterator[Machine]:
    environment = {
        "PRATIQUE_SECRET_KEY": "x" * 50,
        "PRATIQUE_DATABASE_URL": f"sqlite:///{tmp_path}/pratique.sqlite3",
        "PRATIQUE_CONTENT_DIR": str(tmp_path / "content"),
        "PRATIQUE_REDIS_URL": redis,
        "PRATIQUE_ALLOWED_NETWORKS": "127.0.0.0/8",
        "PRATIQUE_PLAIN_HTTP": "true",
        "PRATIQUE_CLAIM_SECONDS": "3",
        "DEMO_PASSWORD": "for this test only",
    }
    made = Machine(tmp_path, environment)
    yield made
    made.stop()


def test_kill_9_of_the_worker_between_any_two_steps_loses_and_doubles_nothing(
    machine: Machine, own_sandbox: Endpoint, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(own_sandbox.kubeconfig("admin"))
    port = free_port()
    pack(ROOT / "deploy/demo/bundles", tmp_path / "bundles")
    machine.start("-m", "http.server", port, "--bind", "127.0.0.1", "--directory", tmp_path / "bundles")
    machine.run("manage.py", "migrate", "--verbosity", "0")
    seed = machine.start("manage.py", "demo_seed", "--kubeconfig", kubeconfig, "--bundles", f"http://127.0.0.1:{port}")

    moments = random.Random(20261121)
    worker, kills = machine.worker(), 0
    end = time.monotonic() + SEED_SECONDS
    while seed.poll() is None and time.monotonic() < end:
        time.sleep(moments.uniform(1.0, 4.0))
        if kills < KILLS and seed.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
            kills += 1
            worker = machine.worker()
    assert seed.poll() == 0, (tmp_path / "log").read_text()[-3000:]
    assert kills >= 3

    states = machine.rows(
        "SELECT d.name, r.number, r.state FROM approvals_request r"
        " JOIN approvals_bundledeployment d ON d.id = r.deployment_id ORDER BY d.name, r.number"
    )
    assert states == [
        ("harbour", 1, "applied"),
        ("harbour", 2, "in_review"),
        ("lighthouse", 1, "in_review"),
        ("tugboat", 1, "applied"),
        ("tugboat", 2, "in_review"),
    ]
    assert machine.rows("SELECT count(*), sum(state = 'active') FROM approvals_revision") == [(2, 2)]
    assert machine.rows("SELECT count(*) FROM approvals_inventoryitem WHERE uid = ''") == [(0,)]
    assert machine.run("manage.py", "shell", "--verbosity", "0", "-c", CHAIN).strip().endswith("True")
    for name in ("harbour", "tugboat"):
        live = own_sandbox.ask("GET", f"/apis/apps/v1/namespaces/harbour-system/deployments/{name}")
        assert live["metadata"]["generation"] == 1, json.dumps(live["metadata"])
