"""Wait for objects to settle, to end or to go: by watching, or by polling where watching is not allowed."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from provisioner.cluster.client.answers import Watch, WatchType
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.client.discovery import ServedResource
from provisioner.cluster.health.kstatus import condition_of, condition_words, health_of, status_of
from provisioner.cluster.health.reasons import reasons
from provisioner.errors import ClusterError, Expired, Forbidden, TryLater, UnknownKind, Unreachable
from provisioner.json_values import uid_of
from provisioner.values import GroupKind, Health, HealthState, JsonObject, ObjectRef, Why

OnChange = Callable[[ObjectRef, Health], None]

_WATCH_SECONDS = 60.0
_BETWEEN_WATCHES_SECONDS = 0.2
_POLL_SECONDS = 1.0
_MAX_POLL_SECONDS = 5.0
_SETTLED = frozenset({HealthState.CURRENT, HealthState.FAILED})
# What happens by time alone (a pod stays unschedulable) makes no event: look again this often.
_LOOK_AGAIN_SECONDS = 1.0


def _nothing() -> None:
    return None


def until_settled(
    cluster: ClusterClient,
    refs: Iterable[ObjectRef],
    *,
    timeout_seconds: float,
    on_change: OnChange | None = None,
    while_waiting: Callable[[], None] = _nothing,
) -> dict[ObjectRef, Health]:
    """The health of each object once all are Current or Failed, or when the time is over.

    `on_change` is called, in the caller's thread, with each health that differs from the last one told, and
    `while_waiting` every few seconds at least; what it raises ends the wait.
    """
    end = time.monotonic() + timeout_seconds
    room = _Room(cluster, {ref: Health(HealthState.UNKNOWN, "not looked at yet") for ref in refs}, on_change)
    if not room.health:
        return {}
    threads = [threading.Thread(target=room.follow, args=group, daemon=True) for group in _groups(cluster, room.health)]
    for thread in threads:
        thread.start()
    try:
        while not room.is_settled and (left := end - time.monotonic()) > 0:
            room.take(min(left, _LOOK_AGAIN_SECONDS))
            while_waiting()
    finally:
        room.leave()
        for thread in threads:
            thread.join(timeout=1.0)
    return dict(room.health)


def until_gone(
    cluster: ClusterClient,
    uids: Mapping[ObjectRef, str],
    *,
    timeout_seconds: float,
    while_waiting: Callable[[], None] = _nothing,
) -> dict[ObjectRef, Why]:
    """Wait until none of the objects with these uids is left; for those that are, the answer says why."""
    end, pause = time.monotonic() + timeout_seconds, 0.05
    left = dict(uids)
    while True:
        words = {ref: found for ref, uid in left.items() if (found := _why_there(cluster, ref, uid)) is not None}
        left = {ref: left[ref] for ref in words}
        if not left or time.monotonic() + pause > end:
            return words
        while_waiting()
        time.sleep(pause)
        pause = min(pause * 2, _MAX_POLL_SECONDS)


@dataclass
class _Room:
    """Where the watching threads leave what they saw and the caller picks it up."""

    cluster: ClusterClient
    health: dict[ObjectRef, Health]
    on_change: OnChange | None
    _seen: queue.SimpleQueue[tuple[ObjectRef, JsonObject | None] | Exception] = field(default_factory=queue.SimpleQueue)
    _last: dict[ObjectRef, JsonObject | None] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)
    _watches: set[Watch] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_settled(self) -> bool:
        return all(health.state in _SETTLED for health in self.health.values())

    def take(self, seconds: float) -> None:
        """Pick up one thing seen; with none in time, judge again what was seen last."""
        try:
            seen = self._seen.get(timeout=seconds)
        except queue.Empty:
            for ref, obj in list(self._last.items()):
                self._judge(ref, obj)
            return
        if isinstance(seen, Exception):
            raise seen
        ref, obj = seen
        self._last[ref] = obj
        self._judge(ref, obj)

    def leave(self) -> None:
        self._over.set()
        with self._lock:
            watches = tuple(self._watches)
        for watch in watches:
            watch.close()

    def follow(self, resource: ServedResource, namespace: str, refs: Mapping[str, ObjectRef]) -> None:
        """A thread's work: everything that happens to `refs` (by name) in one place, until the room is left."""
        try:
            while not self._over.is_set():
                try:
                    self._follow_once(resource, namespace, refs)
                except Expired:
                    continue
                except TryLater:
                    self._over.wait(_POLL_SECONDS)
        except Forbidden:
            self._poll(refs.values())
        except Exception as exc:  # noqa: BLE001 -- a thread's error is raised in the caller's thread
            self._seen.put(exc)

    def _follow_once(self, resource: ServedResource, namespace: str, refs: Mapping[str, ObjectRef]) -> None:
        snapshot = self.cluster.snapshot(resource, namespace=namespace)
        there = {ObjectRef.of(obj).name: obj for obj in snapshot.objects}
        for name, ref in refs.items():
            self._seen.put((ref, there.get(name)))
        version = snapshot.resource_version
        while not self._over.is_set():
            watch = self.cluster.watch(
                resource, namespace=namespace, resource_version=version, timeout_seconds=_WATCH_SECONDS
            )
            with self._lock:
                self._watches.add(watch)
            if self._over.is_set():
                watch.close()
            for event in watch:
                version = event.resource_version or version
                changed = refs.get(ObjectRef.of(event.object).name)
                if changed is not None and event.type is not WatchType.BOOKMARK:
                    self._seen.put((changed, None if event.type is WatchType.DELETED else event.object))
            with self._lock:
                self._watches.discard(watch)
            self._over.wait(_BETWEEN_WATCHES_SECONDS)

    def _poll(self, refs: Iterable[ObjectRef]) -> None:
        """For identities that may get but not list and watch."""
        pause = _POLL_SECONDS
        try:
            while not self._over.is_set():
                for ref in refs:
                    self._seen.put((ref, self.cluster.get(ref)))
                self._over.wait(pause)
                pause = min(pause * 1.5, _MAX_POLL_SECONDS)
        except (ClusterError, TryLater) as exc:
            self._seen.put(exc)

    def _judge(self, ref: ObjectRef, obj: JsonObject | None) -> None:
        health = health_of(obj)
        if health != self.health[ref]:
            self.health[ref] = health
            if self.on_change:
                self.on_change(ref, health)


