"""A hook whose name something else has: what is somebody else's, what stayed so far, and what holds data."""

from __future__ import annotations

from typing import Any

from provisioner.values import Action, CollisionProtection
from tests.provisioner.cluster.apply.hooks.charts import Chart, hook, uid_of
from tests.support.provisioner.cluster_scene import Scene, failures


def test_what_is_somebody_elses_is_not_cleared(chart: Chart) -> None:
    scene, hooks = chart.scene, [hook(chart.scene.config_map("theirs", by="hook"))]
    scene.cluster.create(scene.config_map("theirs", by="somebody"))
    planned = chart.plan(hooks, scene.config_map())
    assert planned.actions[0].problem_code == "already-exists"
    adopting = chart.plan(hooks, scene.config_map(), collision_protection=CollisionProtection.IF_NO_CONTROLLER)
    assert (adopting.actions[0].action, adopting.actions[0].problem) == (Action.REPLACE, "")
    assert failures(chart.apply(adopting, hooks, scene.config_map())) == []
    live: Any = scene.live(hooks[0].body)
    assert live["data"] == {"by": "hook"}


def test_what_stayed_and_becomes_a_hook_is_made_anew_in_so_many_words(chart: Chart) -> None:
    scene = chart.scene
    chart.deploy([], scene.config_map("moved"), scene.config_map())
    planned = chart.plan([hook(scene.config_map("moved"))], scene.config_map())
    assert planned.actions[0].action is Action.REPLACE
    assert planned.actions[0].uid == uid_of(scene.cluster, scene.config_map("moved"))


def claim(scene: Scene) -> dict[str, Any]:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return scene.namespaced("v1", "PersistentVolumeClaim", "data", spec=wanted)


def test_what_holds_data_is_not_cleared_without_a_word(chart: Chart) -> None:
    scene = chart.scene
    hooks = [hook(claim(scene))]
    assert failures(chart.deploy(hooks, scene.config_map())) == []
    planned = chart.plan(hooks, scene.config_map())
    assert planned.actions[0].action is Action.REPLACE
    assert planned.actions[0].uid == uid_of(scene.cluster, claim(scene))


def test_what_another_deployment_has_adopted_since_is_its_own(chart: Chart) -> None:
    scene = chart.scene
    hooks = [hook(scene.config_map("shared"))]
    chart.deploy(hooks, scene.config_map())
    others = {uid_of(scene.cluster, scene.config_map("shared")): "other"}
    planned = chart.plan(hooks, scene.config_map(), others=others)
    assert planned.actions[0].problem_code == "already-exists"


def test_what_becomes_a_hook_leaves_the_inventory(chart: Chart) -> None:
    scene = chart.scene
    chart.deploy([], scene.config_map("moved"), scene.config_map())
    hooks = [hook(scene.config_map("moved", by="hook"))]
    assert failures(chart.deploy(hooks, scene.config_map())) == []
    assert [item.ref.name for item in scene.inventory.items().values()] == ["settings"]
    live: Any = scene.live(hooks[0].body)
    assert live["data"] == {"by": "hook"}
