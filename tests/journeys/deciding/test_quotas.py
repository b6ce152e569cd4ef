"""What kubectl asks for beyond a quota: a condition says so in the cluster, and it is taken up when there is room."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from approvals import tasks
from approvals.ledger import pivots
from approvals.models import BundleDeployment
from tests.support.journeys.deployed_site import DeployedSite

EDITOR = "kubectl-client-side-apply"


@pytest.fixture(autouse=True)
def few(settings: Settings) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "MAX_OPEN_REQUESTS_OF_ONE": 2}


def apply(site: DeployedSite, name: str) -> BundleDeployment:
    """As kubectl does, past every door of ours; then what the watch does with it."""
    http = {"url": f"https://bundles.example/{name}.tar.gz", "checksum": f"sha256:{'0' * 64}"}
    spec = {
        "installNamespace": site.namespace,
        "serviceAccountName": "installer",
        "sources": [{"kind": "http", "http": http}],
    }
    obj = {
        "apiVersion": "core.rukpak.io/v1alpha2",
        "kind": "BundleDeployment",
        "metadata": {"name": name},
        "spec": spec,
    }
    made = site.api.apply(obj, field_manager=EDITOR)
    return pivots.see(cluster=site.cluster, obj=dict(made.object), writer=None)


def condition(site: DeployedSite, deployment: BundleDeployment) -> Any:
    return site.condition(deployment, "UpToDate")


@pytest.mark.proof
def test_S25_kubectl_meets_the_quota_as_every_door_does(site: DeployedSite) -> None:
    first, _, third = (apply(site, f"{site.namespace}-{number}") for number in range(3))
    assert not third.requests.exists()
    told = condition(site, third)
    assert (told["status"], told["reason"]) == ("False", "QuotaExceeded")
    assert "unknown requesters have 2 open requests" in told["message"]
    assert "withdraw some" in told["message"]
    request = first.requests.get()
    request.requesters = [{"username": "rita", "user_id": site.people["rita"].pk}]
    request.save(update_fields=["requesters"])
    site.withdraw(request)
    tasks.sweep()
    assert third.requests.get().state == "preparing"
    third.refresh_from_db()
    assert condition(site, third)["reason"] == "Preparing"