def _groups(
    cluster: ClusterClient, refs: Iterable[ObjectRef]
) -> list[tuple[ServedResource, str, dict[str, ObjectRef]]]:
    """One watch per kind and namespace."""
    groups: dict[tuple[ServedResource, str], dict[str, ObjectRef]] = {}
    for ref in refs:
        resource = cluster.resource_of(ref.group, ref.version, ref.kind)
        if resource is None:
            raise UnknownKind(f"{ref}: the cluster serves no {ref.kind} in {ref.api_version}", status=404)
        groups.setdefault((resource, ref.namespace if resource.is_namespaced else ""), {})[ref.name] = ref
    return [(resource, namespace, names) for (resource, namespace), names in groups.items()]


def _why_there(cluster: ClusterClient, ref: ObjectRef, uid: str) -> Why | None:
    """None if the object is gone, or another one has taken its name."""
    try:
        live = cluster.get(ref, metadata_only=True)
    except UnknownKind:
        return None
    except TryLater as exc:
        return Why(str(exc), exc.server_words, ref)
    if live is None or uid_of(live) != uid:
        return None
    finalizers = (live.get("metadata") or {}).get("finalizers") or []
    if not finalizers:
        return Why("still there", "", ref)
    return Why("still there, waits for its finalizers", ", ".join(map(str, finalizers)), ref)


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
            has_succeeded, failed = _read_end(live)
            if has_succeeded:
                return Why()
            if failed:
                return Why(f"{ref} failed", "; ".join(filter(None, [failed, *reasons(cluster, live)])), ref)
            words, said_by_server = f"{ref} has not ended in time", ""
        if time.monotonic() + pause > end:
            return Why(words, said_by_server or "; ".join(reasons(cluster, live) if live else []), ref)
        while_waiting()
        time.sleep(pause)
        pause = min(pause * 1.5, _MAX_PAUSE_SECONDS)


def _read_end(obj: JsonObject) -> tuple[bool, str]:
    """Whether a Job or Pod has succeeded, and what the cluster says of its failure, "" where there is none."""
    if ObjectRef.of(obj).group_kind == _POD:
        phase, message = status_of(obj).get("phase"), status_of(obj).get("message")
        return phase == "Succeeded", str(message or "its phase is Failed") if phase == "Failed" else ""
    if any(condition_of(obj, name).get("status") == "True" for name in _COMPLETE):
        return True, ""
    for condition in (condition_of(obj, name) for name in _FAILED):
        if condition.get("status") == "True":
            return False, condition_words(condition) or "its condition Failed is True"
    return False, ""
