"""Wait for what runs to an end: a Job that completes, a Pod that succeeds. Nothing else has one."""

from __future__ import annotations

import time
from collections.abc import Callable

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import uid_of
from provisioner.cluster.health.reasons import reasons
from provisioner.cluster.health.statuses import condition_of, said, status_of
from provisioner.errors import Unreachable
from provisioner.values import GroupKind, JsonObject, ObjectRef, Why

_JOB, _POD = GroupKind("batch", "Job"), GroupKind("", "Pod")
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.2, 2.0
# As the Job controller says that a Job is done, and which pods it still waits for does not matter.
_COMPLETE = ("Complete", "SuccessCriteriaMet")
_FAILED = ("Failed", "FailureTarget")


def has_end(ref: ObjectRef) -> bool:
    """Whether an object of this kind runs to an end, as Helm waits for it of a hook."""
    return ref.group_kind in (_JOB, _POD)


def until_completed(
    cluster: ClusterClient, ref: ObjectRef, uid: str, *, timeout_seconds: float, while_waiting: Callable[[], None]
) -> Why:
    """Wait until the Job or Pod with this uid has succeeded; why it has not, where it failed, went or took too long.

    `while_waiting` is called in between, and ends the wait by raising. Raises what a read raises, but for an API server
    that does not answer for a while.
    """
    end, pause = time.monotonic() + timeout_seconds, _FIRST_PAUSE_SECONDS
    live: JsonObject = {}
    while True:
        try:
            found = cluster.get(ref)
        except Unreachable as exc:
            words, said_by_server = str(exc), exc.server_words
        else:
            if found is None or uid_of(found) != uid:
                again = "and another one has its name" if found else "so nobody can tell what came of it"
                return Why(f"{ref} was deleted before it was seen to end, {again}", "", ref)
            live = found
            if _has_succeeded(live):
                return Why()
            if failed := _failure(live):
                return Why(f"{ref} failed", "; ".join(filter(None, [failed, *reasons(cluster, live)])), ref)
            words, said_by_server = f"{ref} has not ended in time", ""
        if time.monotonic() + pause > end:
            return Why(words, said_by_server or "; ".join(reasons(cluster, live) if live else []), ref)
        while_waiting()
        time.sleep(pause)
        pause = min(pause * 1.5, _MAX_PAUSE_SECONDS)


def _has_succeeded(obj: JsonObject) -> bool:
    if ObjectRef.of(obj).group_kind == _POD:
        return status_of(obj).get("phase") == "Succeeded"
    return any(condition_of(obj, name).get("status") == "True" for name in _COMPLETE)


def _failure(obj: JsonObject) -> str:
    """What the cluster says of a failure, "" where there is none."""
    if ObjectRef.of(obj).group_kind == _POD:
        status = status_of(obj)
        return str(status.get("message") or "its phase is Failed") if status.get("phase") == "Failed" else ""
    found = next((it for name in _FAILED if (it := condition_of(obj, name)).get("status") == "True"), None)
    return said(found) or "its condition Failed is True" if found else ""
