"""Two versions of a bundle go through a whole Pratique, each step in a worker process of its own, which is measured.

python -m tests.support.program tests.bench.workload go KUBECONFIG NAMESPACE URL-OF-VERSION-1 URL-OF-VERSION-2
python -m tests.support.program tests.bench.workload step REQUEST
python -m tests.support.program tests.bench.workload stand KUBECONFIG NAMESPACE

`go` and `step` print a JSON line for every step. `stand` is one worker that does what it reads, line by line: "wish URL",
"prepare" or "apply", and says "done" after each; of an apply also after how many seconds the last object was written.
The settings come from the environment.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from django.db.models import Max

from approvals.models import AuditEntry, Request
from approvals.project import celery
from approvals.steps.advance import advance
from provisioner.cluster.client.api import ClusterClient as Api
from tests.support.kubernetes.endpoint import Endpoint

if TYPE_CHECKING:
    from tests.support.journeys.deployed_site import DeployedSite


def go(kubeconfig: Path, namespace: str, *urls: str) -> None:
    site = _site(kubeconfig, namespace)
    for version, url in enumerate(urls, start=1):
        request = _wished(site, namespace, url)
        _step(request, version, "prepare", "in_review")
        site.agree(request.deployment)
        _step(request, version, "apply", "applied")


def stand(kubeconfig: Path, namespace: str) -> None:
    site = _site(kubeconfig, namespace)
    celery.keep_what_is_loaded()
    _say("done")
    for line in sys.stdin:
        took = ""
        match line.split():
            case ["wish", url]:
                request = _wished(site, namespace, url)
            case ["prepare"]:
                advance(request.pk)
                site.agree(request.deployment)
            case ["apply"]:
                took = f" {_applied(request):.6f}"
        _say(f"done{took}")


def _applied(request: Request) -> float:
    """Apply it: seconds from when it was approved, by the record, until all was written; it is called applied later."""
    advance(request.pk)
    request.refresh_from_db()
    assert request.state == "applied", (request.state, request.problem)
    approved = AuditEntry.objects.get(request_uid=request.uid, verb="request.approve")
    (last,) = request.outcomes.aggregate(Max("at")).values()
    return float((last - approved.at).total_seconds())


def _site(kubeconfig: Path, namespace: str) -> DeployedSite:
    from tests.support.journeys import deployed_site

    endpoint = Endpoint.read(kubeconfig, Path("kubectl"))
    api = Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=60)
    deployed_site.prepare(api, namespace)
    cluster = deployed_site.register(endpoint.kubeconfig("pratique"))
    made = deployed_site.DeployedSite(cluster, api, namespace, Path("kubectl"), kubeconfig)
    made.people = {name: deployed_site.user(name, cluster) for name in deployed_site.PEOPLE}
    return made


def _wished(site: DeployedSite, name: str, url: str) -> Request:
    return site.latest(site.submit_spec(name, {"kind": "http", "http": {"url": url}}))


def _step(request: Request, version: int, what: str, state: str) -> None:
    command = [sys.executable, "-m", "tests.support.program", "tests.bench.workload", "step", str(request.pk)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    request.refresh_from_db()
    assert request.state == state, (request.state, request.problem, done.stderr[-3000:])
    _say(json.dumps({"version": version, "step": what, **json.loads(done.stdout.splitlines()[-1])}))


def step(request_id: int) -> None:
    """What a worker does when it is woken for this request."""
    celery.keep_what_is_loaded()
    idle, began = _peak_mib(), time.perf_counter()
    advance(request_id)
    _say(json.dumps({"idle_mib": idle, "peak_mib": _peak_mib(), "seconds": time.perf_counter() - began}))


def _peak_mib() -> float:
    """The most that this process ever held."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found.group(1)) / 1024


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "step":
        step(int(sys.argv[2]))
    else:
        {"go": go, "stand": stand}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
