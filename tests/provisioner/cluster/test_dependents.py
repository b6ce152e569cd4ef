"""What the garbage collector takes along with what is deleted, seen before."""

from __future__ import annotations

from typing import Any

from provisioner.cluster.dependents import dependents
from provisioner.values import Identity, ObjectRef
from tests.support.provisioner.cluster_scene import Scene


def made(scene: Scene, obj: dict[str, Any]) -> tuple[ObjectRef, str]:
    live = scene.cluster.create(obj)
    return ObjectRef.of(live), str(live["metadata"]["uid"])


def hung(scene: Scene, name: str, owner: tuple[ObjectRef, str]) -> dict[str, Any]:
    ref, uid = owner
    obj = scene.config_map(name, a="1")
    obj["metadata"]["ownerReferences"] = [
        {"apiVersion": ref.api_version, "kind": ref.kind, "name": ref.name, "uid": uid}
    ]
    return obj


def test_what_names_it_as_its_owner_goes_along(scene: Scene) -> None:
    service, other = made(scene, scene.service()), made(scene, scene.service("other"))
    scene.cluster.create(hung(scene, "along", service))
    scene.cluster.create(hung(scene, "of-the-other", other))
    scene.cluster.create(scene.config_map("nobodys"))
    place = scene.namespace
    assert dependents([scene.cluster], [service]) == [f"ConfigMap {place}/along goes along with Service {place}/web"]


def test_what_goes_itself_is_no_surprise(scene: Scene) -> None:
    service = made(scene, scene.service())
    config = made(scene, hung(scene, "along", service))
    assert dependents([scene.cluster], [service, config]) == []


def test_what_nobody_may_look_at_is_said(scene: Scene) -> None:
    service = made(scene, scene.service())
    nobody = scene.cluster.acting_as(Identity.of_service_account(scene.namespace, "nobody"))
    found = dependents([nobody], [service])
    assert [one.partition(":")[0] for one in found] == [
        f"whether a {kind} of {scene.namespace} goes along" for kind in ("ConfigMap", "PersistentVolumeClaim", "Secret")
    ]
    assert "cannot list" in found[0]


def test_who_may_look_at_it_is_asked_next(scene: Scene) -> None:
    service = made(scene, scene.service())
    nobody = scene.cluster.acting_as(Identity.of_service_account(scene.namespace, "nobody"))
    assert dependents([nobody, scene.cluster], [service]) == []
