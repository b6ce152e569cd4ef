"""Why pods do or do not get on: their health after the rules of kstatus, and the reasons in words. PURE."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from provisioner.cluster.health.statuses import (
    condition_of,
    in_progress,
    instant_of,
    joined,
    meta_of,
    shortened,
    status_of,
)
from provisioner.values import Health, HealthState, JsonObject

UNSCHEDULABLE_PATIENCE = timedelta(seconds=15)
_STUCK_WORDS = "running, and a container of it does not get on"
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
        return _pending_pod(obj, words, now)
    return in_progress("no phase yet") if not phase else Health(HealthState.UNKNOWN, "in a phase unknown here", phase)


def _pending_pod(obj: JsonObject, words: str, now: datetime) -> Health:
    scheduled = condition_of(obj, "PodScheduled")
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        made = meta_of(obj).get("creationTimestamp")
        since = instant_of(scheduled.get("lastTransitionTime")) or instant_of(made)
        has_waited = since is None or now - since > UNSCHEDULABLE_PATIENCE
        state = HealthState.FAILED if has_waited else HealthState.IN_PROGRESS
        return Health(state, "no node takes it", words)
    return in_progress("pending", words)


def words_of_pod(pod: JsonObject) -> list[str]:
    """Why a pod does not get on, such as "container app: ImagePullBackOff: ..."; [] if nothing is wrong."""
    status = status_of(pod)
    found = []
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        found.append(joined(str(scheduled.get("reason") or "not scheduled"), shortened(scheduled.get("message"))))
    for key in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(key) or []:
            found.extend(_words_of_container(container))
    if status.get("phase") == "Failed":
        found.append(joined(str(status.get("reason") or "Failed"), shortened(status.get("message"))))
    return found


def _words_of_container(container: Mapping[str, Any]) -> list[str]:
    """What a container wrote to its termination log is left out: it is its own output and may hold anything."""
    name = f"container {container.get('name')}"
    waiting = (container.get("state") or {}).get("waiting") or {}
    ended = (container.get("state") or {}).get("terminated") or {}
    last = (container.get("lastState") or {}).get("terminated") or {}
    if waiting.get("reason") in _STUCK:
        words = joined(str(waiting["reason"]), _exit_words(last))
        return [f"{name}: {joined(words, shortened(waiting.get('message')))}"]
    if ended.get("exitCode"):
        return [f"{name}: {joined(str(ended.get('reason') or 'Error'), _exit_words(ended))}"]
    return []


def _exit_words(ended: Mapping[str, Any]) -> str:
    if "exitCode" not in ended:
        return ""
    is_out_of_memory = ended.get("reason") == "OOMKilled"
    return f"exit {ended['exitCode']}" + (", OOMKilled" if is_out_of_memory else "")
