"""Objects that the API server refuses only as long as something is missing which the bundle brings itself."""

from __future__ import annotations

from typing import Any

from provisioner.errors import Forbidden, InvalidObject
from provisioner.values import Action, ObjectRef
from tests.support.provisioner.cluster_scene import Scene, action_of, failures


def pod(scene: Scene, **spec: Any) -> dict[str, Any]:
    return scene.namespaced("v1", "Pod", "one", spec={"containers": [{"name": "main", "image": "x:1"}], **spec})


def cluster_scoped(scene: Scene, api_version: str, kind: str, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": scene.namespace}, **rest}


def test_a_pod_comes_with_its_account_and_its_classes(real_scene: Scene) -> None:
    scene = real_scene
    account = scene.namespaced("v1", "ServiceAccount", "runner")
    priority = cluster_scoped(scene, "scheduling.k8s.io/v1", "PriorityClass", value=10)
    runtime = cluster_scoped(scene, "node.k8s.io/v1", "RuntimeClass", handler="other")
    one = pod(scene, serviceAccountName="runner", priorityClassName=scene.namespace, runtimeClassName=scene.namespace)
    bundle = (one, account, priority, runtime)
    planned = scene.plan(*bundle)
    action = action_of(planned, one)
    assert (action.action, action.problem, action.is_proved) == (Action.CREATE, "", False)
    assert failures(scene.apply(planned, *bundle)) == []
    assert scene.live(one)


def test_an_account_that_does_not_come_along_is_a_problem(real_scene: Scene) -> None:
    one = pod(real_scene, serviceAccountName="runner")
    other = real_scene.namespaced("v1", "ServiceAccount", "walker")
    assert action_of(real_scene.plan(one, other), one).problem_code == Forbidden.code


def test_another_refusal_of_such_a_pod_is_a_problem(real_scene: Scene) -> None:
    account = real_scene.namespaced("v1", "ServiceAccount", "runner")
    real_scene.deploy(account)
    one = pod(real_scene, serviceAccountName="runner", priorityClassName="nobody-made-this")
    assert "nobody-made-this" in action_of(real_scene.plan(one, account), one).server_words


def test_a_pod_whose_fields_cannot_change_is_replaced(real_scene: Scene) -> None:
    account = real_scene.namespaced("v1", "ServiceAccount", "runner")
    one, changed = (pod(real_scene, serviceAccountName="runner", hostname=name) for name in ("a", "b"))
    assert failures(real_scene.deploy(account, one)) == []
    planned = real_scene.plan(account, changed)
    assert action_of(planned, changed).action is Action.REPLACE
    assert failures(real_scene.apply(planned, account, changed)) == []


def test_a_priority_class_with_another_value_is_replaced(real_scene: Scene) -> None:
    one, changed = (
        cluster_scoped(real_scene, "scheduling.k8s.io/v1", "PriorityClass", value=value) for value in (10, 11)
    )
    real_scene.deploy(one)
    planned = real_scene.plan(changed)
    assert action_of(planned, changed).action is Action.REPLACE
    assert failures(real_scene.apply(planned, changed)) == []


def test_annotations_that_leave_no_room_for_our_own_are_a_problem_before_anything_is_touched(real_scene: Scene) -> None:
    full = real_scene.config_map("full")
    full["metadata"]["annotations"] = {"a": "x" * (256 * 1024 - len("a"))}
    action = action_of(real_scene.plan(real_scene.config_map("before"), full), full)
    assert (action.problem_code, "annotations" in action.server_words) == (InvalidObject.code, True)


def test_an_object_too_large_to_be_stored_is_not_tried_until_the_deadline(real_scene: Scene) -> None:
    definition = real_scene.definition()
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    huge = real_scene.widget()
    huge["spec"] = {"text": "x" * 1_600_000}
    found = real_scene.deploy(definition, huge)
    (outcome,) = [one for one in found if one.ref == ObjectRef.of(huge)]
    assert "too large" in outcome.server_words
