"""What the workers of a run are at when they are hurt: a request that is approved, and nothing of it done yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from approvals import services
from approvals.models import BundleDeployment
from tests.chaos.draw import Scenario
from tests.controlplane.endpoint import Endpoint, Refused
from tests.journeys.station import Station, prepare_namespace

VERSIONS = ("1", "2", "crowded")
PATIENCE_SECONDS = 30.0


def boat(version: str) -> list[dict[str, Any]]:
    """Versions that create, change, leave alone and delete; "crowded" is "2" and a Deployment that somebody takes."""
    number = "1" if version == "1" else "2"
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "boat"}},
        _config("settings", {"version": number}),
        _config("old" if number == "1" else "new", {"a": "b"}),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "boat"},
            "spec": {"clusterIP": "None", "selector": {"app": "boat"}, "ports": [{"port": 80}]},
        },
        deployment("boat", number),
    ]
    return [*objects, deployment("lookout", number)] if version == "crowded" else objects


def _config(name: str, content: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": content}


def deployment(name: str, version: str) -> dict[str, Any]:
    labels = {"app": name}
    containers = [{"name": name, "image": f"registry.example.com/{name}:{version}"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }


def ask(scenario: Scenario, station: Station, bundles: str, name: str) -> BundleDeployment:
    """Bring everything to where a request of `scenario` lies before the reviewers, in a namespace of this name."""
    station.namespace = name
    prepare_namespace(station.api, name)
    options = {"onFailure": "RestorePrevious"} if scenario is Scenario.RESTORE else {}
    asked = station.wish(name, _source(bundles, "1"), **options)
    station.work()
    if scenario is Scenario.FIRST:
        return asked
    assert station.approve(asked).state == "applied", station.latest(asked).problem
    station.look_after(asked)
    if scenario is Scenario.DELETION:
        services.delete_deployment(by=station.people["rita"], deployment=asked, via="browser")
    else:
        station.wish(name, _source(bundles, "crowded" if scenario is Scenario.RESTORE else "2"), **options)
    station.work()
    return asked


def taking(scenario: Scenario, endpoint: Endpoint, namespace: str) -> Callable[[], None]:
    """What somebody else does once the first write is on its way, whoever makes it: only in the restored one."""
    if scenario is not Scenario.RESTORE:
        return lambda: None

    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    return lambda: _create_at_last(endpoint, path, deployment("lookout", "0"))


def _create_at_last(endpoint: Endpoint, path: str, obj: dict[str, Any]) -> None:
    """The cluster may be away just now, or not know anybody's rights yet: then that somebody tries again as well."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            endpoint.ask("POST", path, obj)
            return
        except (Refused, OSError) as exc:
            if isinstance(exc, Refused) and exc.status == 409:  # it is there from an earlier worker
                return
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


def _source(bundles: str, version: str) -> dict[str, Any]:
    return {"kind": "http", "http": {"url": f"{bundles}/boat-{version}.tar.gz"}}
