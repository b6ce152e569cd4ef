"""What a plan says, asked of real API servers."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from provisioner.cluster.client.access import refused_writes
from provisioner.cluster.compare import uid_of
from provisioner.cluster.inventory import uids
from provisioner.cluster.plan.comparing import plan_digest
from provisioner.cluster.plan.planning import plan
from provisioner.errors import TryLater
from provisioner.retention import is_remade
from provisioner.unserved import minor_of, removal_of
from provisioner.values import Action, Identity, ObjectRef, OutcomeState, PlannedAction
from tests.support.provisioner.cluster_scene import MANAGER, Scene, action_of, actions, content
from tests.support.provisioner.contents import an_object


def test_a_new_object_is_created_and_its_result_proved(scene: Scene):
    planned = action_of(scene.plan(obj := scene.deployment()), obj)
    assert (planned.action, planned.is_proved, planned.uid) == (Action.CREATE, True, "")
    assert planned.before is None
    assert planned.after["spec"]["strategy"]["type"] == "RollingUpdate"
    assert "managedFields" not in planned.after["metadata"]


def test_what_is_deployed_unchanged_needs_nothing(scene: Scene):
    objects = [scene.config_map(a="1"), scene.service(), scene.deployment(replicas=0)]
    scene.deploy(*objects)
    assert set(actions(scene.plan(*objects)).values()) == {Action.NONE}


@pytest.mark.parametrize("value", ["2", "3"])
def test_S38_a_secret_is_written_whether_its_values_change_or_not(scene: Scene, value: str):
    scene.deploy(scene.secret(b="2"))
    planned = action_of(scene.plan(obj := scene.secret(b=value)), obj)
    assert (planned.action, planned.before == planned.after) == (Action.UPDATE, value == "2")
    is_only_read = action_of(scene.plan(obj, supposes_adoption=True), obj)
    assert (is_only_read.action is Action.NONE) == (value == "2")


@pytest.mark.parametrize("value", ["2", "3"])
def test_S38_an_immutable_secret_is_an_update_although_it_is_made_anew_where_its_values_change(
    scene: Scene, value: str
):
    scene.deploy({**scene.secret(b="2"), "immutable": True})
    plan = scene.plan(obj := {**scene.secret(b=value), "immutable": True})
    planned = action_of(plan, obj)
    assert (planned.action, planned.problem, is_remade(planned)) == (Action.UPDATE, "", value == "3")
    nobody = Identity.of_service_account(scene.namespace, "nobody")
    assert {one.verb for one in refused_writes(scene.cluster, nobody, plan.actions)} == {"create", "delete", "patch"}
    (outcome,) = scene.apply(plan, obj)
    assert (outcome.action, outcome.state, outcome.message) == (Action.UPDATE, OutcomeState.DONE, "")
    live = scene.live(obj) or {}
    assert (live["data"], live["immutable"]) == ({"b": b64encode(value.encode()).decode()}, True)
    assert (uid_of(live) == planned.uid, uid_of(live)) == (value == "2", outcome.uid)
    (again,) = scene.apply(plan, obj)  # as after a crash
    assert (again.state, again.message, again.uid) == (OutcomeState.DONE, "", outcome.uid)


@pytest.mark.parametrize("value", ["ours", "theirs"])
def test_S38_a_key_of_a_secret_that_somebody_else_owns_is_a_problem_whatever_it_holds(scene: Scene, value: str):
    obj = scene.namespaced("v1", "Secret", "token", data={"b": b64encode(b"ours").decode()})
    scene.deploy(obj)
    theirs = {**obj, "data": {"b": b64encode(value.encode()).decode()}}
    scene.cluster.apply(theirs, field_manager="somebody", force=True)
    planned = action_of(scene.plan(obj), obj)
    assert (planned.problem_code, planned.server_words) == ("field-conflict", "somebody owns data.b")
    assert planned.problem.endswith("another manager owns data.b")


def test_a_change_is_an_update_with_both_states(scene: Scene):
    scene.deploy(scene.config_map(a="1"))
    planned = action_of(scene.plan(obj := scene.config_map(a="2")), obj)
    assert planned.action is Action.UPDATE
    assert (planned.before["data"], planned.after["data"]) == ({"a": "1"}, {"a": "2"})
    assert planned.uid == scene.live(obj)["metadata"]["uid"]


def test_what_the_content_has_no_more_is_deleted(scene: Scene):
    keep, drop = scene.config_map("keep"), scene.config_map("drop")
    scene.deploy(keep, drop)
    assert actions(scene.plan(keep)) == {"ConfigMap/keep": Action.NONE, "ConfigMap/drop": Action.DELETE}


def test_planning_changes_nothing_not_even_what_it_plans_to_delete(scene: Scene):
    drop, change = scene.config_map("drop", a="1"), scene.config_map("change", a="1")
    scene.deploy(drop, change)
    before = [scene.live(obj) for obj in (drop, change)]
    scene.plan(scene.config_map("change", a="2"), scene.config_map("new"))
    assert [scene.live(obj) for obj in (drop, change)] == before
    assert scene.live(scene.config_map("new")) is None


def test_S20_what_exists_and_is_not_in_the_inventory_is_not_ours(scene: Scene):
    """The same labels, annotations, manager and bytes prove nothing."""
    obj = scene.config_map(a="1")
    scene.cluster.apply(obj, field_manager=MANAGER)
    planned = action_of(scene.plan(obj), obj)
    assert (planned.action, planned.problem_code, planned.before) == (Action.ADOPT, "already-exists", None)
    assert MANAGER in planned.server_words


def test_S20_an_object_made_again_under_our_name_is_not_ours(scene: Scene):
    obj = scene.config_map(a="1")
    scene.deploy(obj)
    scene.cluster.delete(ObjectRef.of(obj))
    scene.cluster.create(obj)
    found = action_of(scene.plan(obj), obj)
    assert (found.action, found.problem_code) == (Action.ADOPT, "already-exists")
    planned = action_of(scene.plan(), obj)
    assert planned.action is Action.NONE
    assert "somebody else" in planned.notes[0]


def test_an_object_of_ours_that_somebody_deleted_is_created_again(scene: Scene):
    obj = scene.config_map(a="1")
    scene.deploy(obj)
    scene.cluster.delete(ObjectRef.of(obj))
    assert action_of(scene.plan(obj), obj).action is Action.CREATE


def test_an_immutable_field_makes_it_a_replacement(scene: Scene):
    scene.deploy(scene.job(image="example.com/migrate:1"))
    planned = action_of(scene.plan(obj := scene.job(image="example.com/migrate:2")), obj)
    assert (planned.action, planned.problem) == (Action.REPLACE, "")


def test_an_invalid_object_is_a_problem_not_a_replacement(scene: Scene):
    scene.deploy(scene.service())
    wrong = scene.service()
    wrong["spec"]["type"] = "Nonsense"
    planned = action_of(scene.plan(wrong), wrong)
    assert (planned.action, planned.problem_code, planned.is_proved) == (Action.UPDATE, "invalid-object", False)


def test_a_field_that_somebody_else_owns_is_a_problem_naming_them(scene: Scene):
    scene.deploy(scene.config_map(a="1"))
    scene.cluster.apply(scene.config_map(b="theirs"), field_manager="somebody")
    planned = action_of(scene.plan(obj := scene.config_map(a="1", b="mine")), obj)
    assert planned.problem_code == "field-conflict"
    assert "somebody owns .data.b" in planned.server_words


def test_what_the_installer_may_not_do_is_a_problem_per_object(scene: Scene):
    installer = scene.cluster.acting_as(Identity.of_service_account(scene.namespace, "installer"))
    bundle = content([scene.config_map(), scene.secret()])
    planned = plan(installer, bundle, inventory={}, previous=None, field_manager=MANAGER)
    assert {one.problem_code for one in planned.actions} == {"forbidden"}


def test_a_kind_that_nobody_serves_is_a_problem(scene: Scene):
    planned = action_of(scene.plan(obj := scene.widget()), obj)
    assert (planned.action, planned.problem_code) == (Action.CREATE, "unknown-kind")
    assert planned.problem.endswith(f": the cluster serves no Widget in {obj['apiVersion']}")


@pytest.mark.parametrize(
    ("api_version", "kind", "words"),
    [
        pytest.param(
            "apiextensions.k8s.io/v1beta1",
            "CustomResourceDefinition",
            "which Kubernetes no longer serves as of 1.22; it serves this kind in apiextensions.k8s.io/v1",
            id="CRD",
        ),
        pytest.param(
            "extensions/v1beta1",
            "Ingress",
            "which Kubernetes no longer serves as of 1.22; it serves this kind in networking.k8s.io/v1",
            id="Ingress",
        ),
        pytest.param(
            "policy/v1beta1",
            "PodDisruptionBudget",
            "which Kubernetes no longer serves as of 1.25; it serves this kind in policy/v1",
            id="PodDisruptionBudget",
        ),
    ],
)
def test_of_a_version_that_kubernetes_removed_the_problem_says_so_and_what_is_served(
    scene: Scene, api_version: str, kind: str, words: str
):
    obj = an_object(api_version, kind, "old", "" if kind.startswith("Custom") else scene.namespace)
    planned = action_of(scene.plan(obj), obj)
    assert (planned.action, planned.problem_code) == (Action.CREATE, "unknown-kind")
    assert planned.problem.endswith(f": the cluster serves no {kind} in {api_version}, {words}")


def test_nothing_that_the_cluster_serves_counts_as_removed(scene: Scene):
    release = minor_of(scene.cluster.version())
    assert release
    gone = [removal_of(one.group, one.version, one.kind) for one in scene.cluster.resources()]
    assert [one for one in gone if one is not None and one.minor <= release] == []


def test_a_custom_resource_whose_definition_comes_along_is_planned_offline(scene: Scene):
    planned = scene.plan(definition := scene.definition(), widget := scene.widget())
    assert action_of(planned, definition).is_proved
    assert (action_of(planned, widget).is_proved, action_of(planned, widget).problem) == (False, "")
    assert action_of(planned, widget).after["spec"] == {"size": 1}


def test_a_custom_resource_that_needs_the_new_definition_is_planned_offline(scene: Scene):
    scene.deploy(scene.definition(), scene.widget(size=1))
    planned = scene.plan(scene.definition(fields=("size", "depth")), widget := scene.widget(size=1, depth=2))
    assert (action_of(planned, widget).action, action_of(planned, widget).problem) == (Action.UPDATE, "")
    assert not action_of(planned, widget).is_proved


def test_objects_of_a_namespace_that_comes_along_are_planned_offline(scene: Scene):
    extra = f"{scene.namespace}-extra"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": extra}}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": extra}}
    planned = scene.plan(namespace, obj)
    assert (action_of(planned, namespace).is_proved, action_of(planned, obj).is_proved) == (True, False)
    assert action_of(planned, obj).problem == ""


def test_a_namespace_that_does_not_come_along_is_a_problem(scene: Scene):
    obj = scene.config_map()
    obj["metadata"]["namespace"] = f"{scene.namespace}-absent"
    assert "absent" in action_of(scene.plan(obj), obj).problem


def test_S09_no_value_of_a_secret_is_in_a_plan(scene: Scene):
    scene.deploy(scene.secret(password="first-value", user="same"))
    planned = scene.plan(obj := scene.secret(password="second-value", user="same"))
    shown = json.dumps([action_of(planned, obj).before, action_of(planned, obj).after])
    assert action_of(planned, obj).after["data"] == {"password": "changed", "user": "unchanged"}
    for value in ("first-value", "second-value", "c2Vjb25kLXZhbHVl", "Zmlyc3QtdmFsdWU="):
        assert value not in shown


def test_S09_of_a_foreign_secret_not_even_equality_is_told(scene: Scene):
    scene.cluster.create(scene.secret(password="same"))
    shown = [
        action_of(scene.plan(one), one).after for one in (scene.secret(password="same"), scene.secret(password="x"))
    ]
    assert shown[0] == shown[1]


def test_the_order_of_the_plan_is_that_of_the_apply(scene: Scene):
    scene.deploy(scene.config_map("old"))
    planned = scene.plan(scene.deployment(), scene.service(), scene.secret())
    assert [one.ref.kind for one in planned.actions] == ["Secret", "Service", "Deployment", "ConfigMap"]


def test_two_plans_of_the_same_state_have_one_digest(scene: Scene):
    scene.deploy(scene.deployment(), scene.config_map(a="1"))
    objects = [scene.deployment(image="example.com/web:2"), scene.config_map(a="2")]
    assert scene.plan(*objects).digest == scene.plan(*reversed(objects)).digest


def test_S03_the_digest_covers_action_object_and_uid_and_not_what_the_cluster_moves():
    ref = ObjectRef("", "v1", "ConfigMap", "a", "b")
    one = PlannedAction(ref, Action.UPDATE, "u", "7", {}, {"x": 1})
    assert plan_digest([one]) == plan_digest([PlannedAction(ref, Action.UPDATE, "u", "8", None, None)])
    others = [
        PlannedAction(ref, Action.DELETE, "u"),
        PlannedAction(ref, Action.UPDATE, "v"),
        PlannedAction(ObjectRef("", "v1", "ConfigMap", "ab", ""), Action.UPDATE, "u"),
    ]
    assert len({plan_digest([other]) for other in [one, *others]} | {plan_digest([])}) == 5


def test_a_server_that_does_not_answer_is_an_error_not_a_plan(scene: Scene, nobody_there):
    with pytest.raises(TryLater):
        plan(
            nobody_there,
            content([scene.config_map()]),
            inventory=uids([]),
            previous=None,
            field_manager=MANAGER,
        )


def test_a_binding_whose_role_comes_along_is_planned_by_an_account_with_no_right_to_bind(scene: Scene):
    rbac = "rbac.authorization.k8s.io/v1"
    verbs = ["get", "create", "patch"]
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": verbs},
    ]
    account = {"kind": "ServiceAccount", "name": "installer", "namespace": scene.namespace}
    scene.deploy(
        scene.namespaced(rbac, "Role", "installer", rules=rules),
        scene.namespaced(rbac, "RoleBinding", "installer", roleRef=role_ref("installer"), subjects=[account]),
    )
    reader = scene.namespaced(rbac, "Role", "reader", rules=rules[:1])
    binding = scene.namespaced(rbac, "RoleBinding", "reader", roleRef=role_ref("reader"), subjects=[account])
    stray = scene.namespaced(rbac, "RoleBinding", "stray", roleRef=role_ref("nowhere"), subjects=[account])
    identity = Identity.of_service_account(scene.namespace, "installer")
    least = Scene(scene.cluster.acting_as(identity), scene.namespace)
    scene.until_may(identity, "patch", "rolebindings", "rbac.authorization.k8s.io")
    planned = least.plan(reader, binding, stray)
    assert (action_of(planned, reader).is_proved, action_of(planned, reader).problem) == (True, "")
    assert (action_of(planned, binding).is_proved, action_of(planned, binding).problem) == (False, "")
    assert "nowhere" in action_of(planned, stray).server_words
    assert [one.state for one in least.deploy(reader, binding)] == ["done", "done"]


def role_ref(name: str) -> dict[str, str]:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
