"""How a hook ended is known also where it is gone before anybody looks again."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.client.answers import Watch
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import uid_of, version_of
from provisioner.cluster.health.completion import until_completed
from provisioner.errors import Expired
from provisioner.values import Identity, ObjectRef, Why
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import Scene


def _nothing() -> None:
    return None


class Pod:
    """One that no node takes: it ends as a test says, and goes while nobody looks."""

    def __init__(self, scene: Scene):
        container = {"name": "main", "image": "example.com/check:1"}
        spec = {"restartPolicy": "Never", "nodeSelector": {"example.com/none": "here"}, "containers": [container]}
        self.scene, self.body = scene, scene.namespaced("v1", "Pod", "check", spec=spec)
        self.ref = ObjectRef.of(self.body)
        made = scene.cluster.create(self.body)
        self.uid, self.version = uid_of(made), version_of(made)
        self.looks = 0

    def say(self, phase: str) -> None:
        about = {key: self.body[key] for key in ("apiVersion", "kind", "metadata")}
        told = {"status": {"phase": phase, "message": "it gave up"}}
        self.scene.cluster.apply({**about, **told}, field_manager="kubelet", subresource="status", force=True)

    def goes(self, phase: str, *, is_followed: bool = False) -> Why:
        """What is told of it where it is in this phase and deleted between the first look and the second."""

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


@pytest.mark.parametrize("is_followed", [False, True], ids=["gone", "another one has its name"])
def test_one_that_succeeded_and_went_has_succeeded(scene: Scene, is_followed: bool) -> None:
    assert Pod(scene).goes("Succeeded", is_followed=is_followed) == Why()


def test_one_that_went_before_the_first_look_is_known_since_its_write(scene: Scene) -> None:
    pod = Pod(scene)
    pod.say("Succeeded")
    scene.cluster.delete(pod.ref, uid=pod.uid)
    known, unknown = (
        until_completed(scene.cluster, pod.ref, pod.uid, version=one, timeout_seconds=60, while_waiting=_nothing)
        for one in (pod.version, "")
    )
    assert (known, "nobody can tell" in unknown.words) == (Why(), True)


def test_one_that_failed_and_went_has_failed(scene: Scene) -> None:
    why = Pod(scene).goes("Failed")
    assert why.words == f"Pod {scene.namespace}/check failed"
    assert "it gave up" in why.server_words


@pytest.mark.parametrize(
    ("is_followed", "words"),
    [(False, "so nobody can tell what came of it"), (True, "and another one has its name")],
    ids=["gone", "another one has its name"],
)
def test_one_that_went_before_it_had_ended_has_not_succeeded(scene: Scene, is_followed: bool, words: str) -> None:
    why = Pod(scene).goes("", is_followed=is_followed)
    assert why.words == f"Pod {scene.namespace}/check was deleted before it was seen to end, {words}"


@pytest.mark.parametrize("verbs", [["get", "watch"], ["get"]], ids=["may watch it", "may not"])
def test_the_right_to_watch_it_by_its_name_is_needed_and_enough(scene: Scene, verbs: list[str]) -> None:
    pod, who = Pod(scene), Identity("looker")
    rbac = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["check"], "verbs": verbs}
    role = scene.namespaced(f"{rbac}/v1", "Role", "looker", rules=[rule])
    subjects = [{"kind": "User", "name": "looker", "apiGroup": rbac}]
    refers = {"kind": "Role", "name": "looker", "apiGroup": rbac}
    for one in (role, scene.namespaced(f"{rbac}/v1", "RoleBinding", "looker", subjects=subjects, roleRef=refers)):
        scene.cluster.create(one)
    scene.until_may(who, "get", "pods", name="check")
    pod.say("Succeeded")
    scene.cluster.delete(pod.ref, uid=pod.uid)
    why = until_completed(
        scene.cluster.acting_as(who), pod.ref, pod.uid, version=pod.version, timeout_seconds=60, while_waiting=_nothing
    )
    assert ("watch" in why.server_words) is bool(why.words) is ("watch" not in verbs)


def test_where_the_server_no_longer_tells_nobody_says_that_it_succeeded(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def watch(*_: Any, **__: Any) -> Watch:
        raise Expired("too old resource version", status=410)

    monkeypatch.setattr(ClusterClient, "watch", watch)
    assert "so nobody can tell what came of it" in Pod(scene).goes("Succeeded").words
