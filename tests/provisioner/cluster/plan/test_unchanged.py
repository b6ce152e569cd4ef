"""That nothing would change is told without asking only where asking would say the same."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from provisioner.cluster.bulk_read import WORTH_A_LIST, read_many
from provisioner.cluster.compare import cleaned
from provisioner.cluster.plan.known import body_of
from provisioner.cluster.plan.unchanged import is_applied
from provisioner.cluster.tracking import NONCE, Tracking
from provisioner.values import Action, Identity, Manifest, ObjectRef
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.provisioner.cluster_scene import MANAGER, Scene, a_bundle, action_of, actions, content, failures
from tests.support.provisioner.flaky import flaky

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
    monkeypatch.setattr("provisioner.cluster.bulk_read.MAX_STRANGERS", 2)
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
