"""When a plan that was reviewed still does no more than reviewers saw (security-rules.md S04)."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.order import DEPENDS_ON
from provisioner.cluster.plan.content_plan import compare_plans, is_within
from provisioner.cluster.plan.dry_run import OPTIONAL
from provisioner.errors import FieldConflict, PlanChanged
from provisioner.values import (
    Action,
    CollisionProtection,
    GroupKind,
    ObjectRef,
    OutcomeState,
    PlanDifference,
    PlannedAction,
)
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.live import until_served
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, actions, failures, states
from tests.support.provisioner.flaky import flaky

A, B, C = (ObjectRef("", "v1", "ConfigMap", "harbour", name) for name in "abc")


def does(action: Action, ref: ObjectRef = A, uid: str = "u") -> PlannedAction:
    return PlannedAction(ref, action, uid)


def test_S04_the_same_plan_is_within_itself_whatever_its_order() -> None:
    actions = [does(action, ObjectRef("", "v1", "ConfigMap", "harbour", action)) for action in Action]
    assert is_within(reversed(actions), actions)


def test_S04_an_update_of_which_nothing_is_left_to_do_is_within() -> None:
    reviewed = [does(Action.UPDATE), does(Action.UPDATE, B)]
    assert is_within([does(Action.NONE), does(Action.UPDATE, B)], reviewed)


@pytest.mark.parametrize("was", [one for one in Action if one is not Action.UPDATE])
def test_S04_nothing_else_may_become_nothing(was: Action) -> None:
    """A creation of what exists by now, or a deletion of what is to be kept by now, would do what nobody saw."""
    assert is_within([does(Action.NONE)], [does(was)]) is (was is Action.NONE)


@pytest.mark.parametrize("was", Action)
@pytest.mark.parametrize("now", [one for one in Action if one is not Action.NONE])
def test_S04_no_other_action_is_within(was: Action, now: Action) -> None:
    assert is_within([does(now)], [does(was)]) is (was is now)


@pytest.mark.parametrize("now", [Action.UPDATE, Action.NONE])
def test_S04_an_object_made_again_is_another_one(now: Action) -> None:
    assert not is_within([does(now, uid="other")], [does(Action.UPDATE)])


def test_S04_an_object_more_is_more() -> None:
    assert not is_within([does(Action.UPDATE), does(Action.NONE, B)], [does(Action.UPDATE)])


def test_S04_an_object_that_is_ours_no_longer_is_not_deleted_because_it_was_reviewed() -> None:
    assert not is_within([does(Action.UPDATE)], [does(Action.UPDATE), does(Action.DELETE, B)])


def test_what_is_planned_otherwise_is_named_with_what_was_reviewed() -> None:
    same = ObjectRef("", "v1", "ConfigMap", "harbour", "same")
    reviewed = [does(Action.UPDATE), does(Action.DELETE, B), does(Action.CREATE, same, "")]
    now = [does(Action.CREATE, same, ""), does(Action.UPDATE, uid="other"), does(Action.ADOPT, C)]
    assert compare_plans(now, reviewed) == [
        PlanDifference("ConfigMap harbour/a", "update", "update, of an object that was made again"),
        PlanDifference("ConfigMap harbour/b", "delete", ""),
        PlanDifference("ConfigMap harbour/c", "", "adopt"),
    ]
    assert compare_plans(reviewed, reviewed) == []


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


def replaced(scene: Scene, role: str) -> dict[str, Any]:
    """What cannot change once it exists, and is nothing that a controller would touch meanwhile."""
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return scene.namespaced("rbac.authorization.k8s.io/v1", "RoleBinding", "binding", roleRef=reference)


def first(scene: Scene) -> list[dict[str, Any]]:
    return [
        scene.config_map("same", a="1"),
        scene.config_map("changed", a="1"),
        scene.config_map("gone", a="1"),
        replaced(scene, "a"),
    ]


def second(scene: Scene) -> list[dict[str, Any]]:
    return [
        scene.config_map("same", a="1"),
        scene.config_map("changed", a="2"),
        scene.config_map("new", a="1"),
        replaced(scene, "b"),
    ]


def test_where_nothing_moved_it_is_asked_only_whether_what_goes_can_be_made_anew(scene: Scene, api_server: Endpoint):
    scene.deploy(*first(scene))
    with flaky(api_server) as (line, cluster):
        scene.cluster = cluster
        reviewed = scene.plan(*second(scene))
        asked = line.dry_runs
        again = scene.plan(*second(scene), reviewed=reviewed)
        assert (asked > 0, line.dry_runs - asked) == (True, 1)
    assert again == reviewed
    assert {one.action for one in again.actions} == {
        Action.NONE,
        Action.UPDATE,
        Action.CREATE,
        Action.REPLACE,
        Action.DELETE,
    }
    assert failures(scene.apply(again, *second(scene))) == []


@pytest.mark.proof
def test_what_moved_is_asked_about(scene: Scene, api_server: Endpoint):
    """Beside the one trial of the replacement, which never stands for long."""
    scene.deploy(*first(scene))
    reviewed = scene.plan(*second(scene))
    scene.cluster.apply(scene.config_map("changed", theirs="1"), field_manager="somebody")
    with flaky(api_server) as (line, cluster):
        scene.cluster = cluster
        again = scene.plan(*second(scene), reviewed=reviewed)
        assert line.dry_runs == 2  # what moved, and what is made anew
    assert again.digest == reviewed.digest
    assert action_of(again, second(scene)[1]).after["data"] == {"a": "2", "theirs": "1"}


def created(scene: Scene) -> None:
    scene.cluster.create(scene.config_map("new"))


def deleted(scene: Scene) -> None:
    scene.cluster.delete(ObjectRef.of(scene.config_map("changed")))


def made_again(scene: Scene) -> None:
    deleted(scene)
    scene.cluster.apply(scene.config_map("changed", a="1"), field_manager=MANAGER)


def drifted(scene: Scene) -> None:
    live = scene.live(scene.config_map("same"))
    assert live is not None
    scene.cluster.replace({**live, "data": {}}, field_manager="somebody")


def done_already(scene: Scene) -> None:
    live = scene.live(scene.config_map("changed"))
    assert live is not None
    scene.cluster.replace({**live, "data": {"a": "2"}}, field_manager="somebody")


def going_made_again(scene: Scene) -> None:
    scene.cluster.delete(ObjectRef.of(scene.config_map("gone")))
    scene.cluster.create(scene.config_map("gone"))


@pytest.mark.parametrize("happen", [created, deleted, made_again, drifted, done_already, going_made_again])
def test_what_moves_so_that_something_else_would_happen_makes_another_plan(scene: Scene, happen):
    scene.deploy(*first(scene))
    reviewed = scene.plan(*second(scene))
    happen(scene)
    again, anew = scene.plan(*second(scene), reviewed=reviewed), scene.plan(*second(scene))
    assert again.digest == anew.digest != reviewed.digest
    assert actions(again) == actions(anew)


def test_what_is_being_deleted_by_now_does_not_stand(scene: Scene):
    scene.deploy(obj := scene.config_map(a="1"))
    live = scene.live(obj)
    scene.cluster.replace({**live, "metadata": {**live["metadata"], "finalizers": ["example.com/hold"]}})
    reviewed = scene.plan(changed := scene.config_map(a="2"))
    scene.cluster.delete(ObjectRef.of(obj))
    assert "is being deleted" in action_of(scene.plan(changed, reviewed=reviewed), changed).problem
    live = scene.live(obj)
    scene.cluster.replace({**live, "metadata": {**live["metadata"], "finalizers": []}})


def test_a_problem_never_stands(scene: Scene):
    scene.deploy(scene.config_map(a="1"))
    scene.cluster.apply(scene.config_map(b="theirs"), field_manager="somebody")
    obj = scene.config_map(a="1", b="mine")
    reviewed = scene.plan(obj)
    assert action_of(reviewed, obj).problem_code == FieldConflict.code
    scene.cluster.apply(scene.config_map(), field_manager="somebody")
    assert action_of(scene.plan(obj, reviewed=reviewed), obj).problem == ""


def test_an_adoption_is_always_asked_about_again(scene: Scene):
    made = scene.cluster.create(scene.config_map(a="1"))
    options = {"collision_protection": CollisionProtection.IF_NO_CONTROLLER}
    reviewed = scene.plan(obj := scene.config_map(a="1"), **options)
    others = {made["metadata"]["uid"]: "shop"}
    again = scene.plan(obj, reviewed=reviewed, others=others, **options)
    assert "BundleDeployment shop" in action_of(again, obj).problem


def test_an_object_that_left_our_inventory_does_not_stand(scene: Scene):
    scene.deploy(scene.config_map(a="1"))
    reviewed = scene.plan(obj := scene.config_map(a="2"))
    stranger = Scene(scene.cluster, scene.namespace)
    assert action_of(stranger.plan(obj, reviewed=reviewed), obj).action is Action.ADOPT
