"""Objects that may be left out while the cluster does not serve their kind (S17)."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.graph import DEPENDS_ON
from provisioner.cluster.plan.dry_run import OPTIONAL
from provisioner.errors import PlanChanged
from provisioner.values import Action, GroupKind, ObjectRef, OutcomeState
from tests.support.kubernetes.live import until_served
from tests.support.provisioner.cluster_scene import Scene, action_of, actions, failures, states


def optional(scene: Scene, says: str = "true", **spec: int) -> dict[str, Any]:
    obj = scene.widget(**spec)
    obj["metadata"]["annotations"] = {OPTIONAL: says}
    return obj


def test_an_optional_object_is_left_out_while_its_kind_is_absent(scene: Scene):
    bundle = [optional(scene), scene.config_map()]
    planned = scene.plan(*bundle)
    found = action_of(planned, bundle[0])
    assert (found.action, found.problem, found.after["spec"]) == (Action.SKIP, "", {"size": 1})
    assert "the cluster serves no Widget" in found.notes[0]
    outcomes = scene.apply(planned, *bundle)
    assert states(outcomes) == {"Widget/one": OutcomeState.UNCHANGED, "ConfigMap/settings": OutcomeState.DONE}
    assert "left out" in next(one.message for one in outcomes if one.action is Action.SKIP)
    assert {item.ref.kind for item in scene.inventory.items().values()} == {"ConfigMap"}


def test_nobody_waits_for_an_optional_object_in_a_version_that_kubernetes_removed(scene: Scene):
    old = {"name": "old", "namespace": scene.namespace, "annotations": {OPTIONAL: "true"}}
    obj = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": old}
    found = action_of(scene.plan(obj), obj)
    assert found.action is Action.SKIP
    assert "which Kubernetes no longer serves as of 1.25; it serves this kind in policy/v1" in found.notes[0]
    assert "will be created once" not in found.notes[0]
    widget = optional(scene)
    assert "It will be created once API" in action_of(scene.plan(widget), widget).notes[0]


@pytest.mark.parametrize("says", ["false", "", "True"])
def test_only_the_word_true_makes_an_object_optional(scene: Scene, says):
    obj = optional(scene, says)
    assert action_of(scene.plan(obj), obj).problem_code == "unknown-kind"


def test_a_kind_may_be_optional_for_the_whole_deployment(scene: Scene):
    kinds = frozenset({GroupKind(scene.group, "Widget")})
    assert set(actions(scene.plan(scene.widget(), scene.widget("two"), optional_kinds=kinds)).values()) == {Action.SKIP}


def test_an_optional_object_of_a_served_kind_is_like_any_other(scene: Scene):
    obj = scene.config_map(a="1")
    obj["metadata"]["annotations"] = {OPTIONAL: "true"}
    assert action_of(scene.plan(obj), obj).action is Action.CREATE


def test_an_optional_object_whose_kind_comes_along_is_made(scene: Scene):
    outcomes = scene.deploy(scene.definition(), optional(scene))
    assert failures(outcomes) == []
    assert {one.action for one in outcomes} == {Action.CREATE}


def test_an_optional_object_in_a_namespace_that_comes_along_is_left_out_too(scene: Scene):
    extra = f"{scene.namespace}-extra"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": extra}}
    obj = optional(scene)
    obj["metadata"]["namespace"] = extra
    assert action_of(scene.plan(namespace, obj), obj).action is Action.SKIP


def test_S17_that_the_kind_appears_makes_another_plan(scene: Scene):
    """So what was left out is not written on the quiet, and not forgotten either."""
    bundle = [optional(scene), scene.config_map()]
    before = scene.plan(*bundle)
    stranger = Scene(scene.cluster, scene.namespace)
    assert failures(stranger.deploy(scene.definition(), scene.widget("other"))) == []
    scene.inventory = stranger.inventory
    scene.cluster.forget_discovery()
    after = scene.plan(*bundle)
    assert action_of(after, bundle[0]).action is Action.CREATE
    assert before.digest != after.digest


def test_an_optional_object_that_went_with_its_kind_is_left_out_and_made_again_with_it(scene: Scene):
    keep = scene.config_map()
    scene.deploy(keep, scene.definition(), optional(scene))
    scene.cluster.delete(ObjectRef.of(scene.definition()))
    until_served(scene.cluster, scene.group, "v1", "Widget", is_served=False)
    planned = scene.plan(keep, optional(scene))
    assert action_of(planned, optional(scene)).action is Action.SKIP
    assert failures(scene.apply(planned, keep, optional(scene))) == []
    assert failures(scene.deploy(keep, scene.definition(), optional(scene))) == []
    assert scene.live(optional(scene)) is not None


def test_nobody_waits_for_what_is_left_out(scene: Scene):
    after = scene.config_map("after")
    after["metadata"]["annotations"] = {DEPENDS_ON: f"{scene.group}/namespaces/{scene.namespace}/Widget/one"}
    outcomes = scene.deploy(optional(scene), after)
    assert states(outcomes)["ConfigMap/after"] is OutcomeState.DONE


def test_a_plan_that_leaves_out_what_the_content_has_not_is_refused(scene: Scene):
    planned = scene.plan(optional(scene), keep := scene.config_map())
    with pytest.raises(PlanChanged):
        scene.apply(planned, keep)
