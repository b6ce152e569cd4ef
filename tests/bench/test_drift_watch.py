"""The watch at 10,000 managed objects: how soon a foreign edit is seen, what it costs in memory, and idle in list calls.

Run by `make bench`, on a real API server, with `manage.py watch` as a process of its own.
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
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from provisioner.cluster.api import Cluster
from provisioner.values import ObjectRef
from tests.controlplane.endpoint import Endpoint

ROOT = Path(__file__).resolve().parents[2]
OBJECTS = 10_000
EDITS = 20
IDLE_SECONDS = 30.0
SEEN_SECONDS = 2.0
MEMORY_MIB = 200
START_SECONDS = 120.0


class Fleet:
    """The database, the cluster's objects, and the watching process."""

    def __init__(self, folder: Path, endpoint: Endpoint):
        self.endpoint = endpoint
        self.database = folder / "bench.sqlite3"
        self.namespace = f"fleet-{uuid.uuid4().hex[:8]}"
        self.environment = {
            **os.environ,
            "PRATIQUE_SECRET_KEY": "x" * 50,
            "PRATIQUE_DATABASE_URL": f"sqlite:///{self.database}",
            "PRATIQUE_REDIS_URL": "redis://127.0.0.1:1/0",
        }
        self.log = folder / "log"
        kubeconfig = folder / "kubeconfig"
        endpoint.write(kubeconfig)
        self.run("manage.py", "migrate", "--verbosity", "0")
        self.run("-m", "tests.bench.fleet", kubeconfig, self.namespace, OBJECTS)
        with self.log.open("ab") as log:
            self.watch = subprocess.Popen(
                [sys.executable, "manage.py", "watch"], cwd=ROOT, env=self.environment, stdout=log, stderr=log
            )

    def run(self, *words: object) -> None:
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]

    def is_due(self, name: str) -> bool:
        with closing(sqlite3.connect(self.database, timeout=20)) as database:
            query = "SELECT look_at IS NOT NULL FROM approvals_inventoryitem WHERE name = ?"
            return bool(database.execute(query, [name]).fetchone()[0])

    def lists(self) -> int:
        """How many LIST calls of all ConfigMaps the API server has answered; its own controllers list single places."""
        text = str(self.endpoint.ask("GET", "/metrics"))
        lines = re.findall(r"^apiserver_request_total\{([^}]*)\} (\S+)$", text, re.MULTILINE)
        wanted = ('resource="configmaps"', 'scope="cluster"', 'verb="LIST"')
        return int(sum(float(count) for labels, count in lines if all(word in labels for word in wanted)))

    def memory_mib(self) -> float:
        """The most that the watching process ever held (VmHWM)."""
        status = Path(f"/proc/{self.watch.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found
        return int(found.group(1)) / 1024


@pytest.fixture
def fleet(tmp_path: Path, controlplane: Endpoint) -> Iterator[Fleet]:
    made = Fleet(tmp_path, controlplane)
    yield made
    made.watch.send_signal(signal.SIGTERM)
    made.watch.wait(30)


def seconds_until_due(fleet: Fleet, name: str, patience: float) -> float:
    began = time.perf_counter()
    while not fleet.is_due(name):
        assert time.perf_counter() - began < patience, fleet.log.read_text()[-3000:]
        time.sleep(0.01)
    return time.perf_counter() - began


def lists_of_the_start(fleet: Fleet) -> int:
    """How many pages the watch's one list took, once it is through."""
    end = time.perf_counter() + START_SECONDS
    while (count := fleet.lists()) < OBJECTS / 500:
        assert time.perf_counter() < end, fleet.log.read_text()[-3000:]
        time.sleep(0.2)
    return count


@pytest.mark.controlplane
def test_figures_of_watching_10000_objects(fleet: Fleet) -> None:
    api = Cluster.connect(fleet.endpoint.kubeconfig("admin"), timeout_seconds=30)

    def edit(name: str) -> None:
        ref = ObjectRef("", "v1", "ConfigMap", fleet.namespace, name)
        live = api.get(ref)
        assert live
        api.replace({**live, "data": {"number": "another"}}, field_manager="kubectl-edit")

    names = random.Random(20261121).sample([f"object-{number:05}" for number in range(OBJECTS)], EDITS + 1)
    edit(names[0])
    seconds_until_due(fleet, names[0], START_SECONDS)
    before = lists_of_the_start(fleet)
    time.sleep(IDLE_SECONDS)
    listed = fleet.lists() - before
    taken = []
    for name in names[1:]:
        edit(name)
        taken.append(seconds_until_due(fleet, name, 30.0))
    print(
        f"\nwatching {OBJECTS} objects: a foreign edit is seen after {statistics.median(taken):.3f} s (median of {EDITS},"
        f" max {max(taken):.3f}), {fleet.memory_mib():.0f} MiB at most, {listed} list calls in {IDLE_SECONDS:.0f} s idle"
    )
    assert max(taken) <= SEEN_SECONDS
    assert fleet.memory_mib() <= MEMORY_MIB
    assert listed == 0
