"""What was found and approved last time is not new in the next request."""

from __future__ import annotations

import pytest
import yaml

from approvals.models import Request
from tests.support.journeys.contents import bundles
from tests.support.journeys.station import Station
from tests.support.servers.registry import Registry

REPEATED = {"SEC-04", "LIV-07", "AVL-05", "SCH-37"}


@pytest.mark.proof
def test_what_the_report_of_what_runs_has_as_well_is_not_new(any_station: Station, registry: Registry) -> None:
    here, name = any_station, f"{any_station.namespace}-known"
    words = {"plural": f"{name}s", "singular": name, "kind": name.replace("-", "").capitalize()}

    def ask(version: int) -> Request:
        text = {"type": "object", "description": f"As of {version}"}
        served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": text}}
        env = {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "gone", "key": "a"}}}
        pod = {"containers": [{"name": "main", "image": f"registry.example.com/web:{version}", "env": [env]}]}
        labels = {"app": "web"}
        made = [
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{name}s.example.com"},
                "spec": {"group": "example.com", "names": words, "scope": "Namespaced", "versions": [served]},
            },
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web"},
                "spec": {
                    "strategy": {"type": "Recreate"},
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            },
        ]
        files = {"manifests/all.yaml": yaml.safe_dump_all(made).encode()}
        deployment = here.wish(name, bundles.image(registry, f"{name}-{version}", files))
        here.work()
        return here.latest(deployment)

    first = here.approve(ask(1).deployment)
    second = here.approve(ask(2).deployment)
    assert (first.state, second.state) == ("applied", "applied")
    before, now = (one.reports.get().body["findings"] for one in (second, ask(3)))
    known = {one["fingerprint"] for one in before}
    assert {one["rule"] for one in before if one["isNew"]} >= {"AVL-05", "LIV-07", "SCH-37"}
    assert {one["rule"] for one in now if not one["isNew"]} >= REPEATED
    assert not [one["rule"] for one in now if one["isNew"] and one["fingerprint"] in known]
