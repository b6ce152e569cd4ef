"""What the API server warns of stays with the object, also while that stays as it is."""

from __future__ import annotations

import yaml

from approvals.models import Outcome
from tests.support.journeys.contents import bundles
from tests.support.journeys.station import Station
from tests.support.servers.registry import Registry

SAID = "Lamps go away"


def lamp(station: Station) -> dict[str, bytes]:
    """A custom resource of a version that its own definition calls deprecated."""
    group = f"{station.namespace}.example.com"
    version = {"name": "v1", "served": True, "storage": True, "deprecated": True, "deprecationWarning": SAID}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": "lamps", "singular": "lamp", "kind": "Lamp", "listKind": "LampList"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"lamps.{group}"},
        "spec": {"group": group, "scope": "Cluster", "names": names, "versions": [version]},
    }
    objects = [definition, {"apiVersion": f"{group}/v1", "kind": "Lamp", "metadata": {"name": "lamp"}}]
    return {"manifests/50.yaml": yaml.safe_dump_all(objects).encode()}


def test_a_warning_is_in_the_report_of_every_later_request_and_on_its_page(
    any_station: Station, registry: Registry
) -> None:
    name = f"{any_station.namespace}-lamps"
    said = []
    for version in "123":
        files = bundles.app(name, version) | lamp(any_station)
        deployment = any_station.wish(name, bundles.image(registry, name, files, version))
        any_station.work()
        request = any_station.latest(deployment)
        findings = request.reports.get(round=request.round).body["findings"]
        found = [one for one in findings if one["rule"] == "OBJ-05" and one["ref"]["kind"] == "Lamp"]
        said.append([(one["isNew"], one["serverWords"]) for one in found])
        assert not any(SAID in one["message"] for one in findings)
        assert any_station.approve(deployment).state == "applied", any_station.latest(deployment).problem
        outcome = Outcome.objects.get(request=request, object__startswith="Lamp")
        assert outcome.warnings == [SAID], version
    assert said == [[], [(False, SAID)], [(False, SAID)]]
