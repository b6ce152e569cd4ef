"""What later phases wait for, how long, and who may end it."""

from __future__ import annotations

import threading
import time

import pytest

from provisioner.cluster.apply.waits import MAX_WATCHES
from provisioner.cluster.health.reasons import failing_pods
from provisioner.cluster.order import DEPENDS_ON
from provisioner.errors import PreconditionFailed
from provisioner.health_checks import health_checks
from provisioner.values import OutcomeState
from tests.support.patience import scaled, wait_for
from tests.support.provisioner.cluster_scene import Scene, failures, states

DONE, SKIPPED = OutcomeState.DONE, OutcomeState.SKIPPED


@pytest.mark.proof
def test_a_deployment_becomes_available_before_admission_is_switched_on(scene: Scene):
    """The webhook points at a service without endpoints; only the order is of interest."""
    hook = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": f"{scene.namespace}.example.com"},
        "webhooks": [
            {
                "name": f"{scene.namespace}.example.com",
                "clientConfig": {"service": {"name": "web", "namespace": scene.namespace}},
                "rules": [
                    {"apiGroups": [scene.group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["*"]}
                ],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
    outcomes = scene.deploy(hook, scene.deployment())
    assert failures(outcomes) == []
    assert [one.ref.kind for one in outcomes] == ["Deployment", "ValidatingWebhookConfiguration"]
    assert scene.live(scene.deployment())["status"]["availableReplicas"] == 1


@pytest.mark.parametrize("watches", [MAX_WATCHES, 0], ids=["a watch", "too many places to watch"])
def test_what_stands_on_a_workload_comes_when_that_is_available(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, watches: int
):
    monkeypatch.setattr("provisioner.cluster.apply.waits.MAX_WATCHES", watches)
    outcomes = scene.deploy(scene.autoscaler(), scene.deployment(), scene.service())
    assert failures(outcomes) == []
    assert [one.ref.kind for one in outcomes] == ["Service", "Deployment", "HorizontalPodAutoscaler"]
    available = scene.live(scene.deployment())["status"]["conditions"][0]["lastTransitionTime"]
    assert available <= scene.live(scene.autoscaler())["metadata"]["creationTimestamp"]


def test_on_a_workload_that_does_not_start_nothing_is_built(real_scene: Scene):
    scene = real_scene  # the sandbox has a node for every pod
    web = scene.deployment()
    web["spec"]["template"]["spec"]["nodeSelector"] = {"harbour": "none-such"}

    def until_scheduled_in_vain(_: object) -> None:
        wait_for(
            lambda: failing_pods(scene.cluster, scene.live(web) or {}),
            "the scheduler's words",
            is_so=lambda words: "nodes" in " ".join(words),
        )

    outcomes = scene.deploy(web, scene.autoscaler(), wait_seconds=1.0, before_wait=until_scheduled_in_vain)
    assert states(outcomes) == {"Deployment/web": DONE, "HorizontalPodAutoscaler/web": SKIPPED}
    assert "phase deploy: Deployment.apps" in outcomes[-1].message
    assert "nodes" in outcomes[-1].server_words
    assert scene.live(scene.autoscaler()) is None


READY = health_checks(
    {
        "healthChecks": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "name": "gate",
                "fieldValue": {"path": "data.open", "value": "yes"},
            }
        ]
    }
)
BY_CEL = health_checks(
    {"healthChecks": [{"apiVersion": "v1", "kind": "ConfigMap", "cel": {"current": "data.open == 'yes'"}}]}
)


@pytest.mark.parametrize("checks", [READY, BY_CEL], ids=["field", "CEL"])
def test_what_a_check_of_the_deployment_says_holds_later_phases(scene: Scene, checks):
    """OLM v1's custom probes: whatever the phase, nothing later is written before the check holds."""
    outcomes = scene.deploy(scene.config_map("gate", open="no"), scene.service(), wait_seconds=0.3, checks=checks)
    assert states(outcomes) == {"ConfigMap/gate": DONE, "Service/web": SKIPPED}
    assert "phase configuration: " in outcomes[-1].message
    assert "ConfigMap" in outcomes[-1].message


@pytest.mark.parametrize("checks", [READY, ()], ids=["a check", "a workload"])
def test_whoever_applies_may_end_a_wait(real_scene: Scene, checks):
    scene = real_scene  # the sandbox has a node for every pod
    web = scene.deployment()
    web["spec"]["template"]["spec"]["nodeSelector"] = {"harbour": "none-such"}
    waiting = (scene.config_map("gate", open="no"), web) if checks else (web,)

    def pause() -> None:
        raise PreconditionFailed("paused")

    began = time.monotonic()
    with pytest.raises(PreconditionFailed, match="^paused$"):
        scene.deploy(*waiting, scene.autoscaler(), timeout_seconds=3600.0, checks=checks, while_waiting=pause)
    assert time.monotonic() - began < scaled(60.0)
    assert scene.live(scene.autoscaler()) is None


def test_a_deletion_that_takes_long_may_be_ended_too(scene: Scene):
    held = scene.config_map("held")
    assert failures(scene.deploy(held, scene.config_map("stays"))) == []
    live = scene.live(held)
    scene.cluster.replace({**live, "metadata": {**live["metadata"], "finalizers": ["example.com/hold"]}})

    def pause() -> None:
        raise PreconditionFailed("paused")

    try:
        with pytest.raises(PreconditionFailed, match="^paused$"):
            scene.deploy(scene.config_map("stays"), while_waiting=pause)
    finally:
        live = scene.live(held)
        scene.cluster.replace({**live, "metadata": {**live["metadata"], "finalizers": []}})


def test_a_phase_goes_on_once_a_check_holds(scene: Scene, kubernetes_api):
    gate = scene.config_map("gate", open="no")

    def open_it() -> None:
        kubernetes_api.replace({**scene.live(gate), "data": {"open": "yes"}})

    timer = threading.Timer(0.3, open_it)
    outcomes = scene.deploy(gate, scene.service(), checks=READY, before_wait=lambda _: timer.start())
    timer.join()
    assert failures(outcomes) == []
    assert scene.live(scene.service()) is not None


def test_what_held_an_apply_holds_the_next_one_of_the_same_too(scene: Scene):
    wished = scene.config_map("gate", open="no"), scene.service()
    for _ in range(2):
        assert scene.deploy(*wished, wait_seconds=0.3, checks=READY)[-1].state is SKIPPED
    assert scene.live(scene.service()) is None


def test_the_worst_is_named(real_scene: Scene):
    scene = real_scene  # the sandbox binds every claim
    checks = health_checks(
        {
            "healthChecks": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "aaa", "cel": {"current": "data.open == 'yes'"}},
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": "zzz",
                    "cel": {"failed": "data.open == 'no'", "current": "data.open == 'yes'"},
                },
            ]
        }
    )
    gates = [scene.config_map(name, open="no") for name in ("aaa", "zzz")]
    began = time.monotonic()
    outcomes = scene.deploy(*gates, scene.service(), timeout_seconds=3600.0, checks=checks)
    assert "/zzz is Failed" in outcomes[-1].message
    assert time.monotonic() - began < scaled(60.0)


