"""Two versions of a bundle go through a whole Pratique, each step in a worker process of its own, which is measured.

python -m tests.bench.workload go KUBECONFIG NAMESPACE URL-OF-VERSION-1 URL-OF-VERSION-2
python -m tests.bench.workload step REQUEST

Prints a JSON line for every step. The settings come from the environment.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "approvals.project.settings")
django.setup()

from approvals import services  # noqa: E402 -- needs the settings above
from approvals.models import Request  # noqa: E402 -- needs the settings above
from approvals.project import celery  # noqa: E402, F401 -- what a worker process has loaded as well
from approvals.steps.advance import advance  # noqa: E402 -- needs the settings above
from provisioner.cluster.api import Cluster as Api  # noqa: E402 -- needs the settings above
from tests.controlplane.endpoint import Endpoint  # noqa: E402 -- needs the settings above


def go(kubeconfig: Path, namespace: str, *urls: str) -> None:
    from tests.journeys import station as built

    endpoint = Endpoint.read(kubeconfig, Path("kubectl"))
    api = Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=60)
    built.prepare(api, namespace)
    cluster = built.register(endpoint.kubeconfig("pratique"))
    station = built.Station(cluster, api, namespace, Path("kubectl"), kubeconfig)
    station.people = {name: built.user(name, cluster) for name in built.PEOPLE}
    for version, url in enumerate(urls, start=1):
        deployment = station.wish(namespace, {"kind": "http", "http": {"url": url}})
        request = station.latest(deployment)
        _step(request, version, "prepare", "in_review")
        services.review(
            by=station.people["alice"],
            request_id=request.pk,
            decision="Approve",
            subject_digest=request.subject_digest,
            reason="read it",
            channel="browser",
            acknowledges=services.to_acknowledge(request),
        )
        _step(request, version, "apply", "applied")


def _step(request: Request, version: int, what: str, state: str) -> None:
    command = [sys.executable, "-m", "tests.bench.workload", "step", str(request.pk)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    request.refresh_from_db()
    assert request.state == state, (request.state, request.problem, done.stderr[-3000:])
    _say({"version": version, "step": what, **json.loads(done.stdout.splitlines()[-1])})


def step(request_id: int) -> None:
    """What a worker does when it is woken for this request."""
    idle, began = _peak_mib(), time.perf_counter()
    advance(request_id)
    _say({"idle_mib": idle, "peak_mib": _peak_mib(), "seconds": time.perf_counter() - began})


def _peak_mib() -> float:
    """The most that this process ever held."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found.group(1)) / 1024


def _say(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "step":
        step(int(sys.argv[2]))
    else:
        go(Path(sys.argv[2]), *sys.argv[3:])
