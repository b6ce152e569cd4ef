"""`python -m tests.support.program tests.support.journeys.two_machines ask|approve ...`: what people do, on a third machine.

`ask KUBECONFIG NAMESPACE URL` makes a request and prints its key, `approve KEY` approves it; workers do the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import approvals.project.celery  # noqa: F401 - wakes go to its queue
from approvals import services
from approvals.models import Request
from provisioner.cluster.client.api import ClusterClient as Api
from tests.support.approvals.world import acting
from tests.support.journeys import station as built
from tests.support.journeys.station import Station
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled

NAME = "travelling"


def objects(namespace: str, value: str) -> list[dict[str, Any]]:
    meta = {"name": NAME, "namespace": namespace}
    return [{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"password": value}}]


def ask(kubeconfig: Path, namespace: str, url: str) -> int:
    endpoint = Endpoint.read(kubeconfig, Path("kubectl"))
    api = Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(60))
    built.prepare(api, namespace)
    cluster = built.register(endpoint.kubeconfig("pratique"))
    station = Station(cluster, api, namespace, Path("kubectl"), kubeconfig)
    station.people = {name: built.user(name, cluster) for name in built.PEOPLE}
    wished = station.wish(NAME, {"kind": "http", "http": {"url": url}})
    return station.latest(wished).pk


def approve(key: int) -> int:
    from django.contrib.auth.models import User

    request = Request.objects.get(pk=key)
    services.review(
        by=acting(User.objects.get(username="alice")),
        request_id=key,
        decision="Approve",
        subject_digest=request.subject_digest,
        reason="read it",
        channel="browser",
        acknowledges=services.to_acknowledge(request),
    )
    return key


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    done = ask(Path(words[0]), *words[1:]) if what == "ask" else approve(int(words[0]))
    sys.stdout.write(f"{done}\n")
