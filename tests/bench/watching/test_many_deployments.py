"""5,000 BundleDeployments on one cluster, and 50 clusters in one watching process: nothing missed, how soon, how large.

Run by `make bench`. A write counts as seen when the row has its generation: the same transaction asks for the next
look at it. What the watch holds is the most that the process ever had (VmHWM).
"""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from approvals.encryption.keys import new_key
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.sandbox import Sandbox, SandboxUser
from tests.support.folders import ROOT
from tests.support.kubernetes.endpoint import USERS, Endpoint
from tests.support.kubernetes.live import until_served

DEPLOYMENTS = 5_000
CLUSTERS, ON_EACH = 50, 10
EDITS = 200
THREADS = 8
GROUP = "core.rukpak.io/v1alpha2"
# Until everything that was there, or came all at once, is in the database.
PATIENCE_SECONDS = 1200.0
P99_SECONDS = 2.0
MEMORY_MIB = 400
# Each cluster is watched for ten kinds of ours, each by threads and a connection of its own.
MANY_CLUSTERS_MIB = 550


class Watch:
    """A database of its own, and one `manage.py watch` over all clusters of it."""

    def __init__(self, folder: Path, queue: str, endpoints: dict[str, Endpoint]):
        self.database = folder / "bench.sqlite3"
        self.log = folder / "log"
        self.environment = {
            **os.environ,
            "PRATIQUE_SECRET_KEY": "x" * 50,
            "PRATIQUE_ENCRYPTION_KEYS": new_key(),
            "PRATIQUE_DATABASE_URL": f"sqlite:///{self.database}",
            "PRATIQUE_REDIS_URL": queue,
        }
        kubeconfigs = folder / "kubeconfigs"
        kubeconfigs.mkdir()
        for name, endpoint in endpoints.items():
            endpoint.write(kubeconfigs / f"{name}.yaml")
        self._run("manage.py", "migrate", "--verbosity", "0")
        self._run("-m", "tests.bench.watching.clusters", kubeconfigs)
        self.apis = {name: Api.connect(one.kubeconfig("admin"), timeout_seconds=60) for name, one in endpoints.items()}
        for api in self.apis.values():
            until_served(api, "core.rukpak.io", "v1alpha2", "BundleDeployment")

    @contextmanager
    def running(self) -> Iterator[None]:
        with self.log.open("ab") as log:
            words = [sys.executable, "manage.py", "watch"]
            self.process = subprocess.Popen(words, cwd=ROOT, env=self.environment, stdout=log, stderr=log)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def memory_mib(self) -> float:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found
        return int(found.group(1)) / 1024

    def generations(self) -> dict[tuple[str, str], int]:
        """By cluster and name, as the rows have them."""
        query = (
            "SELECT c.name, d.name, d.generation FROM approvals_bundledeployment d"
            " JOIN approvals_cluster c ON c.id = d.cluster_id WHERE d.gone_at IS NULL"
        )
        with closing(sqlite3.connect(self.database, timeout=60)) as database:
            return {(cluster, name): generation for cluster, name, generation in database.execute(query)}

    def until_all_are_seen(self, wanted: dict[tuple[str, str], int], pause: float = 0.2) -> float:
        began = time.perf_counter()
        while (missing := len(wanted.items() - self.generations().items())) > 0:
            assert time.perf_counter() - began < PATIENCE_SECONDS, f"{missing} not seen: {self.log.read_text()[-3000:]}"
            time.sleep(pause)
        return time.perf_counter() - began

    def _run(self, *words: object) -> None:
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-3000:]


def wish(name: str, rhythm: str) -> dict[str, Any]:
    source = {"kind": "http", "http": {"url": f"https://bundles.example.com/{rhythm}.tar.gz"}}
    spec = {"installNamespace": "default", "serviceAccountName": "installer", "sources": [source]}
    return {"apiVersion": GROUP, "kind": "BundleDeployment", "metadata": {"name": name}, "spec": spec}


def write(api: Api, names: Sequence[str], rhythm: str) -> dict[str, int]:
    """All of them as fast as this goes; their generations."""
    with ThreadPoolExecutor(THREADS) as pool:
        found = pool.map(lambda name: api.apply(wish(name, rhythm), field_manager="bench", force=True).object, names)
        return {one["metadata"]["name"]: one["metadata"]["generation"] for one in found}


def seconds_until_seen(watch: Watch, cluster: str, name: str, rhythm: str) -> float:
    generation = write(watch.apis[cluster], [name], rhythm)[name]
    return watch.until_all_are_seen({(cluster, name): generation}, pause=0.01)


def told(taken: list[float]) -> str:
    ordered = sorted(taken)
    return f"median {ordered[len(ordered) // 2]:.3f} s, p99 {p99(taken):.3f} s, max {ordered[-1]:.3f} s"


def p99(taken: list[float]) -> float:
    return sorted(taken)[int(len(taken) * 0.99)]


@pytest.mark.controlplane
def test_figures_of_5000_deployments_on_one_cluster(tmp_path: Path, controlplane: Endpoint, redis: str) -> None:
    mark = f"many-{uuid.uuid4().hex[:6]}"
    names = [f"{mark}-{number:04}" for number in range(DEPLOYMENTS)]
    watch = Watch(tmp_path, redis, {"one": controlplane})
    there = write(watch.apis["one"], names, "1")
    with watch.running():
        listed = watch.until_all_are_seen({("one", name): it for name, it in there.items()})
        all_at_once = write(watch.apis["one"], names, "2")
        caught_up = watch.until_all_are_seen({("one", name): it for name, it in all_at_once.items()})
        taken = [seconds_until_seen(watch, "one", name, "3") for name in names[:: DEPLOYMENTS // EDITS]]
        memory = watch.memory_mib()
    print(
        f"\n{DEPLOYMENTS:,} BundleDeployments: listed into the database in {listed:.1f} s; all of them changed at once are"
        f" in it {caught_up:.1f} s after the last write; one change is seen after: {told(taken)}; {memory:.0f} MiB at most"
    )
    assert p99(taken) <= P99_SECONDS
    assert memory <= MEMORY_MIB


def test_figures_of_50_clusters_in_one_process(tmp_path: Path, redis: str) -> None:
    users = [SandboxUser(user.name, f"token-{user.name}", user.groups, user.uid) for user in USERS]
    with ExitStack() as stack:
        endpoints = {}
        for number in range(CLUSTERS):
            one = Sandbox(tmp_path / f"sandbox-{number:02}", users=users)
            one.start()
            stack.callback(one.stop)
            endpoints[f"c{number:02}"] = Endpoint(one.url, one.ca_pem, Path("kubectl"), one.tokens)
        watch = Watch(tmp_path, redis, endpoints)
        names = [f"app-{number}" for number in range(ON_EACH)]
        with watch.running():
            wanted = {
                (cluster, name): generation
                for cluster, api in watch.apis.items()
                for name, generation in write(api, names, "1").items()
            }
            first = watch.until_all_are_seen(wanted)
            taken = [
                seconds_until_seen(watch, f"c{number % CLUSTERS:02}", names[number % ON_EACH], f"edit-{number}")
                for number in range(EDITS)
            ]
            memory = watch.memory_mib()
    print(
        f"\n{CLUSTERS} clusters with {ON_EACH} BundleDeployments each in one watching process: all seen {first:.1f} s after"
        f" the last write; one change is seen after: {told(taken)}; {memory:.0f} MiB at most"
    )
    assert p99(taken) <= P99_SECONDS
    assert memory <= MANY_CLUSTERS_MIB
