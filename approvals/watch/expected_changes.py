"""See what requests wait for: ServiceAccounts and RBAC, watched in one cluster while a request there waits for them.

Metadata only. An event says which requests to look at again and nothing else; whether the wait is over is found out by
that look. Where we may not watch, requests are looked at now and then all the same (ledger.waits).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from approvals.access.port import connect
from approvals.bundle_spec import parse_spec
from approvals.clock import database_now
from approvals.errors import Awaits
from approvals.ledger import optionals, retries
from approvals.models import Cluster
from approvals.watch.lookout import Lookout, Name, name_of
from provisioner.api_groups import RBAC_GROUP
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import PratiqueError, UnknownKind

KINDS: dict[Awaits, tuple[tuple[str, str], ...]] = {
    Awaits.WINDOW: (),  # these have a watch of their own (watch.own_kinds)
    Awaits.RING: (),  # nothing in the cluster tells: ledger.rollouts has those looked at that may go on
    Awaits.ACCOUNT: (("", "ServiceAccount"),),
    Awaits.RIGHTS: tuple((RBAC_GROUP, kind) for kind in ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")),
}
# Changes within this time are one change: a chart of rights has many objects.
TOGETHER_SECONDS = 1.0
# Where we may not watch, it is tried again after this long.
REFUSED_SECONDS = 3600.0


@dataclass
class Changes:
    """What has happened since that was asked last: by what is awaited, the accounts; None stands for all of them."""

    noted: dict[Awaits, set[Name | None]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, awaits: Awaits, name: Name | None) -> None:
        with self.lock:
            self.noted.setdefault(awaits, set()).add(None if awaits is Awaits.RIGHTS else name)

    def take(self) -> dict[Awaits, set[Name | None]]:
        with self.lock:
            noted, self.noted = self.noted, {}
            return noted


@dataclass
class _Kind(Lookout):
    """The watch of one kind for what requests await."""

    awaits: Awaits
    group: str
    kind: str
    news: Changes

    @property
    def what(self) -> str:
        return f"requests that wait for {self.kind}"

    def look(self, api: Api) -> None:
        resource = api.resource_of(self.group, "", self.kind)
        if resource is None:
            raise UnknownKind(f"the cluster serves no {self.kind}", status=404)
        _, version = next(api.pages(resource, metadata_only=True))
        # What came between the failure and this watch has no event.
        self.news.note(self.awaits, None)
        self.follow_all(api, resource, version, lambda event: self.news.note(self.awaits, name_of(event.object)))

    def doubt(self) -> None:
        """Every look begins with a list."""

    def refused(self) -> None:
        self.stop.wait(REFUSED_SECONDS)


@dataclass
class ExpectedChanges:
    """The watches of one cluster for what its requests wait for: none where none waits."""

    cluster: Cluster
    changes: Changes = field(default_factory=Changes)
    running: dict[tuple[str, str], _Kind] = field(default_factory=dict)
    _looked_at: float | None = None

    def look(self, now: float) -> None:
        """Have what changed looked at, start and end watches as requests need them; `now` is monotonic."""
        if self._looked_at is not None and now - self._looked_at < TOGETHER_SECONDS:
            return
        self._looked_at = now
        for awaits, names in self.changes.take().items():
            retries.look(list(self._concerned(awaits, names)), database_now())
        wanted = {
            kind: awaits
            for awaits in Awaits
            if retries.waiting(self.cluster, awaits).exists()
            for kind in KINDS[awaits]
        }
        for kind in self.running.keys() - wanted.keys():
            self.running.pop(kind).end()
        for kind, awaits in wanted.items():
            if kind not in self.running or not self.running[kind].is_alive:
                self.running[kind] = _Kind(awaits, *kind, self.changes, cluster=self.cluster)
                self.running[kind].start()

    def end(self) -> None:
        for lookout in self.running.values():
            lookout.end()

    def _concerned(self, awaits: Awaits, names: set[Name | None]) -> Iterator[int]:
        for pk, spec in retries.waiting(self.cluster, awaits).values_list("pk", "spec"):
            if None in names or parse_spec(spec).account in names:
                yield pk


logger = logging.getLogger(__name__)

POLL_SECONDS = 5.0


@dataclass
class Appearances:
    """The APIs of one cluster that are waited for."""

    cluster: Cluster
    _looked_at: float | None = None
    _api: Api | None = None

    def look(self, now: float) -> None:
        """Have those objects tried whose API is served now; `now` is monotonic."""
        if self._looked_at is not None and now - self._looked_at < POLL_SECONDS:
            return
        self._looked_at = now
        idle = optionals.waiting(self.cluster).filter(look_at__isnull=True)
        for group, version, kind in sorted(set(idle.values_list("group", "version", "kind"))):
            if self._is_served(group, version, kind):
                optionals.mark(idle.filter(group=group, version=version, kind=kind), database_now())

    def _is_served(self, group: str, version: str, kind: str) -> bool:
        try:
            self._api = self._api or connect(self.cluster)
            return self._api.resource_of(group, version, kind) is not None
        except PratiqueError as exc:
            logger.info("could not see which APIs there are", extra={"cluster": self.cluster.name, "code": exc.code})
            self._api = None
            return False
