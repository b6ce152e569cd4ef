"""`python -m tests.chaos.runner`: one pivot applied again and again, each time hurt at another moment.

Prints a JSON line for every run. A process of its own, because its database, its sandbox and its workers are real and
are killed: nothing of that goes well inside a test run. Started by test_chaos.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
django.setup()

from django.core.cache import cache  # noqa: E402 -- needs the settings above
from django.db import connections  # noqa: E402 -- needs the settings above

from approvals.access import port  # noqa: E402 -- needs the settings above
from approvals.audit import verify_chain  # noqa: E402 -- needs the settings above
from approvals.lifecycle import WORKABLE, State  # noqa: E402 -- needs the settings above
from approvals.models import AuditEntry, BundleDeployment, Request  # noqa: E402 -- needs the settings above
from approvals.project import celery  # noqa: E402, F401 -- sets the app that wakes are sent with
from approvals.steps.advance import advance  # noqa: E402 -- needs the settings above
from approvals.steps.inventory import ref_of  # noqa: E402 -- needs the settings above
from provisioner.cluster.api import Cluster as Api  # noqa: E402 -- needs the settings above
from provisioner.values import ObjectRef  # noqa: E402 -- needs the settings above
from tests.chaos.harms import Harm, Hurting, Kind  # noqa: E402 -- needs the settings above
from tests.controlplane.endpoint import USERS, Endpoint  # noqa: E402 -- needs the settings above
from tests.journeys import station as built  # noqa: E402 -- needs the settings above
from tests.journeys.station import Station  # noqa: E402 -- needs the settings above

MAX_WORKERS = 12
SETTLE_SECONDS = 60.0
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
RIVAL_SECONDS = 0.05
KINDS = [kind for kind in Kind if kind is not Kind.NOTHING]
# What differs from run to run without meaning anything.
VOLATILE = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "annotations", "selfLink")


@dataclass
class Sandbox:
    """A sandbox in a process of its own, which can be stopped and started again on the same port."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def start(self) -> None:
        users = self.folder / "users.json"
        users.write_text(
            json.dumps([{"name": u.name, "token": f"token-{u.name}", "groups": u.groups, "uid": u.uid} for u in USERS])
        )
        command = [sys.executable, "-m", "provisioner.sandbox", "--state", self.folder / "state"]
        command += ["--port", self.port, "--kubeconfig", self.kubeconfig, "--users", users]
        self.process = subprocess.Popen([str(it) for it in command], stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith(b"Ready:"), line
        (self.folder / "pid").write_text(str(self.process.pid))

    def stop(self) -> None:
        os.kill(int((self.folder / "pid").read_text()), signal.SIGTERM)
        time.sleep(0.5)

    def restart(self) -> None:
        """Called in a worker: the sandbox it starts outlives it, and is known by its pid."""
        self.stop()
        self.start()


@dataclass
class Chaos:
    sandbox: Sandbox
    bundles: str
    folder: Path
    database_url: str
    station: Station = field(init=False)

    def prepare(self) -> None:
        endpoint = Endpoint.read(self.sandbox.kubeconfig, Path("kubectl"))
        cluster = built.register(endpoint.kubeconfig("pratique"))
        api = Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=20)
        self.station = Station(cluster, api, "", Path("kubectl"), self.sandbox.kubeconfig)
        self.station.people = {name: built.user(name, cluster) for name in built.PEOPLE}

    def run(self, harm: Harm, number: int) -> dict[str, Any]:
        """Version 1 undisturbed, version 2 with the harm; returns what is found afterwards."""
        station = self.station
        station.namespace = f"chaos-{number}"
        built.prepare(station.api, station.namespace)
        name = f"boat-{number}"
        deployment = station.wish(name, self._source("1"))
        station.work()
        assert station.approve(deployment).state == State.APPLIED, station.latest(deployment).problem
        station.wish(name, self._source("2"))
        station.work()
        request = self._approve_without_work(deployment)
        log = self.folder / f"{number}.log"
        workers = self._work(request.pk, harm, log)
        events = len(log.read_text().splitlines()) if log.exists() else 0
        return {"harm": str(harm), "events": events, "workers": workers, "found": self._found(deployment, request)}

    def _source(self, version: str) -> dict[str, Any]:
        return {"kind": "http", "http": {"url": f"{self.bundles}/boat-{version}.tar.gz"}}

    def _approve_without_work(self, deployment: BundleDeployment) -> Request:
        from approvals import services

        request = self.station.latest(deployment)
        services.review(
            by=self.station.people["alice"],
            request_id=request.pk,
            decision="Approve",
            subject_digest=request.subject_digest,
            reason="read it",
            channel="browser",
            acknowledges=services.to_acknowledge(request),
        )
        return request

    def _work(self, request_id: int, harm: Harm, log: Path) -> int:
        """Workers, one after the other as the sweep would wake them, until it is settled; returns how many."""
        self._forget_connections()
        hurt, number = self._fork(request_id, harm, log), 1
        rivals = []
        while number < MAX_WORKERS:
            if harm.kind is Kind.RIVAL and number == 1:
                rivals.append(self._fork_rival(request_id))
                number += 1
            self._wait(hurt)
            for rival in rivals:
                self._wait(rival)
            rivals = []
            if not Request.objects.filter(pk=request_id, state__in=WORKABLE).exists():
                return number
            # The claim of a dead worker lapses; a sweep wakes what is due.
            Request.objects.filter(pk=request_id).update(claimed_until=LONG_AGO, look_again_at=None)
            self._forget_connections()
            hurt, number = self._fork(request_id, Harm(Kind.NOTHING, 0), log.with_suffix(".again")), number + 1
        return number

    def _fork(self, request_id: int, harm: Harm, log: Path) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 0
        try:
            Hurting(harm, request_id, self.database_url, log, self.sandbox.restart).install()
            advance(request_id)
        except BaseException:  # noqa: BLE001 -- nothing of a fork may go on in its parent's code
            (log.with_suffix(".error")).write_text(traceback.format_exc())
            code = 1
        os._exit(code)

    def _fork_rival(self, request_id: int) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            end = time.monotonic() + SETTLE_SECONDS
            while Request.objects.filter(pk=request_id, state__in=WORKABLE).exists() and time.monotonic() < end:
                time.sleep(RIVAL_SECONDS)
                advance(request_id)
        finally:
            os._exit(0)

    def _wait(self, pid: int) -> None:
        end = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < end:
            done, _ = os.waitpid(pid, os.WNOHANG)
            if done:
                return
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    def _forget_connections(self) -> None:
        """A fork shares sockets: nothing that is open may be used on both sides."""
        connections.close_all()
        cache.clear()
        port._current[:] = [port.RealKubernetes()]

    def _found(self, deployment: BundleDeployment, request: Request) -> dict[str, Any]:
        request.refresh_from_db()
        fresh = Api.connect(
            Endpoint.read(self.sandbox.kubeconfig, Path("kubectl")).kubeconfig("admin"), timeout_seconds=20
        )
        self.station.api = fresh
        namespace = self.station.namespace
        rows = list(deployment.inventory.all())
        live = {str(ref_of(row)): fresh.get(ref_of(row)) for row in rows}
        gone = ObjectRef("", "v1", "ConfigMap", namespace, "old")
        verbs = AuditEntry.objects.filter(request_uid=str(request.uid)).values_list("verb", flat=True)
        return {
            "state": request.state,
            "problem": request.problem,
            "revisions": list(deployment.revisions.order_by("number").values_list("state", flat=True)),
            "objects": {key.replace(namespace, "NS"): _meaning(obj, namespace) for key, obj in sorted(live.items())},
            "strangers": [
                str(ref_of(row))
                for row in rows
                if (live[str(ref_of(row))] or {}).get("metadata", {}).get("uid") != row.uid
            ],
            "is_old_gone": fresh.get(gone) is None,
            "starts": sum(verb == "request.start" for verb in verbs),
            "finishes": sum(verb == "request.finish" for verb in verbs),
            "chain": verify_chain().is_whole,
        }


