"""Who writes takes turns: what one person makes hundreds of holds up nobody else's first (security-rules.md S40).

A watch is read ahead by a thread of its own, and what it has read is looked at in turn. What is about one object stays
in its order, whoever wrote.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import orjson

from approvals import admission
from approvals.models import Cluster
from provisioner.cluster.client.answers import Watch, WatchEvent

T = TypeVar("T")
# So much is read ahead at most.
MOST_AHEAD, MOST_AHEAD_BYTES = 2000, 32 * 1024 * 1024


class Turns(Generic[T]):
    """What waits, by group: each group has one turn after the other. `uid` is the object that an item is about."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, deque[tuple[str, T]]] = OrderedDict()
        # Of an object of which something waits: in which group, and how much.
        self._waiting: dict[str, tuple[str, int]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, group: str, uid: str, item: T) -> None:
        self._count += 1
        group, count = self._waiting.get(uid, (group, 0))
        self._waiting[uid] = (group, count + 1)
        self._groups.setdefault(group, deque()).append((uid, item))

    def take(self) -> T:
        """The next one; there has to be one."""
        self._count -= 1
        group, waiting = self._groups.popitem(last=False)
        uid, item = waiting.popleft()
        if waiting:
            self._groups[group] = waiting
        count = self._waiting.pop(uid)[1]
        if count > 1:
            self._waiting[uid] = (group, count - 1)
        return item


def writer_in(obj: Mapping[str, Any]) -> str:
    """Whose turn it takes, as its stamp says; that proves nothing."""
    who = admission.identity_in(admission.stamp_of(obj))
    return who.username if who else ""


class EventsInTurn:
    """The events of one watch. `version` is that of the last one that was read, when the iteration has ended."""

    def __init__(self, watch: Watch, version: str):
        self.version = version
        self._watch = watch
        self._turns: Turns[tuple[WatchEvent, int]] = Turns()
        self._bytes = 0
        self._changed = threading.Condition()
        self._error: Exception | None = None
        self._has_ended = False

    def __iter__(self) -> Generator[WatchEvent]:
        reader = threading.Thread(target=self._read_events, daemon=True, name="reads ahead")
        reader.start()
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: len(self._turns) or self._has_ended)
                    if not len(self._turns):
                        break
                    event, size = self._turns.take()
                    self._bytes -= size
                    self._changed.notify_all()
                yield event
        finally:
            self._end()
            self._watch.close()
            reader.join()
        if self._error:
            raise self._error

    def _read_events(self) -> None:
        try:
            for event in self._watch:
                about, size = event.object.get("metadata") or {}, len(orjson.dumps(event.object))
                group = writer_in(event.object) if about else ""
                with self._changed:
                    self._changed.wait_for(lambda: self._has_ended or self._has_room())
                    if self._has_ended:
                        return
                    self.version = event.resource_version or self.version
                    self._bytes += size
                    self._turns.put(group, str(about.get("uid") or ""), (event, size))
                    self._changed.notify_all()
        except Exception as exc:  # noqa: BLE001 - whoever iterates hears of it, when all that came before is looked at
            self._error = exc
        finally:
            self._end()

    def _has_room(self) -> bool:
        return len(self._turns) < MOST_AHEAD and self._bytes < MOST_AHEAD_BYTES

    def _end(self) -> None:
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()


WORDS = "two watchers died while reading it. It is read again when its spec changes"
# More than this are not poison but a defect of the watch itself.
MOST = 100


def is_skipped(cluster: Cluster, obj: Mapping[str, Any]) -> bool:
    return _mark(obj) in cluster.watch_skips


@contextmanager
def noted(cluster: Cluster, obj: Mapping[str, Any]) -> Iterator[None]:
    """After a death: note which object is looked at, until that has come to an end."""
    if not cluster.watch_deaths:
        yield
        return
    rows = Cluster.objects.filter(pk=cluster.pk)
    rows.update(watch_at=_mark(obj))
    try:
        yield
    except Exception:  # an error is no death: the mark goes, and the error goes on
        rows.update(watch_at="")
        raise
    rows.update(watch_at="")


def skip_what_killed(cluster: Cluster) -> None:
    """Leave aside from now on what a watcher before this one was looking at when it died."""
    cluster.refresh_from_db(fields=["watch_deaths", "watch_at", "watch_skips"])
    if cluster.watch_at:
        cluster.watch_skips = [*cluster.watch_skips, cluster.watch_at][-MOST:]
        cluster.watch_at = ""
        cluster.save(update_fields=["watch_at", "watch_skips"])


def note_all_seen(cluster: Cluster) -> None:
    """Everything was looked at, and nobody died."""
    if cluster.watch_deaths:
        cluster.watch_deaths = 0
        Cluster.objects.filter(pk=cluster.pk).update(watch_deaths=0)


def _mark(obj: Mapping[str, Any]) -> str:
    """The object as its spec is now: what we write to it ourselves, such as its status, changes no generation."""
    meta = obj["metadata"]
    return f"{meta['name']} {meta['uid']} {meta.get('generation', 0)}"
