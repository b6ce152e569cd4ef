"""A plan that was reviewed stands for what is as it was then; what has moved is planned anew (S03, S04)."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.errors import FieldConflict
from provisioner.values import Action, CollisionProtection, ObjectRef
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, actions, failures
from tests.support.provisioner.flaky import flaky


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
