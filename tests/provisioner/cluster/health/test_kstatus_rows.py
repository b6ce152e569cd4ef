"""The named rows of kstatus' own status test, as objects of our own.

Two answers differ on purpose. A pod that ended badly (podCompletedFailed) is Current there, because it will not change
any more; it is Failed here, for nobody who asks whether a revision works is helped by "ready" over a pod that failed. A
limited autoscaler (hpaScalingLimitedStatus) is Failed there; it is Current here, for an idle one is always at its
smallest size, and one at its largest does what it was told: that it is limited is said in its words.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from provisioner.cluster.health.kstatus import health_of
from provisioner.values import HealthState, JsonObject

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
CURRENT, PROGRESS, FAILED = HealthState.CURRENT, HealthState.IN_PROGRESS, HealthState.FAILED


def live(kind: str, api: str = "v1", *, generation: int = 1, spec: Any = None, status: Any = None) -> JsonObject:
    parts = {"spec": spec, "status": status}
    meta = {"name": "row", "namespace": "rows", "generation": generation}
    return {"apiVersion": api, "kind": kind, "metadata": meta} | {
        key: it for key, it in parts.items() if it is not None
    }


def says(**words: str) -> list[dict[str, str]]:
    """Conditions, such as Ready="False/NotYet": status and reason."""
    parted = {word: text.partition("/") for word, text in words.items()}
    return [{"type": word, "status": is_so, "reason": why} for word, (is_so, _, why) in parted.items()]


def pod(phase: str = "", waits: str = "", age_seconds: int | None = None, **conditions: str) -> JsonObject:
    made = live("Pod", status={"phase": phase, "conditions": says(**conditions)} if phase else None)
    if waits:
        made["status"]["containerStatuses"] = [{"name": "web", "state": {"waiting": {"reason": waits}}}]
    if age_seconds is not None:
        made["metadata"]["creationTimestamp"] = (NOW - timedelta(seconds=age_seconds)).isoformat()
    return made


def stateful(**counts: int) -> JsonObject:
    return live("StatefulSet", "apps/v1", spec={"replicas": 3}, status={"observedGeneration": 1} | counts)


def daemon(generation: int = 1, **counts: int) -> JsonObject:
    keys = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberReady",
    ]
    status = {"observedGeneration": 1} | dict.fromkeys(keys, 3) | counts
    return live("DaemonSet", "apps/v1", generation=generation, status=status)


def deployment(spec: Any = None, **conditions: str) -> JsonObject:
    counts = dict.fromkeys(["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"], 1)
    status = {"observedGeneration": 1, **counts, "conditions": says(**conditions)}
    return live("Deployment", "apps/v1", spec=spec, status=status)


def replicas(conditions: Any = None, **counts: int) -> JsonObject:
    full = dict.fromkeys(["replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas"], 3) | counts
    status = {"observedGeneration": 1, **full} | ({"conditions": conditions} if conditions else {})
    return live("ReplicaSet", "apps/v1", spec={"replicas": 3}, status=status)


def budget(generation: int) -> JsonObject:
    return live("PodDisruptionBudget", "policy/v1", generation=generation, status={"observedGeneration": 1})


def custom(generation: int = 1, status: Any = None) -> JsonObject:
    return live("Widget", "example.com/v1", generation=generation, status=status)


def job(status: Any = None) -> JsonObject:
    return live("Job", "batch/v1", spec={"completions": 5}, status=status)


def service(**spec: str) -> JsonObject:
    return live("Service", spec=spec or None)


def definition(**conditions: str) -> JsonObject:
    status = {"conditions": says(**conditions)} if conditions else None
    return live("CustomResourceDefinition", "apiextensions.k8s.io/v1", status=status)


def autoscaler(**conditions: str) -> JsonObject:
    status = {"conditions": says(**conditions)} if conditions else None
    return live("HorizontalPodAutoscaler", "autoscaling/v2", status=status)


STARTED = {"startTime": "2026-11-21T11:00:00Z", "active": 2, "failed": 1}
ROWS = {
    "podNoStatus": (pod(), PROGRESS),
    "podReady": (pod("Running", Ready="True"), CURRENT),
    "podCompletedSuccessfully": (pod("Succeeded", Ready="False/PodCompleted"), CURRENT),
    "podCompletedFailed": (pod("Failed", Ready="False/PodCompleted"), FAILED),
    "podBeingScheduled": (pod("Pending", age_seconds=1, PodScheduled="False/Unschedulable"), PROGRESS),
    "podUnschedulable": (pod("Pending", PodScheduled="False/Unschedulable"), FAILED),
    "podCrashLooping": (pod("Running", "CrashLoopBackOff", PodScheduled="False/Unschedulable"), FAILED),
    "pvcNoStatus": (live("PersistentVolumeClaim"), PROGRESS),
    "pvcBound": (live("PersistentVolumeClaim", status={"phase": "Bound"}), CURRENT),
    "stsNoStatus": (live("StatefulSet", "apps/v1"), PROGRESS),
    "stsBadStatus": (live("StatefulSet", "apps/v1", status={"observedGeneration": 1, "currentReplicas": 1}), PROGRESS),
    "stsOK": (stateful(currentReplicas=3, readyReplicas=3, replicas=3), CURRENT),
    "stsLessReady": (stateful(currentReplicas=3, readyReplicas=1, replicas=3), PROGRESS),
    "stsLessCurrent": (stateful(currentReplicas=1, readyReplicas=3, replicas=3), PROGRESS),
    "stsExtraPods": (stateful(currentReplicas=3, readyReplicas=3, replicas=5), PROGRESS),
    "dsNoStatus": (live("DaemonSet", "apps/v1"), PROGRESS),
    "dsBadStatus": (live("DaemonSet", "apps/v1", status={"observedGeneration": 1, "currentReplicas": 1}), PROGRESS),
    "dsOK": (daemon(), CURRENT),
    "dsLessReady": (daemon(numberReady=1), PROGRESS),
    "dsDifferentGeneration": (daemon(generation=2), PROGRESS),
    "dsLessAvailable": (daemon(numberAvailable=1), PROGRESS),
    "depNoStatus": (live("Deployment", "apps/v1"), PROGRESS),
    "depOK": (deployment(Progressing="True/NewReplicaSetAvailable", Available="True"), CURRENT),
    "depNotProgressing": (
        deployment({"progressDeadlineSeconds": 30}, Progressing="False/Slow", Available="True"),
        PROGRESS,
    ),
    "depNoProgressDeadlineSeconds": (deployment(Available="True"), CURRENT),
    "depNotAvailable": (deployment(Progressing="True/NewReplicaSetAvailable", Available="False"), PROGRESS),
    "rsNoStatus": (live("ReplicaSet", "apps/v1"), PROGRESS),
    "rsOK1": (replicas(says(ReplicaFailure="False")), CURRENT),
    "rsOK2": (replicas(), CURRENT),
    "rsLessAvailable": (replicas(availableReplicas=1), PROGRESS),
    "rsLessReady": (replicas(readyReplicas=1), PROGRESS),
    "rsReplicaFailure": (replicas(says(ReplicaFailure="True")), PROGRESS),
    "pdbNotObserved": (budget(generation=2), PROGRESS),
    "pdbObserved": (budget(generation=1), CURRENT),
    "crdNoStatus": (custom(), CURRENT),
    "crdReady": (custom(status={"conditions": says(Ready="True/Fine")}), CURRENT),
    "crdNotReady": (custom(status={"observedGeneration": 1, "conditions": says(Ready="False/NotYet")}), PROGRESS),
    "crdNoCondition": (custom(status={"conditions": says(Something="False")}), CURRENT),
    "crdMismatchStatusGeneration": (custom(generation=2, status={"observedGeneration": 1}), PROGRESS),
    "jobNoStatus": (job(), PROGRESS),
    "jobComplete": (job({"succeeded": 1, "conditions": says(Complete="True")}), CURRENT),
    "jobFailed": (job({"failed": 1, "conditions": says(Failed="True/JobFailed")}), FAILED),
    "jobInProgress": (job(STARTED | {"conditions": says(Failed="False", Complete="False")}), CURRENT),
    "cronjobNoStatus": (live("CronJob", "batch/v1"), CURRENT),
    "cronjobWithStatus": (live("CronJob", "batch/v1", status={}), CURRENT),
    "serviceDefault": (service(), CURRENT),
    "serviceNodePort": (service(type="NodePort"), CURRENT),
    "serviceLBnok": (service(type="LoadBalancer"), PROGRESS),
    "serviceLBok": (service(type="LoadBalancer", clusterIP="10.1.2.3"), CURRENT),
    "crdNoConditions": (definition(), PROGRESS),
    "crdInstalling": (definition(NamesAccepted="True/NoConflicts", Established="False/Installing"), PROGRESS),
    "crdNamesNotAccepted": (definition(NamesAccepted="False/Taken"), FAILED),
    "crdEstablished": (definition(NamesAccepted="True/NoConflicts", Established="True/Fine"), CURRENT),
}
# Upstream's test has them too; the reference counts 53 without.
AUTOSCALERS = {
    "hpaNoStatus": (autoscaler(), PROGRESS),
    "hpaCurrentStatus": (
        autoscaler(AbleToScale="True/Ready", ScalingActive="True/Valid", ScalingLimited="False/WithinRange"),
        CURRENT,
    ),
    "hpaScalingLimitedStatus": (
        autoscaler(AbleToScale="True/Ready", ScalingActive="True/Valid", ScalingLimited="True/TooFewReplicas"),
        CURRENT,
    ),
    "hpaNotAbleToScale": (autoscaler(AbleToScale="False/FailedGetScale", ScalingActive="True/Valid"), PROGRESS),
    "hpaNotActive": (autoscaler(AbleToScale="True/Ready", ScalingActive="False/FailedGetMetric"), PROGRESS),
    "hpaSwitchedOff": (autoscaler(AbleToScale="True/Ready", ScalingActive="False/ScalingDisabled"), CURRENT),
}


@pytest.mark.parametrize(("row", "state"), (ROWS | AUTOSCALERS).values(), ids=ROWS | AUTOSCALERS)
def test_kstatus_row(row: JsonObject, state: HealthState) -> None:
    health = health_of(row, now=NOW)
    assert health.state is state
    assert health.message or state is CURRENT, "what is not well says why"


def test_why_an_autoscaler_is_limited_is_said_though_it_is_well() -> None:
    limited, _ = AUTOSCALERS["hpaScalingLimitedStatus"]
    assert "TooFewReplicas" in health_of(limited, now=NOW).server_words


def test_all_rows_are_here() -> None:
    assert len(ROWS) == 53
