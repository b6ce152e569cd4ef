"""A CRD that drops a version, or changes what else it can, while objects of it exist."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from provisioner.cluster.annotations import Tracking
from provisioner.cluster.apply.correction import look_at, put_back
from provisioner.cluster.drift import DriftKind, OwnObject
from provisioner.cluster.field_owners import WORDS
from provisioner.values import Action, Manifest, ObjectRef
from tests.support.kubernetes.live import until_served
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, failures

FIRST, SECOND = "v1", "v2"


def definition(scene: Scene, *versions: str) -> dict[str, Any]:
    """The last of `versions` is the stored one."""
    made: dict[str, Any] = scene.definition()
    (one,) = made["spec"]["versions"]
    made["spec"]["versions"] = [{**one, "name": name, "storage": name == versions[-1]} for name in versions]
    return made


def widget(scene: Scene, version: str, **spec: int) -> dict[str, Any]:
    return {**scene.widget(**spec), "apiVersion": f"{scene.group}/{version}"}


@pytest.fixture
def dropped(real_scene: Scene) -> Scene:
    """A Widget that was applied in v1 and is now wished for in v2, while the CRD serves only that."""
    both, only = definition(real_scene, FIRST, SECOND), definition(real_scene, SECOND)
    assert failures(real_scene.deploy(both, widget(real_scene, FIRST))) == []
    until_served(real_scene.cluster, real_scene.group, SECOND, "Widget")
    assert failures(real_scene.deploy(only, widget(real_scene, SECOND))) == []
    until_served(real_scene.cluster, real_scene.group, FIRST, "Widget", is_served=False)
    return real_scene


def test_what_was_applied_in_a_version_that_is_gone_can_be_changed(dropped: Scene) -> None:
    changed = widget(dropped, SECOND, size=7)
    planned = dropped.plan(definition(dropped, SECOND), changed)
    action = action_of(planned, changed)
    assert (action.action, action.problem, action.notes) == (Action.UPDATE, "", (WORDS,))
    assert failures(dropped.apply(planned, definition(dropped, SECOND), changed)) == []
    live: Any = dropped.live(changed)
    assert live["spec"]["size"] == 7
    assert {one["apiVersion"] for one in live["metadata"]["managedFields"]} == {f"{dropped.group}/{SECOND}"}
    assert action_of(dropped.plan(definition(dropped, SECOND), changed), changed).action is Action.NONE


def test_its_drift_is_seen_and_put_back(dropped: Scene) -> None:
    wished = widget(dropped, SECOND)
    live: Any = dropped.live(wished)
    dropped.cluster.replace({**live, "spec": {**live["spec"], "size": 9}}, field_manager="kubectl-edit")
    item = dropped.inventory.items()[ObjectRef.of(wished).identity]
    held = OwnObject(Manifest(wished), item.uid, Tracking.of(item.nonce))

    (found,) = look_at(dropped.cluster, [held], manager=MANAGER, is_scaled=lambda _: False)
    assert found.drift
    assert (found.drift.kind, found.problem) == (DriftKind.CHANGED, "")
    put_back(dropped.cluster, found, manager=MANAGER, is_scaled=lambda _: False)
    again: Any = dropped.live(wished)
    assert again["spec"]["size"] == 1


def test_an_object_that_goes_together_with_its_version_is_really_deleted(real_scene: Scene) -> None:
    both, only = definition(real_scene, FIRST, SECOND), definition(real_scene, SECOND)
    old = widget(real_scene, FIRST)
    assert failures(real_scene.deploy(both, old)) == []
    until_served(real_scene.cluster, real_scene.group, SECOND, "Widget")
    planned = real_scene.plan(only, previous=real_scene.content(both, old))
    assert failures(real_scene.apply(planned, only)) == []
    assert real_scene.live(widget(real_scene, SECOND)) is None


def test_objects_come_along_with_a_definition_that_gets_another_scope(real_scene: Scene) -> None:
    first = real_scene.definition()
    assert failures(real_scene.deploy(first, real_scene.widget())) == []
    until_served(real_scene.cluster, real_scene.group, FIRST, "Widget")
    second = copy.deepcopy(first)
    second["spec"]["scope"] = "Cluster"
    wide = real_scene.widget()
    del wide["metadata"]["namespace"]
    planned = real_scene.plan(second, wide)
    assert (action_of(planned, second).action, action_of(planned, wide).action) == (Action.REPLACE, Action.CREATE)
    assert failures(real_scene.apply(planned, second, wide)) == []
    assert real_scene.live(wide)
