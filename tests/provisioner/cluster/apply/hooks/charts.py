"""Hooks on a cluster for the tests of this folder: a chart with the record of its runs, and workers that die."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from provisioner.cluster.apply.run import Terms, apply
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.inventory import MemoryHookRuns, uids
from provisioner.cluster.plan.content_plan import plan
from provisioner.cluster.plan.inputs import Options
from provisioner.values import Content, Hook, HookMoment, Manifest, ObjectOutcome, ObjectRef, Plan
from tests.support.kubernetes.live import wait_until
from tests.support.patience import scaled
from tests.support.provisioner.cluster_scene import MANAGER, Scene, content

BEFORE, AFTER = HookMoment.BEFORE, HookMoment.AFTER


def hook(obj: dict[str, Any], *moments: HookMoment, weight: int = 0, is_cleared: bool = False) -> Manifest:
    return Manifest(obj, hook=Hook.at(moments or (BEFORE,), weight=weight, is_cleared=is_cleared))


class Chart:
    """A content with hooks on one cluster, and the record of their runs."""

    def __init__(self, scene: Scene, runs: MemoryHookRuns | None = None):
        self.scene, self.runs = scene, runs or MemoryHookRuns()

    def content(self, hooks: list[Manifest], objects: tuple[dict[str, Any], ...]) -> Content:
        return replace(content(objects), hooks=tuple(hooks)).with_hooks(frozenset(HookMoment))

    def plan(self, hooks: list[Manifest], *objects: dict[str, Any], **options: Any) -> Plan:
        runs = {identity: replace(one, is_current=False) for identity, one in self.runs.items().items()}
        return plan(
            self.scene.cluster,
            self.content(hooks, objects),
            inventory=uids(self.scene.inventory.items().values()),
            previous=None,
            field_manager=MANAGER,
            options=Options(hooks=runs, **options),
        )

    def apply(
        self, planned: Plan, hooks: list[Manifest], *objects: dict[str, Any], **terms: Any
    ) -> list[ObjectOutcome]:
        agreed = Terms(MANAGER, **{"timeout_seconds": scaled(120.0), "runs": self.runs, **terms})
        return list(apply(self.scene.cluster, self.content(hooks, objects), planned, self.scene.inventory, agreed))

    def deploy(self, hooks: list[Manifest], *objects: dict[str, Any], **terms: Any) -> list[ObjectOutcome]:
        """As a request of its own: the runs so far are those of earlier ones."""
        planned = self.plan(hooks, *objects)
        self.begin_request()
        return self.apply(planned, hooks, *objects, **terms)

    def begin_request(self) -> None:
        self.runs.end_request()


def uid_of(cluster: ClusterClient, obj: dict[str, Any]) -> str:
    live = cluster.get(ObjectRef.of(obj))
    return str(live["metadata"]["uid"]) if live else ""


def named(outcomes: list[ObjectOutcome]) -> list[str]:
    return [one.ref.name for one in outcomes]


def pod(scene: Scene, name: str = "check") -> dict[str, Any]:
    """One that no node takes, so that it ends when a test says so."""
    container = {"name": "main", "image": "example.com/check:1"}
    spec = {"restartPolicy": "Never", "nodeSelector": {"example.com/none": "here"}, "containers": [container]}
    return scene.namespaced("v1", "Pod", name, spec=spec)


def end(scene: Scene, phase: str, name: str = "check") -> None:
    """As a kubelet would say it."""
    wait_until(lambda: scene.live(pod(scene, name)), "the pod is there")
    about = {key: pod(scene, name)[key] for key in ("apiVersion", "kind", "metadata")}
    told = {"status": {"phase": phase, "message": "it gave up"}}
    scene.cluster.apply({**about, **told}, field_manager="kubelet", subresource="status", force=True)


def meanwhile(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def fleeting(scene: Scene, name: str = "migrate") -> dict[str, Any]:
    """On Kubernetes a controller deletes it as soon as it has ended."""
    job = scene.job(name)
    job["spec"]["ttlSecondsAfterFinished"] = 0
    return job


class Died(Exception):
    """What ends a worker in the middle."""


class MortalRuns(MemoryHookRuns):
    """Dies at the `at`th thing to record, before it is or after."""

    def __init__(self, at: int, *, is_after: bool):
        super().__init__()
        self.at, self.is_after, self.calls = at, is_after, 0
        self.made: list[str] = []

    def begin(self, ref: ObjectRef, moment: HookMoment, nonce: str) -> None:
        self._do(lambda: MemoryHookRuns.begin(self, ref, moment, nonce))

    def confirm(self, ref: ObjectRef, nonce: str, uid: str) -> None:
        self.made.append(uid)
        self._do(lambda: MemoryHookRuns.confirm(self, ref, nonce, uid))

    def succeed(self, ref: ObjectRef, nonce: str) -> None:
        self._do(lambda: MemoryHookRuns.succeed(self, ref, nonce))

    def _do(self, write: Callable[[], None]) -> None:
        self.calls += 1
        if self.calls != self.at:
            write()
            return
        if self.is_after:
            write()
        raise Died
