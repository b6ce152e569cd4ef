"""Is an object what its spec asks for? The kstatus rules as one pure function.

An object is Current when its controller has said so for this very generation; what has no status to say it with is
Current as soon as it exists. Statuses are read without trust in their shape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from provisioner.values import GroupKind, Health, HealthState, JsonObject, ObjectRef

MAX_WORDS = 400


def meta_of(obj: JsonObject) -> Mapping[str, Any]:
    return obj.get("metadata") or {}


def spec_of(obj: JsonObject) -> Mapping[str, Any]:
    spec = obj.get("spec")
    return spec if isinstance(spec, Mapping) else {}


def status_of(obj: JsonObject) -> Mapping[str, Any]:
    status = obj.get("status")
    return status if isinstance(status, Mapping) else {}


def condition_of(obj: JsonObject, word: str) -> Mapping[str, Any]:
    conditions = status_of(obj).get("conditions")
    for condition in conditions if isinstance(conditions, list) else []:
        if isinstance(condition, Mapping) and condition.get("type") == word:
            return condition
    return {}


def condition_words(condition: Mapping[str, Any]) -> str:
    """Its reason and message: words of whoever wrote the status, so values of the object (security-rules.md S27)."""
    words = shorten_message(condition.get("message"))
    return join_reason(str(condition.get("reason") or condition.get("type") or ""), words)


def join_reason(reason: str, message: object) -> str:
    return f"{reason}: {message}" if message else reason


def shorten_message(message: object) -> str:
    """A message of the cluster on one line, without control characters, of at most MAX_WORDS characters."""
    plain = " ".join(
        "".join(letter if letter.isprintable() else " " for letter in str(message or "")[: 4 * MAX_WORDS]).split()
    )
    return plain if len(plain) <= MAX_WORDS else plain[: MAX_WORDS - 1] + "…"


def count_of(status: Mapping[str, Any], key: str) -> int:
    value = status.get(key)
    return value if isinstance(value, int) else 0


def wanted_replicas(obj: JsonObject) -> int:
    replicas = spec_of(obj).get("replicas")
    return replicas if isinstance(replicas, int) else 1


def first_shortage(status: Mapping[str, Any], wanted: int, keys: Mapping[str, str]) -> Health | None:
    """The first of the counts that is below `wanted`, in words."""
    for key, words in keys.items():
        if count_of(status, key) < wanted:
            return in_progress(f"{count_of(status, key)} of {wanted} {words}")
    return None


def surplus(obj: JsonObject) -> Health | None:
    made, wanted = count_of(status_of(obj), "replicas"), wanted_replicas(obj)
    return in_progress(f"{made} replicas, expected {wanted}") if made > wanted else None


def in_progress(message: str, server_words: str = "") -> Health:
    return Health(HealthState.IN_PROGRESS, message, server_words)


def instant_of(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


UNSCHEDULABLE_PATIENCE = timedelta(seconds=15)
_STUCK_WORDS = "running, and a container of it does not get on"
# Reasons for which a container waits and that do not pass by waiting.
_STUCK = frozenset({
    "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull", "ErrImagePull",
    "ImageInspectError", "ImagePullBackOff", "InvalidImageName", "RunContainerError",
})  # fmt: skip


def health_of_pod(obj: JsonObject, now: datetime) -> Health:
    """A pod that ended badly is Failed; kstatus itself calls it Current, as it will not change any more."""
    phase = str(status_of(obj).get("phase") or "")
    words = "; ".join(words_of_pod(obj))
    if phase == "Succeeded":
        return Health(HealthState.CURRENT)
    if phase == "Failed":
        return Health(HealthState.FAILED, "it failed", words)
    if phase == "Running":
        if condition_of(obj, "Ready").get("status") == "True":
            return Health(HealthState.CURRENT)
        return Health(HealthState.FAILED, _STUCK_WORDS, words) if words else in_progress("running, not ready")
    if phase == "Pending":
        scheduled = condition_of(obj, "PodScheduled")
        if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
            made = meta_of(obj).get("creationTimestamp")
            since = instant_of(scheduled.get("lastTransitionTime")) or instant_of(made)
            has_waited = since is None or now - since > UNSCHEDULABLE_PATIENCE
            state = HealthState.FAILED if has_waited else HealthState.IN_PROGRESS
            return Health(state, "no node takes it", words)
        return in_progress("pending", words)
    return in_progress("no phase yet") if not phase else Health(HealthState.UNKNOWN, "in a phase unknown here", phase)


def words_of_pod(pod: JsonObject) -> list[str]:
    """Why a pod does not get on, such as "container app: ImagePullBackOff: ..."; [] if nothing is wrong."""
    status = status_of(pod)
    found = []
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        found.append(
            join_reason(str(scheduled.get("reason") or "not scheduled"), shorten_message(scheduled.get("message")))
        )
    for container in (*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])):
        # What a container wrote to its termination log is left out: it is its own output and may hold anything.
        name = f"container {container.get('name')}"
        waiting = (container.get("state") or {}).get("waiting") or {}
        ended = (container.get("state") or {}).get("terminated") or {}
        if waiting.get("reason") in _STUCK:
            last = (container.get("lastState") or {}).get("terminated") or {}
            words = join_reason(str(waiting["reason"]), _exit_words(last))
            found.append(f"{name}: {join_reason(words, shorten_message(waiting.get('message')))}")
        elif ended.get("exitCode"):
            found.append(f"{name}: {join_reason(str(ended.get('reason') or 'Error'), _exit_words(ended))}")
    if status.get("phase") == "Failed":
        found.append(join_reason(str(status.get("reason") or "Failed"), shorten_message(status.get("message"))))
    return found


def _exit_words(ended: Mapping[str, Any]) -> str:
    if "exitCode" not in ended:
        return ""
    is_out_of_memory = ended.get("reason") == "OOMKilled"
    return f"exit {ended['exitCode']}" + (", OOMKilled" if is_out_of_memory else "")


# A Deployment whose deadline is this one has none (its controller's own rule).
NO_DEADLINE = 2**31 - 1
_NO_PODS = "its pods cannot be made"


def health_of(obj: JsonObject | None, *, now: datetime | None = None) -> Health:
    """The health of a live object, NotFound for None. `now` (aware) says how long a pod has been unscheduled."""
    if obj is None:
        return Health(HealthState.NOT_FOUND, "there is no such object")
    if meta_of(obj).get("deletionTimestamp"):
        return Health(HealthState.TERMINATING, "is being deleted")
    generation, observed = meta_of(obj).get("generation"), status_of(obj).get("observedGeneration")
    if generation is not None and observed is not None and generation != observed:
        return in_progress(f"generation {generation} not seen by its controller yet (it has seen {observed})")
    # Conditions that any controller may set.
    for word, state in (("Reconciling", HealthState.IN_PROGRESS), ("Stalled", HealthState.FAILED)):
        condition = condition_of(obj, word)
        if condition.get("status") == "True":
            return Health(state, f"its controller says {word}", condition_words(condition))
    kind = ObjectRef.of(obj).group_kind
    if kind == GroupKind("", "Pod"):
        return health_of_pod(obj, now or datetime.now(UTC))
    return _KINDS.get(kind, _ready_condition)(obj)


def _ready_condition(obj: JsonObject) -> Health:
    ready = condition_of(obj, "Ready")
    if ready.get("status") in ("False", "Unknown"):
        return in_progress("its controller says that it is not ready", condition_words(ready))
    return Health(HealthState.CURRENT)


def _always(_: JsonObject) -> Health:
    return Health(HealthState.CURRENT)


def _deployment(obj: JsonObject) -> Health:
    status, wanted = status_of(obj), wanted_replicas(obj)
    progressing = condition_of(obj, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return Health(HealthState.FAILED, "it made no progress within its deadline", condition_words(progressing))
    is_complete = progressing.get("status") == "True" and progressing.get("reason") == "NewReplicaSetAvailable"
    keys = {
        "replicas": "made",
        "updatedReplicas": "updated",
        "availableReplicas": "available",
        "readyReplicas": "ready",
    }
    if missing := first_shortage(status, wanted, keys):
        refused = condition_of(obj, "ReplicaFailure")
        is_refused = refused.get("status") == "True"
        return in_progress(f"{missing.message}; {_NO_PODS}", condition_words(refused)) if is_refused else missing
    if (old := count_of(status, "replicas") - count_of(status, "updatedReplicas")) > 0:
        return in_progress(f"{old} old replicas still there")
    if spec_of(obj).get("progressDeadlineSeconds", NO_DEADLINE) != NO_DEADLINE and not is_complete:
        words = "not all of it is done yet" if progressing else "no progress reported yet"
        return in_progress(words, condition_words(progressing) if progressing else "")
    if condition_of(obj, "Available").get("status") != "True":
        return in_progress("not available yet")
    return Health(HealthState.CURRENT)


def _replica_set(obj: JsonObject) -> Health:
    failure = condition_of(obj, "ReplicaFailure")
    if failure.get("status") == "True":
        return in_progress(_NO_PODS, condition_words(failure))
    keys = {"fullyLabeledReplicas": "labelled", "availableReplicas": "available", "readyReplicas": "ready"}
    return first_shortage(status_of(obj), wanted_replicas(obj), keys) or surplus(obj) or Health(HealthState.CURRENT)


def _stateful_set(obj: JsonObject) -> Health:
    status, wanted = status_of(obj), wanted_replicas(obj)
    strategy = spec_of(obj).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return Health(HealthState.CURRENT)
    unmade = first_shortage(status, wanted, {"replicas": "made", "readyReplicas": "ready"}) or surplus(obj)
    if unmade:
        return unmade
    if partition := int((strategy.get("rollingUpdate") or {}).get("partition") or 0):
        return first_shortage(status, wanted - partition, {"updatedReplicas": "updated"}) or Health(HealthState.CURRENT)
    if unmade := first_shortage(status, wanted, {"currentReplicas": "current"}):
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
    return first_shortage(status, count_of(status, "desiredNumberScheduled"), keys) or Health(HealthState.CURRENT)


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
        return Health(HealthState.FAILED, "it failed", condition_words(failed))
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
            return in_progress(f"its controller says that it is not {word}", condition_words(condition))
    limited = condition_of(obj, "ScalingLimited")
    is_limited = limited.get("status") == "True"
    return Health(HealthState.CURRENT, "limited" if is_limited else "", condition_words(limited) if is_limited else "")


def _disruption_budget(obj: JsonObject) -> Health:
    if status_of(obj).get("observedGeneration") is None:
        return in_progress("its controller has not seen it yet")
    return Health(HealthState.CURRENT)


def _definition(obj: JsonObject) -> Health:
    names = condition_of(obj, "NamesAccepted")
    if names.get("status") == "False":
        return Health(HealthState.FAILED, "its names are not accepted", condition_words(names))
    established = condition_of(obj, "Established")
    if established.get("status") == "True":
        return Health(HealthState.CURRENT)
    if established.get("status") == "False" and established.get("reason") not in {"Installing", "NotAccepted", None}:
        return Health(HealthState.FAILED, "it was not established", condition_words(established))
    return in_progress("not established yet")


def _api_service(obj: JsonObject) -> Health:
    available = condition_of(obj, "Available")
    if available.get("status") == "True":
        return Health(HealthState.CURRENT)
    return in_progress("not available yet", condition_words(available) if available else "")


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
