"""Is an object what its spec asks for? The kstatus rules (provisioning.md 3.4) as one pure function.

An object is Current when its controller has said so for this very generation; what has no status to say it with is
Current as soon as it exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from provisioner.values import GroupKind, Health, HealthState, JsonObject, ObjectRef

UNSCHEDULABLE_PATIENCE = timedelta(seconds=15)
# Reasons for which a container waits and that do not pass by waiting.
_STUCK = frozenset(
    {
        "CrashLoopBackOff",
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)


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
        return _pod(obj, now or datetime.now(UTC))
    return _KINDS.get(kind, _ready_condition)(obj)


def words_of_pod(pod: JsonObject) -> list[str]:
    """Why a pod does not get on, such as "container app: ImagePullBackOff: ..."; [] if nothing is wrong."""
    status = _status(pod)
    found = []
    scheduled = _condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        found.append(_joined(str(scheduled.get("reason") or "not scheduled"), scheduled.get("message")))
    for key in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(key) or []:
            found.extend(_words_of_container(container))
    if status.get("phase") == "Failed":
        found.append(_joined(str(status.get("reason") or "Failed"), status.get("message")))
    return found


def _words_of_container(container: Mapping[str, Any]) -> list[str]:
    name = f"container {container.get('name')}"
    waiting = (container.get("state") or {}).get("waiting") or {}
    ended = (container.get("state") or {}).get("terminated") or {}
    last = (container.get("lastState") or {}).get("terminated") or {}
    if waiting.get("reason") in _STUCK:
        words = _joined(str(waiting["reason"]), waiting.get("message"))
        return [f"{name}: {words}" + (f" (last exit code {last['exitCode']})" if "exitCode" in last else "")]
    if ended.get("exitCode"):
        exit_code = f"exit code {ended['exitCode']}"
        return [f"{name}: {_joined(str(ended.get('reason') or 'Error'), exit_code)}"]
    return []


def _terminating(obj: JsonObject) -> Health | None:
    if _meta(obj).get("deletionTimestamp"):
        return Health(HealthState.TERMINATING, "is being deleted")
    return None


def _unobserved(obj: JsonObject) -> Health | None:
    generation, observed = _meta(obj).get("generation"), _status(obj).get("observedGeneration")
    if generation is not None and observed is not None and generation != observed:
        return _progress(f"generation {generation} not seen by its controller yet (it has seen {observed})")
    return None


def _general_conditions(obj: JsonObject) -> Health | None:
    """Reconciling and Stalled, which any controller may set."""
    for word, state in (("Reconciling", HealthState.IN_PROGRESS), ("Stalled", HealthState.FAILED)):
        condition = _condition(obj, word)
        if condition.get("status") == "True":
            return Health(state, _said(condition))
    return None


def _ready_condition(obj: JsonObject) -> Health:
    ready = _condition(obj, "Ready")
    if ready.get("status") in {"False", "Unknown"}:
        return _progress(_said(ready))
    return Health(HealthState.CURRENT)


def _always(_: JsonObject) -> Health:
    return Health(HealthState.CURRENT)


def _deployment(obj: JsonObject) -> Health:
    status, wanted = _status(obj), _wanted(obj)
    progressing = _condition(obj, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return Health(HealthState.FAILED, _said(progressing))
    if "progressDeadlineSeconds" in _spec(obj) and progressing.get("status") != "True":
        return _progress(_said(progressing) if progressing else "no progress reported yet")
    keys = {
        "replicas": "made",
        "updatedReplicas": "updated",
        "availableReplicas": "available",
        "readyReplicas": "ready",
    }
    if short := _short(status, wanted, keys):
        return short
    if (old := _count(status, "replicas") - _count(status, "updatedReplicas")) > 0:
        return _progress(f"{old} old replicas still there")
    if _condition(obj, "Available").get("status") != "True":
        return _progress("not available yet")
    return Health(HealthState.CURRENT)


def _replica_set(obj: JsonObject) -> Health:
    failure = _condition(obj, "ReplicaFailure")
    if failure.get("status") == "True":
        return _progress(_said(failure))
    keys = {"fullyLabeledReplicas": "labelled", "availableReplicas": "available", "readyReplicas": "ready"}
    return _short(_status(obj), _wanted(obj), keys) or _surplus(obj) or Health(HealthState.CURRENT)


def _stateful_set(obj: JsonObject) -> Health:
    status, wanted = _status(obj), _wanted(obj)
    strategy = _spec(obj).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return Health(HealthState.CURRENT)
    unmade = _short(status, wanted, {"replicas": "made", "readyReplicas": "ready"}) or _surplus(obj)
    if unmade:
        return unmade
    if partition := int((strategy.get("rollingUpdate") or {}).get("partition") or 0):
        return _short(status, wanted - partition, {"updatedReplicas": "updated"}) or Health(HealthState.CURRENT)
    if unmade := _short(status, wanted, {"currentReplicas": "current"}):
        return unmade
    if status.get("currentRevision") != status.get("updateRevision"):
        return _progress("waits for the update revision")
    return Health(HealthState.CURRENT)


def _daemon_set(obj: JsonObject) -> Health:
    status = _status(obj)
    if "desiredNumberScheduled" not in status:
        return _progress("its controller has not reported yet")
    if "observedGeneration" not in status and _meta(obj).get("generation") is not None:
        return _progress("its controller has not seen it yet")
    keys = {
        "currentNumberScheduled": "scheduled",
        "updatedNumberScheduled": "updated",
        "numberAvailable": "available",
        "numberReady": "ready",
    }
    return _short(status, _count(status, "desiredNumberScheduled"), keys) or Health(HealthState.CURRENT)


def _volume_claim(obj: JsonObject) -> Health:
    phase = _status(obj).get("phase")
    if phase == "Bound":
        return Health(HealthState.CURRENT)
    return Health(HealthState.FAILED, "its volume is lost") if phase == "Lost" else _progress("not bound yet")


def _namespace(obj: JsonObject) -> Health:
    return Health(HealthState.CURRENT) if _status(obj).get("phase") == "Active" else _progress("not active yet")


def _pod(obj: JsonObject, now: datetime) -> Health:
    phase = str(_status(obj).get("phase") or "")
    words = "; ".join(words_of_pod(obj))
    if phase == "Succeeded":
        return Health(HealthState.CURRENT)
    if phase == "Failed":
        return Health(HealthState.FAILED, words)
    if phase == "Running":
        if _condition(obj, "Ready").get("status") == "True":
            return Health(HealthState.CURRENT)
        return Health(HealthState.FAILED, words) if words else _progress("running, not ready")
    if phase == "Pending":
        return _pending_pod(obj, words, now)
    return _progress("no phase yet") if not phase else Health(HealthState.UNKNOWN, f"phase {phase}")


def _pending_pod(obj: JsonObject, words: str, now: datetime) -> Health:
    scheduled = _condition(obj, "PodScheduled")
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        since = _time(scheduled.get("lastTransitionTime"))
        has_waited = since is not None and now - since > UNSCHEDULABLE_PATIENCE
        return Health(HealthState.FAILED if has_waited else HealthState.IN_PROGRESS, words)
    return _progress(words or "pending")


def _job(obj: JsonObject) -> Health:
    """A job that has started is Current: nothing says how long it may run."""
    failed = _condition(obj, "Failed")
    if failed.get("status") == "True":
        return Health(HealthState.FAILED, _said(failed))
    if _condition(obj, "Complete").get("status") == "True" or _status(obj).get("startTime"):
        return Health(HealthState.CURRENT)
    if _spec(obj).get("suspend"):
        return Health(HealthState.CURRENT, "suspended")
    return _progress("not started yet")


def _service(obj: JsonObject) -> Health:
    spec = _spec(obj)
    if spec.get("type") == "LoadBalancer" and not spec.get("clusterIP"):
        return _progress("no cluster IP yet")
    return Health(HealthState.CURRENT)


def _disruption_budget(obj: JsonObject) -> Health:
    if _status(obj).get("observedGeneration") is None:
        return _progress("its controller has not seen it yet")
    return Health(HealthState.CURRENT)


def _definition(obj: JsonObject) -> Health:
    names = _condition(obj, "NamesAccepted")
    if names.get("status") == "False":
        return Health(HealthState.FAILED, _said(names))
    established = _condition(obj, "Established")
    if established.get("status") == "True":
        return Health(HealthState.CURRENT)
    if established.get("status") == "False" and established.get("reason") not in {"Installing", "NotAccepted", None}:
        return Health(HealthState.FAILED, _said(established))
    return _progress("not established yet")


def _api_service(obj: JsonObject) -> Health:
    available = _condition(obj, "Available")
    if available.get("status") == "True":
        return Health(HealthState.CURRENT)
    return _progress(_said(available) if available else "not available yet")


_KINDS: dict[GroupKind, Callable[[JsonObject], Health]] = {
    GroupKind("apps", "Deployment"): _deployment,
    GroupKind("apps", "StatefulSet"): _stateful_set,
    GroupKind("apps", "DaemonSet"): _daemon_set,
    GroupKind("apps", "ReplicaSet"): _replica_set,
    GroupKind("extensions", "Deployment"): _deployment,
    GroupKind("extensions", "ReplicaSet"): _replica_set,
    GroupKind("extensions", "DaemonSet"): _daemon_set,
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
}


def _meta(obj: JsonObject) -> Mapping[str, Any]:
    return obj.get("metadata") or {}


def _spec(obj: JsonObject) -> Mapping[str, Any]:
    spec = obj.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def _status(obj: JsonObject) -> Mapping[str, Any]:
    status = obj.get("status")
    return status if isinstance(status, Mapping) else {}


def _condition(obj: JsonObject, word: str) -> Mapping[str, Any]:
    conditions = _status(obj).get("conditions")
    for condition in conditions if isinstance(conditions, list) else []:
        if isinstance(condition, Mapping) and condition.get("type") == word:
            return condition
    return {}


def _said(condition: Mapping[str, Any]) -> str:
    return _joined(str(condition.get("reason") or condition.get("type") or ""), condition.get("message"))


def _joined(reason: str, message: object) -> str:
    return f"{reason}: {message}" if message else reason


def _count(status: Mapping[str, Any], key: str) -> int:
    value = status.get(key)
    return value if isinstance(value, int) else 0


def _wanted(obj: JsonObject) -> int:
    replicas = _spec(obj).get("replicas")
    return replicas if isinstance(replicas, int) else 1


def _short(status: Mapping[str, Any], wanted: int, keys: Mapping[str, str]) -> Health | None:
    """The first of the counts that is below `wanted`, in words."""
    for key, words in keys.items():
        if _count(status, key) < wanted:
            return _progress(f"{_count(status, key)} of {wanted} {words}")
    return None


def _surplus(obj: JsonObject) -> Health | None:
    made, wanted = _count(_status(obj), "replicas"), _wanted(obj)
    return _progress(f"{made} replicas, expected {wanted}") if made > wanted else None


def _progress(message: str) -> Health:
    return Health(HealthState.IN_PROGRESS, message)


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
