"""Deletions that take something along: what a reviewer is told, and what stays whoever acknowledges it."""

from __future__ import annotations

import yaml

from approvals import services
from approvals.models import InventoryItem
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.station import Station
from tests.support.servers.registry import Registry


def test_a_namespace_a_crd_and_a_claim_are_named_with_what_goes_with_them(
    any_station: Station, registry: Registry
) -> None:
    station = any_station
    hold = f"{station.namespace}-hold"
    names = {"plural": "skiffs", "singular": "skiff", "kind": "Skiff", "listKind": "SkiffList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    group = f"{station.namespace}.example.com"
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}}
    kept = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": hold}},
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"skiffs.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
        },
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "net"}, "spec": size},
    ]
    files = bundles.app("fleet", "1") | {"manifests/50.yaml": yaml.safe_dump_all(kept).encode()}
    deployment = station.wish("fleet", bundles.image(registry, "fleet", files, "1"))
    station.work()
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
    station.api.forget_discovery()  # asked again by itself only after a while
    for name in ("one", "two"):
        station.api.create(
            {"apiVersion": f"{group}/v1", "kind": "Skiff", "metadata": {"name": name, "namespace": station.namespace}}
        )
        station.api.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": hold}})
    station.wish("fleet", bundles.image(registry, "fleet", bundles.app("fleet", "2"), "2"))
    station.work()

    told = {one.name: one.words for one in services.acknowledgements(station.latest(deployment))}
    assert "2 Skiff objects at present" in told[f"delete CustomResourceDefinition.apiextensions.k8s.io skiffs.{group}"]
    assert "2 Secrets" in told[f"delete Namespace {hold}"]
    claim = told[f"delete PersistentVolumeClaim {station.namespace}/net"]
    assert "3Gi" in claim or "it has no volume yet" in claim


def test_a_namespace_of_kubernetes_is_never_pruned_even_where_that_is_acknowledged(
    any_station: Station, registry: Registry
) -> None:
    station = any_station
    deployment = station.wish("anchor", bundles.image(registry, "anchor", bundles.app("anchor", "1"), "1"))
    station.work()
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
    ref = ObjectRef("", "v1", "Namespace", "", "kube-node-lease")
    live = station.api.get(ref)
    assert live is not None
    InventoryItem.objects.create(
        deployment=deployment, version="v1", kind="Namespace", name=ref.name, nonce="n", uid=live["metadata"]["uid"]
    )
    station.wish("anchor", bundles.image(registry, "anchor", bundles.app("anchor", "2"), "2"))
    station.work()
    assert "delete Namespace kube-node-lease" in services.to_acknowledge(station.latest(deployment))
    request = station.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "objects-refused")
    assert "kube-node-lease belongs to Kubernetes itself" in request.problem
    still = station.api.get(ref)
    assert still is not None
    assert "deletionTimestamp" not in still["metadata"]