def test_what_is_paused_is_not_waited_for(scene: Scene):
    web = scene.deployment()
    web["spec"]["paused"] = True
    assert failures(scene.deploy(web, scene.autoscaler())) == []


def test_a_check_of_what_comes_last_holds_nothing(scene: Scene):
    outcomes = scene.deploy(scene.config_map("gate", open="no"), wait_seconds=0.3, checks=READY)
    assert failures(outcomes) == []


def test_an_object_waits_until_what_it_names_works(scene: Scene):
    after = scene.config_map("after")
    after["metadata"]["annotations"] = {DEPENDS_ON: f"apps/namespaces/{scene.namespace}/Deployment/web"}
    outcomes = scene.deploy(after, scene.config_map("before"), scene.deployment())
    assert failures(outcomes) == []
    assert [one.ref.name for one in outcomes] == ["before", "web", "after"]
    written = scene.live(after)["metadata"]["managedFields"][0]["time"]
    assert scene.live(scene.deployment())["status"]["conditions"][0]["lastTransitionTime"] <= written


def test_an_object_is_not_tried_while_what_it_names_does_not_work(real_scene: Scene):
    scene = real_scene  # the sandbox binds every claim
    claim = scene.namespaced("v1", "PersistentVolumeClaim", "data")
    storage = {"requests": {"storage": "1Gi"}}
    claim["spec"] = {"accessModes": ["ReadWriteOnce"], "resources": storage, "storageClassName": "none-such"}
    after = scene.config_map("after")
    after["metadata"]["annotations"] = {DEPENDS_ON: f"/namespaces/{scene.namespace}/PersistentVolumeClaim/data"}
    outcomes = scene.deploy(after, claim, wait_seconds=1.0)
    assert states(outcomes) == {"PersistentVolumeClaim/data": DONE, "ConfigMap/after": SKIPPED}
    assert "PersistentVolumeClaim" in outcomes[-1].message
    assert scene.live(after) is None
