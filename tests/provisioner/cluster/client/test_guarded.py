"""A write that is held back at its last bytes is none, on either API server; and no failure of its object."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.cluster.client.api import ClusterClient
from provisioner.errors import Withheld
from provisioner.values import Action, Identity, ObjectOutcome, ObjectRef
from tests.support.provisioner.cluster_scene import Scene, actions


class Guard:
    """Lets through until `is_shut`."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_shut = False

    def __call__(self) -> None:
        self.asked += 1
        if self.is_shut:
            raise Withheld("not any more")


def config(scene: Scene, name: str, value: str = "1") -> dict[str, Any]:
    meta = {"name": name, "namespace": scene.namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": value}}


def ref(scene: Scene, name: str) -> ObjectRef:
    return ObjectRef("", "v1", "ConfigMap", scene.namespace, name)


def writes(cluster: ClusterClient, scene: Scene) -> list[Any]:
    there = config(scene, "there", "2")
    part = {**config(scene, "there"), "data": {"a": "3"}}
    return [
        lambda: cluster.apply(config(scene, "new"), field_manager="one"),
        lambda: cluster.create(config(scene, "new")),
        lambda: cluster.replace(there),
        lambda: cluster.apply(there, field_manager="one", force=True),
        lambda: cluster.merge(part, field_manager="one"),
        lambda: cluster.delete(ref(scene, "there")),
    ]


def test_what_is_held_back_never_happens(scene: Scene) -> None:
    guard = Guard()
    guarded = scene.cluster.guarded(guard)
    scene.cluster.create(config(scene, "there"))
    before = scene.cluster.get(ref(scene, "there"))
    guard.is_shut = True
    for number, write in enumerate(writes(guarded, scene)):
        with pytest.raises(Withheld):
            write()
        assert guard.asked == number + 1
    assert scene.cluster.get(ref(scene, "there")) == before
    assert scene.cluster.get(ref(scene, "new")) is None


def test_what_is_let_through_happens_and_reading_and_dry_runs_are_not_asked_about(scene: Scene) -> None:
    guard = Guard()
    guarded = scene.cluster.guarded(guard)
    guarded.apply(config(scene, "new"), field_manager="one", dry_run=True)
    assert guarded.get(ref(scene, "new")) is None
    assert guard.asked == 0
    guarded.apply(config(scene, "new"), field_manager="one")
    assert guard.asked == 1
    assert guarded.get(ref(scene, "new"))
    assert guarded.delete(ref(scene, "new"))


def test_it_is_asked_again_before_the_last_part_of_what_is_large(scene: Scene) -> None:
    guard = Guard()

    def shuts_late() -> None:
        guard()
        guard.is_shut = guard.asked == 3

    large = config(scene, "large", "x" * 60_000)
    with pytest.raises(Withheld):
        scene.cluster.guarded(shuts_late).apply(large, field_manager="one")
    assert guard.asked == 4
    assert scene.cluster.get(ref(scene, "large")) is None
    scene.cluster.guarded(Guard()).apply(large, field_manager="one")
    live = scene.cluster.get(ref(scene, "large"))
    assert live
    assert live["data"] == large["data"]


def test_every_guard_is_asked_whoever_it_acts_as(scene: Scene) -> None:
    one, other = Guard(), Guard()
    guarded = scene.cluster.guarded(one).within(10.0).guarded(other)
    guarded.create(config(scene, "new"))
    assert (one.asked, other.asked) == (1, 1)
    one.is_shut = True
    with pytest.raises(Withheld):
        guarded.acting_as(Identity("admin", groups=("system:masters",))).delete(ref(scene, "new"))


@pytest.mark.parametrize("action", [Action.CREATE, Action.UPDATE, Action.DELETE])
def test_an_apply_ends_there_and_no_object_has_failed(scene: Scene, action: Action) -> None:
    if action is not Action.CREATE:
        scene.deploy(scene.config_map("a", a="1"))
    objects = [] if action is Action.DELETE else [scene.config_map("a", a="2")]
    planned = scene.plan(*objects)
    assert list(actions(planned).values()) == [action]
    guard = Guard()
    guard.is_shut = True
    before = scene.live(scene.config_map("a"))
    outcomes: list[ObjectOutcome] = []
    with pytest.raises(Withheld):
        outcomes += replace(scene, cluster=scene.cluster.guarded(guard)).apply(planned, *objects)
    assert outcomes == []
    assert guard.asked == 1, "and nothing is tried again"
    assert scene.live(scene.config_map("a")) == before
