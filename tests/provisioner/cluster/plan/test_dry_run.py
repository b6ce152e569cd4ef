"""What a plan says, asked of real API servers."""

from __future__ import annotations

import copy
import json
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from provisioner.cluster.annotations import NONCE, Tracking
from provisioner.cluster.client.access import refused_writes
from provisioner.cluster.compare import cleaned
from provisioner.cluster.evidence import WORTH_A_LIST, read_many
from provisioner.cluster.inventory import uids
from provisioner.cluster.plan.content_plan import plan
from provisioner.cluster.plan.dry_run import is_applied
from provisioner.cluster.plan.inputs import body_of
from provisioner.cluster.plan.planned_actions import plan_digest
from provisioner.errors import TryLater
from provisioner.json_values import uid_of
from provisioner.missing_kinds import minor_of, removal_of
from provisioner.retention import is_remade
from provisioner.values import Action, Identity, Manifest, ObjectRef, OutcomeState, PlannedAction
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.provisioner.cluster_scene import MANAGER, Scene, a_bundle, action_of, actions, content, failures
from tests.support.provisioner.contents import an_object
from tests.support.provisioner.flaky import flaky


def test_a_new_object_is_created_and_its_result_proved(scene: Scene):
    planned = action_of(scene.plan(obj := scene.deployment()), obj)
    assert (planned.action, planned.is_proved, planned.uid) == (Action.CREATE, True, "")
    assert planned.before is None
    assert planned.after["spec"]["strategy"]["type"] == "RollingUpdate"
    assert "managedFields" not in planned.after["metadata"]


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


def test_an_invalid_object_is_a_problem_not_a_replacement(scene: Scene):
    scene.deploy(scene.service())
    wrong = scene.service()
    wrong["spec"]["type"] = "Nonsense"
    planned = action_of(scene.plan(wrong), wrong)
    assert (planned.action, planned.problem_code, planned.is_proved) == (Action.UPDATE, "invalid-object", False)


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
        plan(nobody_there, content([scene.config_map()]), inventory=uids([]), previous=None, field_manager=MANAGER)


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


OWNED = {
    "f:data": {"f:a": {}, "f:b": {}},
    "f:metadata": {"f:annotations": {f"f:{NONCE}": {}}},
    "f:spec": {
        "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}, 'k:{"port":81,"protocol":"TCP"}': {".": {}, "f:port": {}}},
        "f:selector": {},
        "f:args": {},
        "f:names": {'v:"x"': {}, 'v:"y"': {}},
    },
}  # fmt: skip
WISHED: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Thing",
    "metadata": {"name": "x", "namespace": "a"},
    "data": {"a": "1", "b": 2},
    "spec": {
        "ports": [{"port": 80}, {"port": 81}],
        "selector": {"app": "web"},
        "args": ["one", "two"],
        "names": ["x", "y"],
    },
}


def live(**changes: Any) -> dict[str, Any]:
    obj = copy.deepcopy(WISHED)
    obj["metadata"]["annotations"] = {NONCE: "n", "of": "somebody"}
    obj["spec"]["ports"] = [{"port": port, "protocol": "TCP"} for port in (80, 81)]
    obj["data"]["theirs"] = "3"
    entry = {"manager": MANAGER, "operation": "Apply", "apiVersion": "v1", "fieldsV1": copy.deepcopy(OWNED)}
    obj["metadata"]["managedFields"] = [entry, {"manager": "somebody", "operation": "Update", "fieldsV1": {}}]
    return obj | changes


def test_what_is_as_we_applied_it_is_known_to_be():
    assert is_applied(WISHED, live(), field_manager=MANAGER)


