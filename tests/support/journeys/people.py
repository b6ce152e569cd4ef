"""`python -m tests.support.program tests.support.journeys.people WHAT ...`: what people do, in a process of its own.

`ask KUBECONFIG NAMESPACE URL` makes a request, `approve KEY` approves it, `approve-all KUBECONFIG NAMESPACE URL ...` makes
requests that wait when they are applied (but the last one), prepares and approves them, `compare KUBECONFIG IMAGE` asks
what installing it takes. Prints the keys of what was made; workers do the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

import approvals.project.celery  # noqa: F401 - importing makes it the default app, whose queue takes the wakes
from approvals import services
from approvals.models import Request
from approvals.services import ComparisonQuestion
from provisioner.cluster.client.api import ClusterClient as Api
from tests.support.approvals.world import acting
from tests.support.journeys import deployed_site
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled
from tests.support.provisioner.catalogs import bundle, channel, package
from tests.support.stored_catalogs import catalog, stored

TRAVELLING = "travelling"
NEVER = [{"apiVersion": "v1", "kind": "ConfigMap", "fieldValue": {"path": "data.version", "value": "never"}}]


def a_secret(namespace: str, value: str) -> dict[str, Any]:
    meta = {"name": TRAVELLING, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"password": value}}


def two_phases(name: str, namespace: str) -> list[dict[str, Any]]:
    """A ConfigMap, for which a check waits, and a Deployment in a later phase."""
    labels, meta = {"app": name}, {"name": name, "namespace": namespace}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "it", "image": "registry.example.com/it"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"version": "1"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec},
    ]


def _site(kubeconfig: str, namespace: str) -> DeployedSite:
    endpoint = Endpoint.read(Path(kubeconfig), Path("kubectl"))
    api = Api.connect(endpoint.kubeconfig("admin"), timeout_seconds=scaled(60))
    deployed_site.prepare(api, namespace)
    cluster = deployed_site.register(endpoint.kubeconfig("pratique"))
    site = DeployedSite(cluster, api, namespace, Path("kubectl"), Path(kubeconfig))
    site.people = {name: deployed_site.user(name, cluster) for name in deployed_site.PEOPLE}
    return site


def ask(kubeconfig: str, namespace: str, url: str) -> list[int]:
    site = _site(kubeconfig, namespace)
    return [site.latest(site.submit_spec(TRAVELLING, {"kind": "http", "http": {"url": url}})).pk]


def approve(key: str) -> list[int]:
    request = Request.objects.get(pk=int(key))
    services.review(
        by=acting(User.objects.get(username="alice")),
        request_id=request.pk,
        decision="Approve",
        subject_digest=request.subject_digest,
        reason="read it",
        channel="browser",
        acknowledges=services.to_acknowledge(request),
    )
    return [request.pk]


def approve_all(kubeconfig: str, namespace: str, *urls: str) -> list[int]:
    site = _site(kubeconfig, namespace)
    wishes = []
    for number, url in enumerate(urls, start=1):
        options = {"healthChecks": NEVER} if number < len(urls) else {}
        wishes.append(site.submit_spec(f"{namespace}-{number}", {"kind": "http", "http": {"url": url}}, **options))
    site.work()
    return [site.agree(wish).pk for wish in wishes]


def compare(kubeconfig: str, image: str) -> list[int]:
    site = _site(kubeconfig, "comparing")
    rita = acting(site.people["rita"])
    row = catalog("port", of=site.cluster)
    entry = {"name": "harbour.v1.0.0"}
    stored(row, package(defaultChannel="stable"), {**bundle("1.0.0"), "image": image}, channel("stable", entry))
    question = ComparisonQuestion("harbour", "1.0.0")
    asked = services.resolve_comparison(by=rita, cluster=site.cluster, catalog=row.name, question=question)
    return [services.compare_bundles(by=rita, asked=asked).pk]


if __name__ == "__main__":
    what, *words = sys.argv[1:]
    keys = {"ask": ask, "approve": approve, "approve-all": approve_all, "compare": compare}[what](*words)
    sys.stdout.write(" ".join(map(str, keys)) + "\n")
