"""`python -m tests.support.program tests.support.journeys.stuck KUBECONFIG NAMESPACE URL ...`: approve bundles that wait when applied.

Each, but the last one, waits for its ConfigMap to say something that it never says. They are prepared and approved here,
where no worker is, and left to the workers; prints the keys of their requests.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import approvals.project.celery  # noqa: F401 - wakes go to its queue
from provisioner.cluster.client.api import ClusterClient as Api
from tests.support.journeys import station as built
from tests.support.journeys.station import Station
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled

NEVER = [{"apiVersion": "v1", "kind": "ConfigMap", "fieldValue": {"path": "data.version", "value": "never"}}]


def objects(name: str, namespace: str) -> list[dict[str, Any]]:
    """A ConfigMap, and a Deployment in a later phase."""
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "it", "image": "registry.example.com/it"}]}}
    meta = {"name": name, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"version": "1"}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
        },
    ]


def main(kubeconfig: Path, namespace: str, *urls: str) -> None:
    endpoint = Endpoint.read(kubeconfig, Path("kubectl"))
    api = Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(60))
    built.prepare(api, namespace)
    cluster = built.register(endpoint.kubeconfig("pratique"))
    station = Station(cluster, api, namespace, Path("kubectl"), kubeconfig)
    station.people = {name: built.user(name, cluster) for name in built.PEOPLE}
    wishes = []
    for number, url in enumerate(urls, start=1):
        options = {"healthChecks": NEVER} if number < len(urls) else {}
        wishes.append(station.wish(f"{namespace}-{number}", {"kind": "http", "http": {"url": url}}, **options))
    station.work()
    sys.stdout.write(" ".join(str(station.agree(wish).pk) for wish in wishes) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
