"""See within a second what happens to the objects that are ours: one watch a kind and cluster, of metadata only.

A watch costs no list calls while nothing happens; it is carried on from its last bookmark, and only where that is too old
is the list taken again. What is kept in memory is the name and a fingerprint of each managed object. An event only marks
the object's row and wakes a worker (steps.correct): whether it means anything is found out there.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import close_old_connections
from django.utils import timezone

from approvals import wake
from approvals.access.port import connect
from approvals.ledger import drifts
from approvals.models import BundleDeployment, Cluster, InventoryItem
from approvals.watch.scopes import Scope, refused, scopes_of
from provisioner.cluster.answers import Watch, WatchEvent, WatchType
from provisioner.cluster.api import Cluster as Api
from provisioner.cluster.discovery import Resource
from provisioner.cluster.drift import fingerprint
from provisioner.errors import Expired, Forbidden, PratiqueError

logger = logging.getLogger(__name__)

# How often the inventories are looked at for kinds and objects that are new.
REFRESH_SECONDS = 1.0
WATCH_SECONDS = 240.0
# After a 410 every watch of a cluster lists again: not all of them at the same moment.
MOST_JITTER_SECONDS = 5.0
LONGEST_WAIT_SECONDS = 60.0
# A kind that nobody may watch is compared this often instead, by reading the objects themselves.
POLL_SECONDS = 60.0
# An object that never keeps still is compared at most this often.
CALM = timedelta(seconds=5)

Name = tuple[str, str]


@dataclass
class Book:
    """The managed objects of one scope: by namespace and name the row's id and the fingerprint last seen."""

    objects: dict[Name, tuple[int, bytes]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self, rows: Iterable[tuple[int, str, str, str]]) -> None:
        """Take over what the inventories hold; what is known of an object that stays is kept."""
        with self.lock:
            known = self.objects
            self.objects = {
                (namespace, name): (pk, known.get((namespace, name), (0, _short(seen)))[1])
                for pk, namespace, name, seen in rows
            }

    def note(self, name: Name, seen: str) -> int | None:
        """The row to compare where this is news; None where it is not, or not ours. "" is an object that is gone."""
        with self.lock:
            known = self.objects.get(name)
            if known is None or known[1] == _short(seen):
                return None
            self.objects[name] = (known[0], _short(seen))
            return known[0]

    def absent(self, there: set[Name]) -> list[Name]:
        with self.lock:
            return [name for name in self.objects if name not in there]


@dataclass
class Informer:
    """The watch of one scope, and the thread that keeps it."""

    cluster: Cluster
    scope: Scope
    book: Book = field(default_factory=Book)
    stop: threading.Event = field(default_factory=threading.Event)
    is_refused: bool = False
    lists: int = 0
    _watch: Watch | None = None

    def start(self) -> None:
        threading.Thread(target=self.run, daemon=True, name=f"{self.cluster.name} {self.scope}").start()

    def end(self) -> None:
        self.stop.set()
        if self._watch:
            self._watch.close()

    def run(self) -> None:
        """Watch until told to stop; whatever goes wrong is tried again, more and more rarely."""
        wait, version = 1.0, ""
        while not self.stop.is_set():
            close_old_connections()
            try:
                api = self.scope.seen_by(connect(self.cluster))
                resource = self.scope.resource(api)
                version = version or self.take_list(api, resource)
                version = self.follow(api, resource, version)
                wait = 1.0
            except Expired:
                version = ""
                self.stop.wait(random.uniform(0, MOST_JITTER_SECONDS))  # noqa: S311 - spreads load, keeps no secret
            except Forbidden as exc:
                logger.info("may not watch", extra={"scope": str(self.scope), "error": str(exc)})
                self.is_refused = True
                return
            except PratiqueError as exc:
                logger.warning("a watch broke off", extra={"scope": str(self.scope), "error": str(exc)})
                self.stop.wait(wait)
                wait = min(wait * 2, LONGEST_WAIT_SECONDS)
        close_old_connections()

    def take_list(self, api: Api, resource: Resource) -> str:
        """Compare what is there with what was seen last; the resourceVersion to watch from, that of the first page."""
        self.lists += 1
        version, there = "", set()
        for objects, at in api.pages(resource, namespace=self.scope.namespace, metadata_only=True):
            version = version or at
            there.update(map(_name, objects))
            self._tell([(_name(obj), fingerprint(obj)) for obj in objects])
        self._tell([(name, "") for name in self.book.absent(there)])
        return version

    def follow(self, api: Api, resource: Resource, version: str) -> str:
        """Watch once from `version`; the last one seen."""
        self._watch = api.watch(
            resource,
            namespace=self.scope.namespace,
            resource_version=version,
            timeout_seconds=WATCH_SECONDS,
            metadata_only=True,
        )
        try:
            for event in self._watch:
                if self.stop.is_set():
                    break
                version = event.resource_version or version
                self.take(event)
        finally:
            self._watch.close()
        return version

    def take(self, event: WatchEvent) -> None:
        if event.type is not WatchType.BOOKMARK:
            seen = "" if event.type is WatchType.DELETED else fingerprint(event.object)
            self._tell([(_name(event.object), seen)])

    def _tell(self, seen: Iterable[tuple[Name, str]]) -> None:
        """Mark and wake what is news, also to the row itself: a worker has compared what it wrote."""
        news = {pk: mark for name, mark in seen if (pk := self.book.note(name, mark)) is not None}
        if not news:
            return
        close_old_connections()
        rows = InventoryItem.objects.filter(pk__in=news).values_list("pk", "deployment_id", "fingerprint")
        marked = [(pk, deployment) for pk, deployment, known in rows if not known or known != news[pk]]
        drifts.mark([pk for pk, _ in marked], timezone.now())
        for deployment in {deployment for _, deployment in marked}:
            wake.drift(deployment)


@dataclass
class Informers:
    """All watches of one cluster, as its inventories ask for them."""

    cluster: Cluster
    running: dict[Scope, Informer] = field(default_factory=dict)
    polled_at: float = 0.0
    _state: object = None
    _refused: dict[Scope, float] = field(default_factory=dict)

    def run(self, stop: threading.Event) -> None:
        """Until `stop`; a thread's work."""
        try:
            while not stop.is_set():
                close_old_connections()
                self.look()
                stop.wait(REFRESH_SECONDS)
        finally:
            for informer in self.running.values():
                informer.end()

    def look(self) -> None:
        """Start what is missing, end what nobody needs, and let the watches know what is new in the inventories."""
        self._note_refused()
        state = self._state_of_inventories()
        if state == self._state:
            return
        self._state = state