def _meaning(obj: Any, namespace: str) -> Any:
    """An object without what differs from run to run; its managers and its generation stay."""
    if obj is None:
        return None
    meta = obj["metadata"]
    managers = sorted({entry["manager"] for entry in meta.get("managedFields") or () if not entry.get("subresource")})
    kept = {key: value for key, value in meta.items() if key not in VOLATILE}
    body = {**obj, "metadata": kept, "managers": managers}
    body.pop("status", None)
    return json.loads(json.dumps(body, sort_keys=True).replace(namespace, "NS"))


def harms(events: int, count: int, seed: int) -> list[Harm]:
    """Every kind at moments all over the run, drawn alike for the same seed, every event about equally often."""
    moments = random.Random(seed)
    pairs = [Harm(kind, event) for kind in KINDS for event in range(1, events + 1)]
    moments.shuffle(pairs)
    return pairs[:count] if count <= len(pairs) else pairs + [moments.choice(pairs) for _ in range(count - len(pairs))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--bundles", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    sandbox = Sandbox(options.folder, options.port)
    sandbox.start()
    url = os.environ["PRATIQUE_DATABASE_URL"]
    chaos = Chaos(sandbox, options.bundles, options.folder, url)
    try:
        chaos.prepare()
        undisturbed = chaos.run(Harm(Kind.NOTHING, 0), 0)
        _say(undisturbed)
        for number, harm in enumerate(harms(undisturbed["events"], options.runs, options.seed), start=1):
            _say(chaos.run(harm, number))
    finally:
        sandbox.stop()


def _say(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
