"""See within a second what happens to the objects that are ours: one watch a kind and cluster, of metadata only.

A watch costs no list calls while nothing happens; it is carried on from its last bookmark, and only where that is too
old is the list taken again. What is kept in memory is the name and a fingerprint of each managed object. An event only
marks the object's row and wakes a worker (steps.correct): whether it means anything is found out there. Any event, also
one that is no news to the fingerprint, such as another status, is counted: the health of the deployment is read again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field

from django.db import OperationalError, close_old_connections

from approvals import wake
from approvals.clock import database_now
from approvals.ledger import drifts
from approvals.models import Cluster, InventoryItem
from approvals.watch.expected_changes import Appearances, ExpectedChanges
from approvals.watch.lookout import LONGEST_WAIT_SECONDS, Lookout, Name, name_of, note_break
from approvals.watch.scopes import Scope, ScopeRow, managed, scopes_of, state_of
from provisioner.cluster.client.answers import WatchType
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.client.discovery import ServedResource
from provisioner.cluster.drift import fingerprint

logger = logging.getLogger(__name__)

# How often the inventories are looked at for kinds and objects that are new.
REFRESH_SECONDS = 1.0
# Objects of a kind that nobody may watch are compared this often instead, and their watch is tried again.
POLL_SECONDS = 60.0
# A kind that we may not watch in the whole cluster is watched as its installers, for this long.
REFUSAL_SECONDS = 3600.0
GONE = ""
UNSEEN = b"?"


@dataclass
class Book:
    """The managed objects of one scope: by namespace and name the row's id, the fingerprint last seen, the deployment.

    `stirred` are the deployments whose objects something happened to since that was asked last.
    """

    objects: dict[Name, tuple[int, bytes, int]] = field(default_factory=dict)
    stirred: set[int] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self, rows: Iterable[ScopeRow]) -> None:
        """Take over what the inventories hold; what is known of an object that stays is kept."""
        with self.lock:
            known = self.objects
            self.objects = {
                name: known.get(name, (row.pk, _short(row.fingerprint) or UNSEEN, row.deployment))
                for row in rows
                for name in [(row.namespace, row.name)]
            }

    def doubt(self) -> None:
        """What was noted may not have been told: everything is news again."""
        with self.lock:
            self.objects = {name: (pk, UNSEEN, deployment) for name, (pk, _, deployment) in self.objects.items()}

    def note(self, name: Name, seen: str) -> int | None:
        """The row to compare where this is news; None where it is not, or not ours. "" is an object that is gone."""
        with self.lock:
            known = self.objects.get(name)
            if known is None:
                return None
            pk, mark, deployment = known
            self.stirred.add(deployment)
            if mark == _short(seen):
                return None
            self.objects[name] = (pk, _short(seen), deployment)
            return pk

    def take_stirred(self) -> set[int]:
        with self.lock:
            stirred, self.stirred = self.stirred, set()
            return stirred

    def absent(self, there: set[Name]) -> list[Name]:
        with self.lock:
            return [name for name in self.objects if name not in there]


@dataclass
class Informer(Lookout):
    """The watch of one scope; it is carried on from `version`, "" where the list has to be taken."""

    scope: Scope
    book: Book = field(default_factory=Book)
    version: str = ""
    is_refused: bool = False
    lists: int = 0

    @property
    def what(self) -> str:
        return str(self.scope)

    def look(self, api: Api) -> None:
        api = self.scope.seen_by(api)
        resource = self.scope.resource(api)
        self.version = self.version or self.take_list(api, resource)
        self.follow(api, resource)

    def doubt(self) -> None:
        self.book.doubt()
        self.version = ""

    def refused(self) -> None:
        """Its thread ends: who started it decides as whom it is watched instead."""
        self.is_refused = True
        self.stop.set()

    def take_list(self, api: Api, resource: ServedResource) -> str:
        """Compare what is there with what was seen last; the resourceVersion to watch from, that of the first page."""
        self.lists += 1
        version = ""
        there: set[Name] = set()
        for objects, at in api.pages(resource, namespace=self.scope.namespace, metadata_only=True):
            version = version or at
            there.update(map(name_of, objects))
            self.tell([(name_of(obj), fingerprint(obj)) for obj in objects])
        self.tell([(name, GONE) for name in self.book.absent(there)])
        return version

    def follow(self, api: Api, resource: ServedResource) -> None:
        """Watch once, from `version` on; it moves on with every event that was told."""
        with closing(self.events(api, resource, self.version, namespace=self.scope.namespace)) as events:
            for event in events:
                if event.type is not WatchType.BOOKMARK:
                    is_gone = event.type is WatchType.DELETED
                    self.tell([(name_of(event.object), GONE if is_gone else fingerprint(event.object))])
                self.version = event.resource_version or self.version

    def tell(self, seen: Iterable[tuple[Name, str]]) -> None:
        """Mark and wake what is news, also to the row itself: what a worker wrote, it has compared."""
        news = {pk: mark for name, mark in seen if (pk := self.book.note(name, mark)) is not None}
        if not news:
            return
        rows = InventoryItem.objects.filter(pk__in=news).values_list("pk", "deployment_id", "fingerprint")
        marked = [(pk, deployment) for pk, deployment, known in rows if not known or known != news[pk]]
        mark_and_wake(marked)


@dataclass
class Informers:
    """All watches of one cluster, as its inventories ask for them."""

    cluster: Cluster
    running: dict[Scope, Informer] = field(default_factory=dict)
    _state: object = None
    _appearances: Appearances = field(init=False)
    _expected: ExpectedChanges = field(init=False)
    _refused: dict[Scope, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._appearances = Appearances(self.cluster)
        self._expected = ExpectedChanges(self.cluster)

    def run(self, stop: threading.Event) -> None:
        """A thread's work, until `stop`."""
        wait = REFRESH_SECONDS
        while not stop.is_set():
            try:
                close_old_connections()
                self._look_at_all()
                wait = REFRESH_SECONDS
            except OperationalError as exc:
                logger.warning("the database does not answer", extra={"error": type(exc).__name__})
            except Exception as exc:  # noqa: BLE001 - without this thread nothing of the cluster is watched for drift
                note_break(self.cluster, "what is to be watched", exc)
                self._state = None
                wait = min(wait * 2, LONGEST_WAIT_SECONDS)
            stop.wait(wait)
        for informer in self.running.values():
            informer.end()
        self._expected.end()
        close_old_connections()

    def _look_at_all(self) -> None:
        self.look(time.monotonic())
        drifts.stir({one for informer in self.running.values() for one in informer.book.take_stirred()})
        self._appearances.look(time.monotonic())
        self._expected.look(time.monotonic())

    def look(self, now: float) -> None:
        """Start what is missing, end what nobody needs, and tell the watches of what is new in the inventories."""
        self._note_refused(now)
        state = (state_of(self.cluster), frozenset(self._refused))
        if state == self._state:
            return
        wanted = scopes_of(self.cluster, self._refused)
        for scope in self.running.keys() - wanted.keys():
            self.running.pop(scope).end()
        for scope, rows in wanted.items():
            if scope in self._refused:
                mark_and_wake(managed(self.cluster).filter(pk__in=[row.pk for row in rows]).values_list(*_MARKED))
            elif scope in self.running:
                self.running[scope].book.refresh(rows)
            else:
                self._start(scope, rows)
        # What was never compared may have changed before anybody watched it.
        mark_and_wake(managed(self.cluster).filter(fingerprint="", look_at__isnull=True).values_list(*_MARKED))
        self._state = state

    def _start(self, scope: Scope, rows: list[ScopeRow]) -> None:
        informer = Informer(scope, cluster=self.cluster)
        informer.book.refresh(rows)
        self.running[scope] = informer
        informer.start()

    def _note_refused(self, now: float) -> None:
        """A refused watch is tried again; its objects are compared anew whenever it is refused."""
        for scope in [scope for scope, until in self._refused.items() if until <= now]:
            del self._refused[scope]
        for scope, informer in [(scope, one) for scope, one in self.running.items() if not one.is_alive]:
            del self.running[scope]
            self._state = None
            if informer.is_refused:
                self._refused[scope] = now + (POLL_SECONDS if scope.installer else REFUSAL_SECONDS)


_MARKED = ("pk", "deployment_id")


def mark_and_wake(marked: Iterable[tuple[int, int]]) -> None:
    """Have these objects, by (row, deployment), compared now."""
    rows = dict(marked)
    drifts.mark(rows, database_now())
    drifts.stir(set(rows.values()))
    for deployment in sorted(set(rows.values())):
        wake.drift(deployment)


def _short(mark: str) -> bytes:
    """Half of a fingerprint, as bytes: enough to tell two states of one object apart."""
    return bytes.fromhex(mark[:16])
