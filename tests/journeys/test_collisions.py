"""Objects that were there before: reported with their owner, and adopted only as somebody approved it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from approvals.gate import planning
from approvals.models import InventoryItem, Request
from provisioner.errors import BadSource
from provisioner.values import ObjectRef
from tests.journeys import bundles
from tests.journeys.station import Station
from tests.services.registry import Registry


def planned(request: Request, kind: str) -> dict[str, Any]:
    actions = request.reports.get(round=request.round).body["plan"]["actions"]
    return next(one for one in actions if one["ref"]["kind"] == kind)


def exists(station: Station, name: str, **data: str) -> ObjectRef:
    ref = ObjectRef("", "v1", "ConfigMap", station.namespace, name)
    meta = {"name": name, "namespace": station.namespace}
    station.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}, field_manager="shop")
    return ref


def test_an_object_that_nobody_holds_is_adopted_once_somebody_wished_and_approved_it(
    station: Station, registry: Registry
) -> None:
    ref = exists(station, "adopt", kept="yes")
    image = bundles.image(registry, "adopt", bundles.app("adopt", "1"))
    deployment = station.wish("adopt", image)
    station.work()
    found = planned(station.latest(deployment), "ConfigMap")
    assert found["action"] == "adopt"
    assert found["problem"].endswith("exists already and does not belong to this deployment")
    assert "written by shop" in found["serverWords"]

    station.wish("adopt", image, collisionProtection="IfNoController")
    station.work()
    request = station.latest(deployment)
    found = planned(request, "ConfigMap")
    assert (found["action"], found["problem"], request.state) == ("adopt", "", "in_review")
    assert station.approve(deployment).state == "applied"
    live = station.api.get(ref)
    assert live is not None
    assert live["data"] == {"kept": "yes", "version": "1"}
    assert InventoryItem.objects.get(deployment=deployment, kind="ConfigMap").uid == live["metadata"]["uid"]


def test_an_object_of_another_deployment_is_never_adopted_and_that_one_is_named(
    station: Station, registry: Registry
) -> None:
    image = bundles.image(registry, "first", bundles.app("shared", "1"))
    first = station.wish("first", image)
    station.work()
    station.approve(first)
    second = station.wish("second", image, collisionProtection="IfNoController")
    station.work()
    found = planned(station.latest(second), "ConfigMap")
    assert found["action"] == "adopt"
    assert found["problem"].endswith("the BundleDeployment first holds it")


def test_a_word_that_is_no_collision_protection_is_said(station: Station, registry: Registry) -> None:
    deployment = station.wish("words", bundles.image(registry, "words", bundles.app("words", "1")))
    request = station.latest(deployment)
    request.spec = {**request.spec, "collisionProtection": "None"}
    with pytest.raises(BadSource, match="expected Prevent or IfNoController"):
        planning.plan_options(request)


def test_what_was_not_tried_because_something_else_does_not_work_is_no_success(
    station: Station, registry: Registry, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPLY_MINUTES": 0.03}
    stated = f"/namespaces/{station.namespace}/PersistentVolumeClaim/data"
    objects = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "none-such",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "after", "annotations": {"config.kubernetes.io/depends-on": stated}},
        },
    ]
    files = {"manifests/all.yaml": yaml.safe_dump_all(objects).encode()}
    deployment = station.wish("waits", bundles.image(registry, "waits", files))
    station.work()
    request = station.approve(deployment)
    assert request.state == "failed"
    assert "PersistentVolumeClaim" in request.problem