def entry_of(obj: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = obj["metadata"]["managedFields"][0]
    return found


@pytest.mark.parametrize(
    "disturb",
    [
        pytest.param(lambda it: it["data"].update(a="2"), id="a value"),
        pytest.param(lambda it: it["data"].update(b="2"), id="a type"),
        pytest.param(lambda it: it["data"].update(b=2.5), id="a number"),
        pytest.param(lambda it: it["data"].pop("a"), id="a field that is gone"),
        pytest.param(lambda it: it.pop("spec"), id="a part that is gone"),
        pytest.param(lambda it: it["spec"]["selector"].update(more="x"), id="a map owned as a whole"),
        pytest.param(lambda it: it["spec"]["args"].reverse(), id="a list owned as a whole"),
        pytest.param(lambda it: it["spec"]["names"].append("z"), id="a set"),
        pytest.param(lambda it: it["spec"]["ports"].reverse(), id="the order of items"),
        pytest.param(lambda it: it["spec"]["ports"].append({"port": 82, "protocol": "TCP"}), id="a foreign item"),
        pytest.param(lambda it: it["spec"]["ports"][0].update(protocol="UDP"), id="an item with another key"),
        pytest.param(lambda it: it["metadata"].pop("annotations"), id="no nonce"),
        pytest.param(lambda it: it["metadata"].pop("managedFields"), id="nobody owns anything"),
        pytest.param(lambda it: entry_of(it).update(manager="somebody"), id="another manager"),
        pytest.param(lambda it: entry_of(it).update(operation="Update"), id="another operation"),
        pytest.param(lambda it: entry_of(it).update(apiVersion="v2"), id="another version"),
        pytest.param(lambda it: entry_of(it).update(subresource="status"), id="a subresource"),
        pytest.param(lambda it: entry_of(it).pop("fieldsV1"), id="no fields"),
        pytest.param(lambda it: entry_of(it)["fieldsV1"]["f:data"].pop("f:a"), id="a field that we lost"),
        pytest.param(lambda it: entry_of(it)["fieldsV1"]["f:data"].update({"f:c": {}}), id="a field more"),
        pytest.param(lambda it: entry_of(it)["fieldsV1"]["f:spec"]["f:ports"].popitem(), id="an item that we lost"),
        pytest.param(lambda it: entry_of(it)["fieldsV1"]["f:spec"]["f:names"].popitem(), id="a member that we lost"),
        pytest.param(lambda it: entry_of(it)["fieldsV1"]["f:spec"].update({"f:ports": {"k:{": {}, "k:7": {}}}), id="nonsense"),
        pytest.param(lambda it: it["metadata"]["managedFields"].append(entry_of(it)), id="two entries"),
    ],
)  # fmt: skip
def test_what_somebody_touched_is_asked_about(disturb: Callable[[dict[str, Any]], object]):
    disturb(touched := live())
    assert not is_applied(WISHED, touched, field_manager=MANAGER)


@pytest.mark.parametrize("value", [None, {}, [], {"x": None}, "text"], ids=str)
def test_a_content_with_other_fields_is_asked_about(value):
    assert not is_applied({**WISHED, "more": value}, live(), field_manager=MANAGER)
    assert not is_applied({**WISHED, "data": value}, live(), field_manager=MANAGER)


def bundle(scene: Scene) -> list[dict[str, Any]]:
    rbac = "rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]
    return [
        *[scene.config_map(f"map-{number}", a="1", b="2") for number in range(WORTH_A_LIST)],
        *a_bundle(scene),
        scene.namespaced("v1", "ServiceAccount", "robot", automountServiceAccountToken=False),
        scene.namespaced(rbac, "Role", "reader", rules=rules),
    ]


def test_where_it_is_known_the_server_says_the_same(scene: Scene):
    """And it is known for nearly everything: the Secret is written in clear, the Job's quantities otherwise."""
    objects = bundle(scene)
    assert failures(scene.deploy(*objects)) == []
    known = set()
    for obj in objects:
        found = scene.live(obj)
        assert found is not None
        if is_applied(obj, found, field_manager=MANAGER):
            known.add(obj["kind"])
            body = body_of(Manifest(obj), tracking=Tracking.on(found))
            asked = scene.cluster.apply(body, field_manager=MANAGER, dry_run=True).object
            assert cleaned(asked) == cleaned(found)
    assert known >= {"ConfigMap", "Service", "Deployment", "ServiceAccount", "Role", "Widget"}


def test_planning_asks_only_about_what_may_change(scene: Scene, api_server: Endpoint):
    before = [scene.config_map(f"map-{number:02}", a="1") for number in range(40)]
    after = [scene.config_map(f"map-{number:02}", a="2" if number < 2 else "1") for number in range(40)]
    scene.deploy(*before)
    asked = scene.plan(*after)
    with flaky(api_server) as (line, cluster):
        scene.cluster = cluster
        planned = scene.plan(*after, previous=content(before))
    assert line.dry_runs == 2
    assert line.reads < WORTH_A_LIST + 8
    assert planned.digest == asked.digest
    assert [one.after for one in planned.actions] == [one.after for one in asked.actions]
    assert sum(one.action is Action.UPDATE for one in planned.actions) == 2


@pytest.mark.parametrize("manager", [MANAGER, "somebody"])
def test_drift_is_planned_though_the_content_is_the_same(scene: Scene, manager):
    scene.deploy(obj := scene.config_map(a="1", b="2"), other := scene.config_map("other", a="1"))
    found = scene.live(obj)
    scene.cluster.replace({**found, "data": {"a": "changed"}}, field_manager=manager)
    planned = scene.plan(obj, other, previous=content([obj, other]))
    asked = scene.plan(obj, other)
    assert actions(planned) == actions(asked)
    assert action_of(planned, other).action is Action.NONE
    assert action_of(planned, obj).problem_code == action_of(asked, obj).problem_code


def test_a_field_that_the_running_content_had_is_still_taken_away(scene: Scene):
    scene.deploy(old := scene.config_map(a="1", b="2"))
    planned = scene.plan(new := scene.config_map(a="1"), previous=content([old]))
    assert (action_of(planned, new).action, action_of(planned, new).after["data"]) == (Action.UPDATE, {"a": "1"})


def test_an_object_of_a_kind_that_changes_is_asked_about(scene: Scene):
    scene.deploy(scene.definition(), widget := scene.widget(size=1))
    bundle = [scene.definition(fields=("size", "depth")), widget]
    planned = scene.plan(*bundle, previous=content([scene.definition(), widget]))
    assert not action_of(planned, widget).is_proved


def test_live_objects_of_one_kind_come_by_one_list(scene: Scene, api_server: Endpoint):
    objects = [scene.config_map(f"map-{number:02}") for number in range(20)]
    for obj in objects[:10]:
        scene.cluster.create(obj)
    with flaky(api_server) as (line, cluster):
        cluster.resources()
        before = line.reads
        found = read_many(cluster, [ObjectRef.of(obj) for obj in objects])
    assert line.reads - before == 1
    assert [found[ObjectRef.of(obj).identity] for obj in objects[:10]] == [scene.live(obj) for obj in objects[:10]]
    assert [found[ObjectRef.of(obj).identity] for obj in objects[10:]] == [None] * 10


def test_what_may_not_be_listed_is_left_to_be_asked_for_one_by_one(scene: Scene):
    nobody = scene.cluster.acting_as(Identity("nobody"))
    assert read_many(nobody, [ObjectRef.of(scene.config_map(f"m{number}")) for number in range(20)]) == {}


def test_of_a_list_that_is_too_long_only_what_was_seen_is_told(scene: Scene, monkeypatch):
    monkeypatch.setattr("provisioner.cluster.evidence.MAX_STRANGERS", 2)
    for number in range(10):
        scene.cluster.create(scene.config_map(f"a-stranger-{number}"))
    ours = [scene.config_map(f"z-{number}") for number in range(WORTH_A_LIST)]
    for obj in ours[:2]:
        scene.cluster.create(obj)
    found = read_many(scene.cluster, [ObjectRef.of(obj) for obj in ours])
    assert None not in found.values()
    assert {one.action for one in scene.plan(*ours).actions} == {Action.ADOPT, Action.CREATE}


def test_what_the_server_warned_of_is_kept_for_what_stays_as_it_is(scene: Scene):
    """A settled object is not asked about again, so that its warnings would be lost with the plan that wrote it."""
    definition = scene.definition()
    definition["spec"]["versions"][0] |= {"deprecated": True, "deprecationWarning": "Widgets go away"}
    bundle = [definition, scene.widget()]
    written = {str(one.ref): one.warnings for one in scene.deploy(*bundle) if one.warnings}
    assert list(written.values()) == [("Widgets go away",)]
    planned = scene.plan(*bundle, previous=content(bundle), warned=written)
    assert (action_of(planned, bundle[1]).action, action_of(planned, bundle[1]).warnings) == (
        Action.NONE,
        ("Widgets go away",),
    )
    outcomes = scene.apply(planned, *bundle)
    assert {str(one.ref): one.warnings for one in outcomes if one.warnings} == written
