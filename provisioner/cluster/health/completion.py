"""Wait for what runs to an end: a Job that completes, a Pod that succeeds. Nothing else has one."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from provisioner.cluster.client.answers import WatchType
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import uid_of, version_of
from provisioner.cluster.health.reasons import reasons
from provisioner.cluster.health.statuses import condition_of, said, status_of
from provisioner.errors import Expired, Forbidden, Unreachable
from provisioner.values import GroupKind, JsonObject, ObjectRef, Why

_JOB, _POD = GroupKind("batch", "Job"), GroupKind("", "Pod")
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.2, 2.0
# For events that the server has already, and sends at once.
_LOOK_BACK_SECONDS = 10.0
# As the Job controller says that a Job is done, and which pods it still waits for does not matter.
_COMPLETE = ("Complete", "SuccessCriteriaMet")
_FAILED = ("Failed", "FailureTarget")


def has_end(ref: ObjectRef) -> bool:
    """Whether an object of this kind runs to an end, as Helm waits for it of a hook."""
    return ref.group_kind in (_JOB, _POD)


def until_completed(  # noqa: PLR0913 -- each by its name
    cluster: ClusterClient,
    ref: ObjectRef,
    uid: str,
    *,
    version: str = "",
    timeout_seconds: float,
    while_waiting: Callable[[], None],
) -> Why:
    """Wait until the Job or Pod with this uid has succeeded; why it has not, where it failed, went or took too long.

    One that its time to live takes as soon as it has ended counts by what it was when it was deleted. `version` is the
    resourceVersion of its write, where that is known.
    `while_waiting` is called in between, and ends the wait by raising. Raises what a read raises, but for an API server
    that does not answer for a while.
    """
    end, pause = time.monotonic() + timeout_seconds, _FIRST_PAUSE_SECONDS
    live: JsonObject = {}
    while True:
        try:
            found = cluster.get(ref)
            is_there = found is not None and uid_of(found) == uid
            last, unseen = (found, "") if is_there else _deleted(cluster, ref, uid, version)
        except Unreachable as exc:
            words, said_by_server = str(exc), exc.server_words
        else:
            live, version = last or live, version_of(last or {}) or version
            if last and _has_succeeded(last):
                return Why()
            if last and (failed := _failure(last)):
                return Why(f"{ref} failed", "; ".join(filter(None, [failed, *reasons(cluster, last)])), ref)
            if not is_there:
                again = "and another one has its name" if found else "so nobody can tell what came of it"
                return Why(f"{ref} was deleted before it was seen to end, {again}", unseen, ref)
            words, said_by_server = f"{ref} has not ended in time", ""
        if time.monotonic() + pause > end:
            return Why(words, said_by_server or "; ".join(reasons(cluster, live) if live else []), ref)
        while_waiting()
        time.sleep(pause)
        pause = min(pause * 1.5, _MAX_PAUSE_SECONDS)


def _deleted(cluster: ClusterClient, ref: ObjectRef, uid: str, version: str) -> tuple[JsonObject | None, str]:
    """The object as it was when it was deleted, after it had this version; None where the server does not tell.

    Then with its words for why.
    """
    resource = cluster.resource_of(ref.group, ref.version, ref.kind)
    if not version or resource is None:
        return None, ""
    try:
        watch = cluster.watch(
            resource,
            namespace=ref.namespace,
            resource_version=version,
            timeout_seconds=_LOOK_BACK_SECONDS,
            field_selector=f"metadata.name={ref.name}",  # for who may watch it by its name alone
        )
        with closing(watch):
            gone = (one.object for one in watch if one.type is WatchType.DELETED and uid_of(one.object) == uid)
            return next(gone, None), ""
    except (Expired, Forbidden) as exc:
        return None, exc.server_words or str(exc)


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
