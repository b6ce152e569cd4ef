"""The health of each kind after the rules of kstatus, besides the rows of its own test (test_kstatus_rows.py)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from provisioner.cluster.health.kstatus import health_of, words_of_pod
from provisioner.values import HealthState

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CURRENT, PROGRESS, FAILED = HealthState.CURRENT, HealthState.IN_PROGRESS, HealthState.FAILED


def obj(api_version: str, kind: str, status: dict[str, Any] | None = None, *, generation: int = 1, **spec: Any) -> Any:
    meta = {"name": "x", "namespace": "y", "generation": generation}
    found = {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}
    return found if status is None else found | {"status": status}


def condition(word: str, status: str, reason: str = "Because", message: str = "", **rest: str) -> dict[str, str]:
    return {"type": word, "status": status, "reason": reason, "message": message, **rest}


def pod(phase: str = "", *conditions: dict[str, str], containers: list[Any] | None = None) -> Any:
    status: dict[str, Any] = {"conditions": list(conditions)}
    if phase:
        status["phase"] = phase
    return obj("v1", "Pod", status | ({"containerStatuses": containers} if containers else {}))


def unscheduled(seconds: int) -> dict[str, str]:
    since = (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    return condition("PodScheduled", "False", "Unschedulable", "no node", lastTransitionTime=since)


def waiting(reason: str) -> list[Any]:
    return [{"name": "main", "state": {"waiting": {"reason": reason, "message": "words"}}}]


READY, UNREADY = condition("Ready", "True"), condition("Ready", "False")
AVAILABLE = condition("Available", "True")
PROGRESSING = condition("Progressing", "True", "NewReplicaSetAvailable")
ALL = {"observedGeneration": 1, "replicas": 4, "updatedReplicas": 4, "readyReplicas": 4, "availableReplicas": 4}
STATEFUL = {"observedGeneration": 1, "replicas": 4, "readyReplicas": 4, "currentReplicas": 4, "updatedReplicas": 4}
STATEFUL |= {"currentRevision": "a", "updateRevision": "a"}
DAEMON = {
    "observedGeneration": 1,
    "desiredNumberScheduled": 4,
    "currentNumberScheduled": 4,
    "updatedNumberScheduled": 4,
    "numberAvailable": 4,
    "numberReady": 4,
}
SET = {"observedGeneration": 1, "replicas": 4, "readyReplicas": 4, "availableReplicas": 4, "fullyLabeledReplicas": 4}


def deployment(*conditions: Any, limited: bool = False, **status: Any) -> Any:
    spec = {"replicas": 4} | ({"progressDeadlineSeconds": 600} if limited else {})
    return obj("apps/v1", "Deployment", ALL | status | {"conditions": list(conditions)}, **spec)


def stateful(strategy: dict[str, Any] | None = None, **status: Any) -> Any:
    return obj("apps/v1", "StatefulSet", STATEFUL | status, replicas=4, updateStrategy=strategy or {})


def daemon(**status: Any) -> Any:
    return obj("apps/v1", "DaemonSet", DAEMON | status)


def replica_set(*conditions: Any, replicas: int = 4, **status: Any) -> Any:
    return obj("apps/v1", "ReplicaSet", SET | status | {"conditions": list(conditions)}, replicas=replicas)


def definition(*conditions: Any) -> Any:
    return obj("apiextensions.k8s.io/v1", "CustomResourceDefinition", {"conditions": list(conditions)})


def custom(*conditions: Any, generation: int = 1, **status: Any) -> Any:
    return obj("example.com/v1", "Widget", {**status, "conditions": list(conditions)}, generation=generation)


def api_service(status: str, reason: str) -> Any:
    return obj("apiregistration.k8s.io/v1", "APIService", {"conditions": [condition("Available", status, reason)]})


UNLIMITED = ALL | {"conditions": [AVAILABLE]}


def terminating() -> Any:
    found = deployment(AVAILABLE)
    found["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    return found


ROWS = {
    "podNotReady": (pod("Running", UNREADY), PROGRESS),
    "podBadPhase": (pod("Elsewhere"), HealthState.UNKNOWN),
    "podPending": (pod("Pending"), PROGRESS),
    "podBeingScheduled": (pod("Pending", unscheduled(3)), PROGRESS),
    "podUnschedulable": (pod("Pending", unscheduled(60)), FAILED),
    "podCrashLooping": (pod("Running", UNREADY, containers=waiting("CrashLoopBackOff")), FAILED),
    "podImagePullBackOff": (pod("Pending", containers=waiting("ImagePullBackOff")), PROGRESS),
    "pvcPending": (obj("v1", "PersistentVolumeClaim", {"phase": "Pending"}), PROGRESS),
    "pvcLost": (obj("v1", "PersistentVolumeClaim", {"phase": "Lost"}), FAILED),
    "stsOnDelete": (stateful({"type": "OnDelete"}, readyReplicas=0), CURRENT),
    "stsLessReplicas": (stateful(replicas=2), PROGRESS),
    "stsPartitionOK": (stateful({"rollingUpdate": {"partition": 2}}, updatedReplicas=2, currentReplicas=2), CURRENT),
    "stsPartitionLess": (stateful({"rollingUpdate": {"partition": 2}}, updatedReplicas=1), PROGRESS),
    "stsOtherRevision": (stateful(updateRevision="b"), PROGRESS),
    "stsNotObserved": (stateful(observedGeneration=0), PROGRESS),
    "dsLessScheduled": (daemon(currentNumberScheduled=2), PROGRESS),
    "dsLessUpdated": (daemon(updatedNumberScheduled=2), PROGRESS),
    "dsNoNodes": (daemon(**dict.fromkeys(set(DAEMON) - {"observedGeneration"}, 0)), CURRENT),
    "depOKWithDeadline": (deployment(AVAILABLE, PROGRESSING, limited=True), CURRENT),
    "depNoProgressReported": (deployment(AVAILABLE, limited=True), PROGRESS),
    "depProgressDeadline": (deployment(condition("Progressing", "False", "ProgressDeadlineExceeded")), FAILED),
    "depNotObserved": (deployment(AVAILABLE, observedGeneration=0), PROGRESS),
    "depLessReplicas": (deployment(AVAILABLE, replicas=2), PROGRESS),
    "depLessUpdated": (deployment(AVAILABLE, updatedReplicas=2), PROGRESS),
    "depLessAvailable": (deployment(AVAILABLE, availableReplicas=2), PROGRESS),
    "depLessReady": (deployment(AVAILABLE, readyReplicas=2), PROGRESS),
    "depOldReplicas": (deployment(AVAILABLE, replicas=5), PROGRESS),
    "rcAvailable": ({**replica_set(), "apiVersion": "v1", "kind": "ReplicationController"}, CURRENT),
    "rcUnavailable": (
        {**replica_set(availableReplicas=2), "apiVersion": "v1", "kind": "ReplicationController"},
        PROGRESS,
    ),
    "rsLessLabelled": (replica_set(fullyLabeledReplicas=2), PROGRESS),
    "rsExtraPods": (replica_set(replicas=2), PROGRESS),
    "jobSuspended": (obj("batch/v1", "Job", {}, suspend=True), CURRENT),
    "configMap": (obj("v1", "ConfigMap"), CURRENT),
    "secret": (obj("v1", "Secret"), CURRENT),
    "namespaceActive": (obj("v1", "Namespace", {"phase": "Active"}), CURRENT),
    "namespaceNew": (obj("v1", "Namespace"), PROGRESS),
    "apiServiceAvailable": (obj("apiregistration.k8s.io/v1", "APIService", {"conditions": [AVAILABLE]}), CURRENT),
    "apiServiceNew": (obj("apiregistration.k8s.io/v1", "APIService"), PROGRESS),
    "crdNotEstablished": (definition(condition("Established", "False", "Broken")), FAILED),
    "crReadyUnknown": (custom(condition("Ready", "Unknown")), PROGRESS),
    "crReconciling": (custom(READY, condition("Reconciling", "True")), PROGRESS),
    "crStalled": (custom(READY, condition("Stalled", "True")), FAILED),
    "crNotStalled": (custom(READY, condition("Stalled", "False")), CURRENT),
    "crConditionsOfAnotherForm": (obj("example.com/v1", "Widget", {"conditions": {"Ready": "no"}}), CURRENT),
    "crStatusOfAnotherForm": (obj("example.com/v1", "Widget") | {"status": "fine"}, CURRENT),
    "depUpdating": (deployment(AVAILABLE, condition("Progressing", "True", "Updated"), limited=True), PROGRESS),
    "depNoDeadline": (obj("apps/v1", "Deployment", UNLIMITED, replicas=4, progressDeadlineSeconds=2**31 - 1), CURRENT),
    "podUnschedulableWithoutTimes": (pod("Pending", condition("PodScheduled", "False", "Unschedulable")), FAILED),
    "ingressNoAddress": (obj("networking.k8s.io/v1", "Ingress", {"loadBalancer": {}}), CURRENT),
    "ingressOK": (
        obj("networking.k8s.io/v1", "Ingress", {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}),
        CURRENT,
    ),
    "networkPolicy": (obj("networking.k8s.io/v1", "NetworkPolicy"), CURRENT),
    "apiServiceUnavailable": (api_service("False", "MissingEndpoints"), PROGRESS),
    "terminating": (terminating(), HealthState.TERMINATING),
    "gone": (None, HealthState.NOT_FOUND),
}


@pytest.mark.parametrize(("live", "state"), ROWS.values(), ids=ROWS)
def test_health_of(live, state):
    assert health_of(live, now=NOW).state is state


@pytest.mark.parametrize("status", [[], {}, [{}], {"a": []}, 1, None])
def test_a_condition_of_any_shape_is_no_reason_to_fail(status):
    live = obj("example.com/v1", "Widget", {"conditions": [{"type": "Ready", "status": status}]})
    assert health_of(live, now=NOW).state is CURRENT


def test_what_is_not_well_says_why():
    health = health_of(pod("Running", UNREADY, containers=waiting("CrashLoopBackOff")), now=NOW)
    assert health.server_words == "container main: CrashLoopBackOff: words"


@pytest.mark.parametrize(
    ("live", "words"),
    [
        pytest.param(pod("Pending", containers=waiting("ImagePullBackOff")), "ImagePullBackOff: words", id="image"),
        pytest.param(pod("Pending", unscheduled(60)), "Unschedulable: no node", id="no node"),
        pytest.param(
            pod("Running", containers=[{"name": "a", "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]),
            "container a: Error: exit 3",
            id="exited",
        ),
        pytest.param(
            pod(
                "Running",
                containers=[
                    {
                        "name": "a",
                        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                        "lastState": {"terminated": {"exitCode": 137}},
                    }
                ],
            ),
            "container a: CrashLoopBackOff: exit 137",
            id="crashes",
        ),
    ],
)
def test_why_a_pod_does_not_get_on(live, words):
    assert any(words in sentence for sentence in words_of_pod(live))


def test_a_pod_that_gets_on_needs_no_words():
    assert words_of_pod(pod("Running", READY, containers=waiting("ContainerCreating"))) == []


def test_what_a_container_wrote_at_its_end_is_not_told():
    ended = {"exitCode": 137, "reason": "OOMKilled", "message": "password=hunter2"}
    container = {"name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": ended}}
    assert words_of_pod(pod("Running", containers=[container])) == [
        "container a: CrashLoopBackOff: exit 137, OOMKilled"
    ]


def test_words_of_the_cluster_are_one_short_line():
    scheduled = condition("PodScheduled", "False", "Unschedulable", "0/3 nodes\n\x1b[31m are" + " available" * 200)
    (words,) = words_of_pod(pod("Pending", scheduled))
    assert words.startswith("Unschedulable: 0/3 nodes [31m are available")
    assert len(words) < 450
