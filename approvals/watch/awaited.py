"""See what requests wait for: ServiceAccounts and RBAC, watched in one cluster while a request there waits for them.

Metadata only. An event says which requests to look at again and nothing else; whether the wait is over is found out by
that look. Where we may not watch, requests are looked at now and then all the same (ledger.waiting).
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db import OperationalError, close_old_connections
from django.utils import timezone

from approvals import instruments
from approvals.access.port import connect
from approvals.errors import Awaits
from approvals.ledger import waiting
from approvals.models import Cluster
from approvals.watch.hearing import hear
from provisioner.cluster.client.answers import Watch, WatchEvent, WatchType
from provisioner.errors import Expired, Forbidden, PratiqueError, UnknownKind

logger = logging.getLogger(__name__)

RBAC = "rbac.authorization.k8s.io"
KINDS: dict[Awaits, tuple[tuple[str, str], ...]] = {
    Awaits.ACCOUNT: (("", "ServiceAccount"),),
    Awaits.RIGHTS: tuple((RBAC, kind) for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")),
}
WATCH_SECONDS = 240.0
# Changes within this time are one change: a chart of rights has many objects.
TOGETHER_SECONDS = 1.0
# Where we may not watch, it is tried again after this long.
REFUSED_SECONDS = 3600.0
LONGEST_WAIT_SECONDS = 60.0


@dataclass
class _Lookout:
    """The watch of one kind, and the thread that keeps it."""

    cluster: Cluster
    awaits: Awaits
    group: str
    kind: str
    news: Changes
    stop: threading.Event = field(default_factory=threading.Event)
    _watch: Watch | None = None
    _thread: threading.Thread | None = None

    def start(self) -> None:
        name = f"{self.cluster.name} awaits {self.kind}"
        self._thread = threading.Thread(target=self.run, daemon=True, name=name)
        self._thread.start()

    def end(self) -> None:
        self.stop.set()
        if self._watch:
            self._watch.close()

    def run(self) -> None:
        wait = 1.0
        while not self.stop.is_set():
            close_old_connections()
            try:
                self._follow()
                wait = 1.0
            except Expired:
                self.stop.wait(wait)
            except Forbidden as exc:
                logger.info("may not watch", extra={"cluster": self.cluster.name, "kind": self.kind, "code": exc.code})
                self.stop.wait(REFUSED_SECONDS)
            except (PratiqueError, OperationalError) as exc:
                instruments.watch_breaks.labels(self.cluster.name).inc()
                code = exc.code if isinstance(exc, PratiqueError) else type(exc).__name__
                logger.warning(
                    "a watch broke off", extra={"cluster": self.cluster.name, "kind": self.kind, "code": code}
                )
                self.stop.wait(wait * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, keeps no secret
                wait = min(wait * 2, LONGEST_WAIT_SECONDS)
        close_old_connections()

    def _follow(self) -> None:
        api = connect(self.cluster)
        resource = api.resource_of(self.group, "", self.kind)
        if resource is None:
            raise UnknownKind(f"the cluster serves no {self.kind}", status=404)
        _, version = next(api.pages(resource, metadata_only=True))
        # What came between the failure and this watch has no event.
        self.news.note(self.awaits, None)
        while not self.stop.is_set():
            watch = api.watch(resource, resource_version=version, timeout_seconds=WATCH_SECONDS, metadata_only=True)
            self._watch = watch
            if self.stop.is_set():
                watch.close()
            try:
                for event in watch:
                    hear(self.cluster.name, event)
                    version = event.resource_version or version
                    if event.type is not WatchType.BOOKMARK:
                        self.news.note(self.awaits, _name(event))
            finally:
                watch.close()


@dataclass
class Changes:
    """What has happened since that was asked last: by what is awaited, the accounts; None stands for all of them."""

    noted: dict[Awaits, set[tuple[str, str] | None]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, awaits: Awaits, name: tuple[str, str] | None) -> None:
        with self.lock:
            self.noted.setdefault(awaits, set()).add(None if awaits is Awaits.RIGHTS else name)

    def take(self) -> dict[Awaits, set[tuple[str, str] | None]]:
        with self.lock:
            noted, self.noted = self.noted, {}
            return noted


@dataclass
class Awaited:
    """The watches of one cluster for what its requests wait for: none where none waits."""

    cluster: Cluster
    changes: Changes = field(default_factory=Changes)
    running: dict[tuple[str, str], _Lookout] = field(default_factory=dict)
    _looked_at: float | None = None

    def look(self, now: float) -> None:
        """Have what changed looked at, start and end watches as requests need them; `now` is monotonic."""
        if self._looked_at is not None and now - self._looked_at < TOGETHER_SECONDS:
            return
        self._looked_at = now
        for awaits, names in self.changes.take().items():
            waiting.look(list(self._concerned(awaits, names)), timezone.now())
        wanted = {
            kind: awaits
            for awaits in Awaits
            if waiting.waiting(self.cluster, awaits).exists()
            for kind in KINDS[awaits]
        }
        for kind in self.running.keys() - wanted.keys():
            self.running.pop(kind).end()
        for kind, awaits in wanted.items():
            if kind not in self.running:
                self.running[kind] = _Lookout(self.cluster, awaits, *kind, self.changes)
                self.running[kind].start()

    def end(self) -> None:
        for lookout in self.running.values():
            lookout.end()

    def _concerned(self, awaits: Awaits, names: set[tuple[str, str] | None]) -> Iterator[int]:
        for pk, spec in waiting.waiting(self.cluster, awaits).values_list("pk", "spec"):
            account = (str(spec.get("installNamespace", "")), str(spec.get("serviceAccountName", "")))
            if None in names or account in names:
                yield pk


def _name(event: WatchEvent) -> tuple[str, str]:
    meta = event.object.get("metadata") or {}
    return (str(meta.get("namespace") or ""), str(meta.get("name") or ""))
