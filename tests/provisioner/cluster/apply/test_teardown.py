"""Objects of ours that others deleted or edited, by the time that they are removed or applied again.

The rows are those of boxcutter's teardown and recovery; those about collisions are in test_collisions.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.annotations import NONCE
from provisioner.values import Action, ObjectRef, OutcomeState
from tests.support.provisioner.cluster_scene import Scene, action_of, failures, states


def held(scene: Scene) -> set[str]:
    return {item.ref.name for item in scene.inventory.items().values()}


@pytest.mark.parametrize("is_planned", [False, True], ids=["before the plan", "after the plan"])
def test_what_somebody_else_deleted_is_removed_without_a_word(scene: Scene, is_planned: bool) -> None:
    scene.deploy(gone := scene.config_map("gone"), scene.config_map("there"))
    if not is_planned:
        scene.cluster.delete(ObjectRef.of(gone))
    planned = scene.plan()
    if is_planned:
        scene.cluster.delete(ObjectRef.of(gone))
    assert action_of(planned, gone).action is Action.DELETE
    assert states(scene.apply(planned)) == {"ConfigMap/gone": OutcomeState.DONE, "ConfigMap/there": OutcomeState.DONE}
    assert held(scene) == set()


@pytest.mark.parametrize("is_planned", [False, True], ids=["before the plan", "after the plan"])
def test_what_went_with_its_kind_is_removed_too(scene: Scene, is_planned: bool) -> None:
    somebody, definition = Scene(scene.cluster, scene.namespace), scene.definition()
    # The Service comes after the kind, so that this one is waited for until it is served.
    assert failures(somebody.deploy(definition, scene.service())) == []
    assert failures(scene.deploy(scene.widget(), scene.config_map("there"))) == []

    def kind_goes() -> None:
        assert failures(somebody.deploy()) == []
        scene.cluster.forget_discovery()

    if not is_planned:
        kind_goes()
    planned = scene.plan()
    if is_planned:
        kind_goes()
    assert failures(scene.apply(planned)) == []
    assert held(scene) == set()


@pytest.mark.parametrize("nonce", [None, "n" * 32], ids=["removed", "another"])
def test_our_mark_on_an_object_that_somebody_spoilt_does_not_lose_the_object(scene: Scene, nonce: str | None) -> None:
    scene.deploy(obj := scene.config_map(a="1"))
    live: Any = scene.live(obj)
    annotations = {NONCE: nonce} if nonce else {}
    scene.cluster.replace({**live, "metadata": {**live["metadata"], "annotations": annotations}})
    assert failures(scene.deploy(scene.config_map(a="2"))) == []
    found: Any = scene.live(obj)
    item = scene.inventory.items()[ObjectRef.of(obj).identity]
    assert (found["data"], found["metadata"]["uid"]) == ({"a": "2"}, item.uid)
    assert failures(scene.deploy()) == []
    assert scene.live(obj) is None
