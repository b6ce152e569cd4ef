"""Waiting for objects, by watching."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from provisioner.cluster.health.reasons import failing_pods
from provisioner.cluster.health.watch import until_completed, until_gone, until_settled
from provisioner.errors import UnknownKind
from provisioner.json_values import uid_of
from provisioner.values import HealthState, Identity, ObjectRef, Why
from tests.support.kubernetes.live import PATIENCE_SECONDS, wait_until
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import Scene


def test_what_is_current_already_is_settled_at_once(scene: Scene):
    scene.deploy(obj := scene.config_map())
    found = until_settled(scene.cluster, [ObjectRef.of(obj)], timeout_seconds=scaled(PATIENCE_SECONDS))
    assert [health.state for health in found.values()] == [HealthState.CURRENT]


def test_a_deployment_becomes_current_and_each_change_is_told(scene: Scene):
    scene.deploy(obj := scene.deployment())
    told: list[HealthState] = []
    found = until_settled(
        scene.cluster,
        [ObjectRef.of(obj)],
        timeout_seconds=scaled(60),
        on_change=lambda _, health: told.append(health.state),
    )
    assert found[ObjectRef.of(obj)].state is HealthState.CURRENT
    assert told[-1] is HealthState.CURRENT


def test_the_deadline_ends_the_wait_with_what_was_seen_last(scene: Scene):
    missing = ObjectRef.of(scene.config_map("never"))
    # It never comes: that there is an answer is the deadline's.
    found = until_settled(scene.cluster, [missing], timeout_seconds=0.5)
    assert found[missing].state is HealthState.NOT_FOUND


def test_an_object_that_comes_later_is_seen(scene: Scene):
    obj = scene.config_map("late")
    threading.Timer(0.3, scene.cluster.create, [obj]).start()
    found = until_settled(scene.cluster, [ObjectRef.of(obj)], timeout_seconds=scaled(PATIENCE_SECONDS))
    assert found[ObjectRef.of(obj)].state is HealthState.CURRENT


def test_an_identity_that_may_not_watch_still_learns_what_it_may_get(scene: Scene):
    rbac = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
    subject = {"kind": "User", "name": "getter", "apiGroup": rbac}
    scene.deploy(
        obj := scene.config_map(),
        scene.namespaced(f"{rbac}/v1", "Role", "getter", rules=rules),
        scene.namespaced(
            f"{rbac}/v1",
            "RoleBinding",
            "getter",
            roleRef={"kind": "Role", "name": "getter", "apiGroup": rbac},
            subjects=[subject],
        ),
    )
    scene.until_may(Identity("getter"), "get", "configmaps")
    getter = scene.cluster.acting_as(Identity("getter"))
    found = until_settled(getter, [ObjectRef.of(obj)], timeout_seconds=scaled(PATIENCE_SECONDS))
    assert found[ObjectRef.of(obj)].state is HealthState.CURRENT


def test_a_kind_that_nobody_serves_cannot_be_waited_for(scene: Scene):
    with pytest.raises(UnknownKind):
        until_settled(scene.cluster, [ObjectRef.of(scene.widget())], timeout_seconds=1)


def test_nothing_to_wait_for_is_settled(kubernetes_api):
    assert until_settled(kubernetes_api, [], timeout_seconds=1) == {}


def test_what_a_finalizer_holds_is_named(scene: Scene):
    obj = scene.config_map()
    obj["metadata"]["finalizers"] = ["example.com/hold"]
    created = scene.cluster.create(obj)
    ref, uid = ObjectRef.of(obj), created["metadata"]["uid"]
    scene.cluster.delete(ref, uid=uid)
    left = until_gone(scene.cluster, {ref: uid}, timeout_seconds=0.5)
    assert "waits for its finalizers" in left[ref].words
    assert "example.com/hold" in left[ref].server_words
    scene.cluster.replace({**scene.live(obj), "metadata": {**scene.live(obj)["metadata"], "finalizers": []}})
    assert until_gone(scene.cluster, {ref: uid}, timeout_seconds=scaled(PATIENCE_SECONDS)) == {}


def test_why_pods_fail_is_said_in_words(scene: Scene):
    workload = scene.deployment(replicas=0)
    scene.deploy(workload)
    pod = scene.namespaced("v1", "Pod", "web-1", spec=workload["spec"]["template"]["spec"])
    pod["metadata"]["labels"] = {"app": "web"}
    pod["spec"] = {**pod["spec"], "nodeName": "no-such-node"}
    account = ObjectRef("", "v1", "ServiceAccount", scene.namespace, "default")
    wait_until(lambda: scene.cluster.get(account) is not None, "the account of the namespace's pods")
    made = scene.cluster.create(pod)
    stuck = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    status = {
        "phase": "Pending",
        "containerStatuses": [
            {"name": "main", "state": stuck, "ready": False, "restartCount": 0, "image": "", "imageID": ""}
        ],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1", "namespace": scene.namespace}}
    scene.cluster.apply({**body, "status": status}, field_manager="kubelet", subresource="status")
    assert made["metadata"]["name"] == "web-1"
    assert failing_pods(scene.cluster, workload) == ["pod web-1: container main: ImagePullBackOff: no such image"]


class Pod:
    """One that no node takes: it ends as a test says, and goes while nobody looks."""

    def __init__(self, scene: Scene):
        container = {"name": "main", "image": "example.com/check:1"}
        spec = {"restartPolicy": "Never", "nodeSelector": {"example.com/none": "here"}, "containers": [container]}
        self.scene, self.body = scene, scene.namespaced("v1", "Pod", "check", spec=spec)
        self.ref = ObjectRef.of(self.body)
        self.uid = uid_of(scene.cluster.create(self.body))
        self.looks = 0

    def say(self, phase: str) -> None:
        about = {key: self.body[key] for key in ("apiVersion", "kind", "metadata")}
        told = {"status": {"phase": phase, "message": "it gave up"}}
        self.scene.cluster.apply({**about, **told}, field_manager="kubelet", subresource="status", force=True)

    def goes(self, phase: str, *, is_followed: bool = False) -> Why:
        """What is told of it where it comes to this phase and is deleted between the first look and the second."""

        def meanwhile() -> None:
            self.looks += 1
            assert self.looks == 1, "it is gone at the second look"
            if phase:
                self.say(phase)
            self.scene.cluster.delete(self.ref, uid=self.uid)
            if is_followed:
                self.scene.cluster.create(self.body)

        wait: Any = scaled(60)
        return until_completed(self.scene.cluster, self.ref, self.uid, timeout_seconds=wait, while_waiting=meanwhile)


@pytest.mark.parametrize("phase", ["", "Succeeded", "Failed"])
@pytest.mark.parametrize(
    ("is_followed", "words"),
    [(False, "so nobody can tell what came of it"), (True, "and another one has its name")],
    ids=["gone", "another one has its name"],
)
def test_one_that_went_before_it_was_seen_to_end_has_not_succeeded(
    scene: Scene, is_followed: bool, words: str, phase: str
) -> None:
    why = Pod(scene).goes(phase, is_followed=is_followed)
    assert why.words == f"Pod {scene.namespace}/check was deleted before it was seen to end, {words}"
