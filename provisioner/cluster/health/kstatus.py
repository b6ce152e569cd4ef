"""Is an object what its spec asks for? The kstatus rules as one pure function.

An object is Current when its controller has said so for this very generation; what has no status to say it with is
Current as soon as it exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from provisioner.cluster.health.pods import health_of_pod
from provisioner.cluster.health.statuses import (
    condition_of,
    count_of,
    in_progress,
    meta_of,
    said,
    short,
    spec_of,
    status_of,
    surplus,
    wanted_replicas,
)
from provisioner.values import GroupKind, Health, HealthState, JsonObject, ObjectRef

# A Deployment whose deadline is this one has none (its controller's own rule).
NO_DEADLINE = 2**31 - 1
_NO_PODS = "its pods cannot be made"


def health_of(obj: JsonObject | None, *, now: datetime | None = None) -> Health:
    """The health of a live object, NotFound for None. `now` (aware) says how long a pod has been unscheduled."""
    if obj is None:
        return Health(HealthState.NOT_FOUND, "there is no such object")
    rules = (_terminating, _unobserved, _general_conditions)
    for rule in rules:
        if (health := rule(obj)) is not None:
            return health
    kind = ObjectRef.of(obj).group_kind
    if kind == GroupKind("", "Pod"):
        return health_of_pod(obj, now or datetime.now(UTC))
    return _KINDS.get(kind, _ready_condition)(obj)


def _terminating(obj: JsonObject) -> Health | None:
    if meta_of(obj).get("deletionTimestamp"):
        return Health(HealthState.TERMINATING, "is being deleted")
    return None


def _unobserved(obj: JsonObject) -> Health | None:
    generation, observed = meta_of(obj).get("generation"), status_of(obj).get("observedGeneration")
    if generation is not None and observed is not None and generation != observed:
        return in_progress(f"generation {generation} not seen by its controller yet (it has seen {observed})")
    return None


def _general_conditions(obj: JsonObject) -> Health | None:
    """Reconciling and Stalled, which any controller may set."""
    for word, state in (("Reconciling", HealthState.IN_PROGRESS), ("Stalled", HealthState.FAILED)):
        condition = condition_of(obj, word)
        if condition.get("status") == "True":
            return Health(state, f"its controller says {word}", said(condition))
    return None


def _ready_condition(obj: JsonObject) -> Health:
    ready = condition_of(obj, "Ready")
    if ready.get("status") in ("False", "Unknown"):
        return in_progress("its controller says that it is not ready", said(ready))
    return Health(HealthState.CURRENT)


def _always(_: JsonObject) -> Health:
    return Health(HealthState.CURRENT)


def _deployment(obj: JsonObject) -> Health:
    status, wanted = status_of(obj), wanted_replicas(obj)
    progressing = condition_of(obj, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return Health(HealthState.FAILED, "it made no progress within its deadline", said(progressing))
    is_complete = progressing.get("status") == "True" and progressing.get("reason") == "NewReplicaSetAvailable"
    keys = {
        "replicas": "made",
        "updatedReplicas": "updated",
        "availableReplicas": "available",
        "readyReplicas": "ready",
    }
    if missing := short(status, wanted, keys):
        refused = condition_of(obj, "ReplicaFailure")
        is_refused = refused.get("status") == "True"
        return in_progress(f"{missing.message}; {_NO_PODS}", said(refused)) if is_refused else missing
    if (old := count_of(status, "replicas") - count_of(status, "updatedReplicas")) > 0:
        return in_progress(f"{old} old replicas still there")
    if spec_of(obj).get("progressDeadlineSeconds", NO_DEADLINE) != NO_DEADLINE and not is_complete:
        words = "not all of it is done yet" if progressing else "no progress reported yet"
        return in_progress(words, said(progressing) if progressing else "")
    if condition_of(obj, "Available").get("status") != "True":
        return in_progress("not available yet")
    return Health(HealthState.CURRENT)


def _replica_set(obj: JsonObject) -> Health:
    failure = condition_of(obj, "ReplicaFailure")
    if failure.get("status") == "True":
        return in_progress(_NO_PODS, said(failure))
    keys = {"fullyLabeledReplicas": "labelled", "availableReplicas": "available", "readyReplicas": "ready"}
    return short(status_of(obj), wanted_replicas(obj), keys) or surplus(obj) or Health(HealthState.CURRENT)


def _stateful_set(obj: JsonObject) -> Health:
    status, wanted = status_of(obj), wanted_replicas(obj)
    strategy = spec_of(obj).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return Health(HealthState.CURRENT)
    unmade = short(status, wanted, {"replicas": "made", "readyReplicas": "ready"}) or surplus(obj)
    if unmade:
        return unmade
    if partition := int((strategy.get("rollingUpdate") or {}).get("partition") or 0):
        return short(status, wanted - partition, {"updatedReplicas": "updated"}) or Health(HealthState.CURRENT)
    if unmade := short(status, wanted, {"currentReplicas": "current"}):
        return unmade
    if status.get("currentRevision") != status.get("updateRevision"):
        return in_progress("waits for the update revision")
    return Health(HealthState.CURRENT)


def _daemon_set(obj: JsonObject) -> Health:
    status = status_of(obj)
    if "desiredNumberScheduled" not in status:
        return in_progress("its controller has not reported yet")
    if "observedGeneration" not in status and meta_of(obj).get("generation") is not None:
        return in_progress("its controller has not seen it yet")
    keys = {
        "currentNumberScheduled": "scheduled",
        "updatedNumberScheduled": "updated",
        "numberAvailable": "available",
        "numberReady": "ready",
    }
    if (spec_of(obj).get("updateStrategy") or {}).get("type") == "OnDelete":  # updated when somebody deletes its pods
        del keys["updatedNumberScheduled"]
    return short(status, count_of(status, "desiredNumberScheduled"), keys) or Health(HealthState.CURRENT)


def _volume_claim(obj: JsonObject) -> Health:
    phase = status_of(obj).get("phase")
    if phase == "Bound":
        return Health(HealthState.CURRENT)
    return Health(HealthState.FAILED, "its volume is lost") if phase == "Lost" else in_progress("not bound yet")


def _namespace(obj: JsonObject) -> Health:
    return Health(HealthState.CURRENT) if status_of(obj).get("phase") == "Active" else in_progress("not active yet")


def _job(obj: JsonObject) -> Health:
    """A job that has started is Current: nothing says how long it may run."""
    failed = condition_of(obj, "Failed")
    if failed.get("status") == "True":
        return Health(HealthState.FAILED, "it failed", said(failed))
    if condition_of(obj, "Complete").get("status") == "True":
        return Health(HealthState.CURRENT)
    if status_of(obj).get("startTime"):
        broken = count_of(status_of(obj), "failed")
        return Health(HealthState.CURRENT, f"running, {broken} of its pods failed so far" if broken else "")
    if spec_of(obj).get("suspend"):
        return Health(HealthState.CURRENT, "suspended")
    return in_progress("not started yet")


def _service(obj: JsonObject) -> Health:
    spec = spec_of(obj)
    if spec.get("type") == "LoadBalancer" and not spec.get("clusterIP"):
        return in_progress("no cluster IP yet")
    return _addressed(obj) if spec.get("type") == "LoadBalancer" else Health(HealthState.CURRENT)


def _addressed(obj: JsonObject) -> Health:
    """An Ingress or a load balancer. Not every controller reports an address, so its absence is only mentioned."""
    balancer = status_of(obj).get("loadBalancer")
    has_address = isinstance(balancer, Mapping) and bool(balancer.get("ingress"))
    return Health(HealthState.CURRENT, "" if has_address else "no external address reported")


def _autoscaler(obj: JsonObject) -> Health:
    """At its smallest or largest size it is limited, which is no fault: the conditions that matter are the other two.

    kstatus itself calls a limited autoscaler failed; an idle one always is limited.
    """
    for word in ("AbleToScale", "ScalingActive"):
        condition = condition_of(obj, word)
        if not condition:
            return in_progress("its controller has not reported yet")
        if condition.get("status") != "True" and condition.get("reason") != "ScalingDisabled":
            return in_progress(f"its controller says that it is not {word}", said(condition))
    limited = condition_of(obj, "ScalingLimited")
    is_limited = limited.get("status") == "True"
    return Health(HealthState.CURRENT, "limited" if is_limited else "", said(limited) if is_limited else "")


def _disruption_budget(obj: JsonObject) -> Health:
    if status_of(obj).get("observedGeneration") is None:
        return in_progress("its controller has not seen it yet")
    return Health(HealthState.CURRENT)


def _definition(obj: JsonObject) -> Health:
    names = condition_of(obj, "NamesAccepted")
    if names.get("status") == "False":
        return Health(HealthState.FAILED, "its names are not accepted", said(names))
    established = condition_of(obj, "Established")
    if established.get("status") == "True":
        return Health(HealthState.CURRENT)
    if established.get("status") == "False" and established.get("reason") not in {"Installing", "NotAccepted", None}:
        return Health(HealthState.FAILED, "it was not established", said(established))
    return in_progress("not established yet")


def _api_service(obj: JsonObject) -> Health:
    available = condition_of(obj, "Available")
    if available.get("status") == "True":
        return Health(HealthState.CURRENT)
    return in_progress("not available yet", said(available) if available else "")


_KINDS: dict[GroupKind, Callable[[JsonObject], Health]] = {
    GroupKind("apps", "Deployment"): _deployment,
    GroupKind("apps", "StatefulSet"): _stateful_set,
    GroupKind("apps", "DaemonSet"): _daemon_set,
    GroupKind("apps", "ReplicaSet"): _replica_set,
    GroupKind("extensions", "Deployment"): _deployment,
    GroupKind("extensions", "ReplicaSet"): _replica_set,
    GroupKind("extensions", "DaemonSet"): _daemon_set,
    GroupKind("", "ReplicationController"): _replica_set,
    GroupKind("", "PersistentVolumeClaim"): _volume_claim,
    GroupKind("", "Namespace"): _namespace,
    GroupKind("", "Service"): _service,
    GroupKind("", "ConfigMap"): _always,
    GroupKind("", "Secret"): _always,
    GroupKind("batch", "CronJob"): _always,
    GroupKind("batch", "Job"): _job,
    GroupKind("policy", "PodDisruptionBudget"): _disruption_budget,
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    GroupKind("apiregistration.k8s.io", "APIService"): _api_service,
    GroupKind("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    GroupKind("networking.k8s.io", "Ingress"): _addressed,
    GroupKind("extensions", "Ingress"): _addressed,
    GroupKind("networking.k8s.io", "NetworkPolicy"): _always,
}
