"""CRDs and objects of theirs in one bundle: they come together, change together, and go in the right order."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from approvals import services
from approvals.errors import Unacknowledged
from approvals.models import Outcome, Request
from provisioner.values import ObjectRef
from tests.approvals.core.world import acting
from tests.journeys import bundles
from tests.journeys.station import Station
from tests.services.registry import Registry

OLD = {"size": {"type": "integer"}}
NEW = {**OLD, "colour": {"type": "string", "enum": ["red", "green"]}}


class Lanterns:
    """A kind of this test alone, its bundle, and what is live of it."""

    def __init__(self, station: Station, registry: Registry):
        self.station, self.registry = station, registry
        self.group = f"{station.namespace}.example.com"
        self.name = f"{station.namespace}-lanterns"
        self.crd = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", f"lanterns.{self.group}")

    def definition(self, fields: dict[str, Any]) -> dict[str, Any]:
        spec = {"type": "object", "properties": fields, "required": sorted(fields)}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {
            "apiVersion": self.crd.api_version,
            "kind": self.crd.kind,
            "metadata": {"name": self.crd.name},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"plural": "lanterns", "singular": "lantern", "kind": "Lantern", "listKind": "LanternList"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            },
        }

    def lantern(self, name: str, **spec: object) -> dict[str, Any]:
        return {"apiVersion": f"{self.group}/v1", "kind": "Lantern", "metadata": {"name": name}, "spec": spec}

    def wish(self, *objects: dict[str, Any]) -> Request:
        files = {"manifests/all.yaml": yaml.safe_dump_all(objects).encode()}
        deployment = self.station.wish(self.name, bundles.image(self.registry, self.name, files))
        self.station.work()
        return self.station.latest(deployment)

    def ref(self, name: str) -> ObjectRef:
        return ObjectRef(self.group, "v1", "Lantern", self.station.namespace, name)

    def live(self, name: str) -> Any:
        self.station.api.forget_discovery()
        return self.station.api.get(self.ref(name))


@pytest.fixture
def lanterns(station: Station, registry: Registry) -> Lanterns:
    return Lanterns(station, registry)


def order_of(request: Request) -> list[str]:
    assert request.state == "applied", request.problem
    rows = Outcome.objects.filter(request=request).order_by("position")
    return [f"{row.action} {row.object.split('.')[0]}" for row in rows]


def test_crds_and_their_objects_come_change_and_go_in_one_bundle(lanterns: Lanterns) -> None:
    station = lanterns.station
    first = lanterns.wish(lanterns.lantern("bow", size=1), lanterns.definition(OLD))
    assert first.state == "in_review", first.problem
    deployment = first.deployment
    assert order_of(station.approve(deployment)) == ["create CustomResourceDefinition", "create Lantern"]
    uid = station.api.get(lanterns.crd)["metadata"]["uid"]  # type: ignore[index]  # it was created a line above

    # The new field is required: neither the old object nor the new one would be valid under the other schema.
    second = lanterns.wish(lanterns.definition(NEW), lanterns.lantern("bow", size=1, colour="red"))
    assert {"SCH-08", "LIV-01"} <= set(second.reports.get().findings.values_list("rule", flat=True))
    assert {one["problem"] for one in second.reports.get().body["plan"]["actions"]} == {""}
    assert order_of(station.approve(deployment)) == ["update CustomResourceDefinition", "update Lantern"]
    assert lanterns.live("bow")["spec"] == {"size": 1, "colour": "red"}
    assert station.api.get(lanterns.crd)["metadata"]["uid"] == uid  # type: ignore[index]  # it was there a line above

    foreign = lanterns.lantern("stern", size=2, colour="green")
    foreign["metadata"]["namespace"] = station.namespace
    station.api.create(foreign)
    station.look_after(deployment)
    services.delete_deployment(by=acting(station.people["rita"]), deployment=deployment, via="browser")
    station.work()
    leaving = station.latest(deployment)
    words = f"delete {lanterns.crd.kind}.{lanterns.crd.group} {lanterns.crd.name}"
    with pytest.raises(Unacknowledged, match=words):
        station.agree(deployment, acknowledges=[one for one in services.to_acknowledge(leaving) if one != words])
    found = leaving.reports.get().findings.filter(object__contains=lanterns.crd.name)
    assert any("2 Lantern objects" in one.message for one in found), list(found.values_list("rule", "message"))
    assert order_of(station.approve(deployment)) == ["delete Lantern", "delete CustomResourceDefinition"]
    assert station.api.get(lanterns.crd) is None
    assert station.look_after(deployment).gone_at is not None
