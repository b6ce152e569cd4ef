"""What runs to an end and is gone before anybody saw how it ended has not succeeded, as far as anybody can tell."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.compare import uid_of
from provisioner.cluster.health.completion import until_completed
from provisioner.values import ObjectRef, Why
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import Scene


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
