"""10,000 managed objects: how soon a foreign edit is seen, what the watch costs in memory, and what all costs while idle.

Run by `make bench`, on a real API server, with `manage.py watch` and a worker with its sweeps as processes of their own.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from approvals.encryption.keys import new_key
from provisioner.cluster.client.api import ClusterClient
from provisioner.values import ObjectRef
from tests.bench.watching.fleet import DEPLOYMENTS
from tests.support.folders import ROOT
from tests.support.kubernetes.endpoint import Endpoint

OBJECTS = 10_000
EDITS = 20
# In which every deployment is looked after twice at least.
IDLE_SECONDS = 45.0
SEEN_SECONDS = 2.0
MEMORY_MIB = 200
START_SECONDS = 120.0


class Fleet:
    """The database, the cluster's objects, and the watching process."""

    def __init__(self, folder: Path, endpoint: Endpoint, queue: str):
        self.endpoint = endpoint
        self.folder = folder
        self.database = folder / "bench.sqlite3"
        self.namespace = f"fleet-{uuid.uuid4().hex[:8]}"
        self.environment = {
            **os.environ,
            "PRATIQUE_SECRET_KEY": "x" * 50,
            "PRATIQUE_ENCRYPTION_KEYS": new_key(),
            "PRATIQUE_DATABASE_URL": f"sqlite:///{self.database}",
            "PRATIQUE_REDIS_URL": queue,
        }
        self.log = folder / "log"
        kubeconfig = folder / "kubeconfig"
        endpoint.write(kubeconfig)
        self.run("manage.py", "migrate", "--verbosity", "0")
        self.run("-m", "tests.bench.watching.fleet", kubeconfig, self.namespace, OBJECTS)
        self.watch = self.start("manage.py", "watch")

    def start(self, *words: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, *map(str, words)]
        with self.log.open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)

    @contextmanager
    def worker(self) -> Iterator[None]:
        """One that sweeps, as in production, until the end."""
        words = ("worker", "--pool", "threads", "--concurrency", 4, "--beat", "--schedule", self.folder / "beat")
        process = self.start("-m", "celery", "--app", "approvals.project.celery", *words)
        yield
        process.send_signal(signal.SIGTERM)
        process.wait(30)

    def run(self, *words: object) -> None:
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]

    def rows(self, query: str, *words: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.database, timeout=20)) as database:
            return database.execute(query, words).fetchall()

    def is_due(self, name: str) -> bool:
        return bool(self.rows("SELECT look_at IS NOT NULL FROM approvals_inventoryitem WHERE name = ?", name)[0][0])

    def lists(self, *scopes: str) -> int:
        """How many LIST calls of ConfigMaps the API server has answered, in the whole cluster and in one namespace."""
        text = str(self.endpoint.ask("GET", "/metrics"))
        lines = re.findall(r"^apiserver_request_total\{([^}]*)\} (\S+)$", text, re.MULTILINE)
        asked = ('resource="configmaps"', 'verb="LIST"')
        of_them = [(labels, float(count)) for labels, count in lines if all(word in labels for word in asked)]
        return int(sum(count for labels, count in of_them if any(f'scope="{one}"' in labels for one in scopes)))

    def memory_mib(self) -> float:
        """The most that the watching process ever held (VmHWM)."""
        status = Path(f"/proc/{self.watch.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found
        return int(found.group(1)) / 1024


@pytest.fixture
def fleet(tmp_path: Path, controlplane: Endpoint, redis: str) -> Iterator[Fleet]:
    made = Fleet(tmp_path, controlplane, redis)
    yield made
    made.watch.send_signal(signal.SIGTERM)
    made.watch.wait(30)


def seconds_until_due(fleet: Fleet, name: str, patience: float) -> float:
    began = time.perf_counter()
    while not fleet.is_due(name):
        assert time.perf_counter() - began < patience, fleet.log.read_text()[-3000:]
        time.sleep(0.01)
    return time.perf_counter() - began


def wait_until(fleet: Fleet, is_so: Callable[[], bool]) -> None:
    end = time.perf_counter() + START_SECONDS
    while not is_so():
        assert time.perf_counter() < end, fleet.log.read_text()[-3000:]
        time.sleep(0.2)


def idle_figures(fleet: Fleet) -> tuple[int, int, int]:
    """List calls until all is seen once and well, list calls of the idle time after it, and looks after a deployment in it."""
    well = "SELECT count(*) FROM approvals_bundledeployment WHERE health = 'Current' AND event_count = events_observed"
    looked_after = "SELECT name, looked_after_at FROM approvals_bundledeployment"
    before = fleet.lists("cluster", "namespace")
    with fleet.worker():
        wait_until(fleet, lambda: fleet.rows(well)[0][0] == DEPLOYMENTS)
        listed, seen = fleet.lists("cluster", "namespace"), set(fleet.rows(looked_after))
        end, looks = time.perf_counter() + IDLE_SECONDS, 0
        while time.perf_counter() < end:
            time.sleep(1.0)
            now = set(fleet.rows(looked_after))
            looks, seen = looks + len(now - seen), now
        return listed - before, fleet.lists("cluster", "namespace") - listed, looks


@pytest.mark.controlplane
def test_figures_of_watching_10000_objects(fleet: Fleet) -> None:
    api = ClusterClient.connect(fleet.endpoint.kubeconfig("admin"), timeout_seconds=30)

    def edit(name: str) -> None:
        ref = ObjectRef("", "v1", "ConfigMap", fleet.namespace, name)
        live = api.get(ref)
        assert live
        api.replace({**live, "data": {"number": "another"}}, field_manager="kubectl-edit")

    names = random.Random(20261121).sample([f"object-{number:05}" for number in range(OBJECTS)], EDITS)
    wait_until(fleet, lambda: fleet.lists("cluster") >= OBJECTS / 500)
    started, listed, looks = idle_figures(fleet)
    taken = []
    for name in names:
        edit(name)
        taken.append(seconds_until_due(fleet, name, 30.0))
    print(
        f"\nwatching {OBJECTS} objects: a foreign edit is seen after {statistics.median(taken):.3f} s (median of {EDITS},"
        f" max {max(taken):.3f}), {fleet.memory_mib():.0f} MiB at most; {DEPLOYMENTS} deployments are seen once with"
        f" {started} list calls and are then looked after {looks} times in {IDLE_SECONDS:.0f} s with {listed}"
    )
    assert max(taken) <= SEEN_SECONDS
    assert fleet.memory_mib() <= MEMORY_MIB
    # The counting sees what the worker lists, and the worker was at work.
    assert started >= DEPLOYMENTS
    assert looks >= 2 * DEPLOYMENTS
    assert listed == 0
