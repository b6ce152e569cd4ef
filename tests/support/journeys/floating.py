"""References that may move, looked at as when their time has come, and what is shown of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from approvals.models import BundleDeployment, FloatingReference, Request
from approvals.steps.source_checks import Poll
from approvals.working import do
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.http import GitServer, Repository

INTERVAL = "2m"


def branch(repository: Repository, **more: Any) -> dict[str, Any]:
    return {
        "kind": "git",
        "git": {"repository": repository.url, "ref": {"branch": "main"}},
        "interval": INTERVAL,
    } | more


def commit(repository: Repository, site: DeployedSite, version: str) -> str:
    return repository.commit(bundles.app(repository.path.stem, version))


def look(deployment: BundleDeployment) -> None:
    """As when the time of its references has come; then what the workers do."""
    for row in deployment.followed_references.select_related("reference"):
        FloatingReference.objects.filter(pk=row.reference_id).update(look_at=timezone.now())
        do(Poll(row.reference_id))


def looks(server: GitServer) -> int:
    """Each begins with one GET."""
    return sum(one.method == "GET" for one in server.asked)


def numbers(deployment: BundleDeployment) -> list[tuple[int, str]]:
    return list(deployment.requests.order_by("number").values_list("number", "state"))


def running(site: DeployedSite, deployment: BundleDeployment) -> str:
    live = site.live("ConfigMap", deployment.name)
    return str(live["data"]["version"]) if live else ""


def sources_condition(site: DeployedSite, deployment: BundleDeployment) -> Mapping[str, Any]:
    return site.condition(deployment, "SourcesAvailable")


def found(request: Request, rule: str) -> list[Mapping[str, Any]]:
    return [one for one in request.reports.get(round=request.round).body["findings"] if one["rule"] == rule]
