"""The thread that keeps one watch of a cluster: whatever ends it but its owner, it begins again.

What is to be made of the events, and how they are listed first, is said by those who derive from it.
"""

from __future__ import annotations

import logging
import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import OperationalError, close_old_connections, connections

from approvals import instruments
from approvals.access.port import connect
from approvals.clock import database_now
from approvals.models import Cluster
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.answers import Watch, WatchEvent, WatchType
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.client.discovery import ServedResource
from provisioner.errors import Expired, Forbidden, PratiqueError
from provisioner.values import JsonObject

_CHANGES = frozenset({WatchType.ADDED, WatchType.MODIFIED})


def hear(cluster: str, event: WatchEvent) -> None:
    """Count an event of the watch, and measure how late it is where the object says when it was changed."""
    instruments.watch_events.labels(cluster).inc()
    changed_at = last_change_of(event.object) if event.type in _CHANGES else None
    if changed_at is not None:
        lag = (database_now() - changed_at).total_seconds()
        instruments.watch_lag.labels(cluster).observe(max(0.0, lag))


def last_change_of(obj: Mapping[str, Any]) -> datetime | None:
    """The newest time that the API server noted of who wrote which fields; None where it noted none."""
    entries = (obj.get("metadata") or {}).get("managedFields")
    times = [_time(one.get("time")) for one in entries if isinstance(one, dict)] if isinstance(entries, list) else []
    return max((one for one in times if one is not None), default=None)


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else None


logger = logging.getLogger(__name__)

WATCH_SECONDS = 240.0
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 60.0
# After a 410 every watch of a cluster lists again: not all of them at the same moment.
MOST_JITTER_SECONDS = 5.0
OWN_VERSION = "v1alpha2"
# Where the cluster does not serve a kind of ours, or does not let us watch it, it is tried again after this long.
AGAIN_SECONDS = 30.0

# Namespace and name.
Name = tuple[str, str]


@dataclass(kw_only=True)
class Lookout(ABC):
    """One watch and its thread. `end` ends both for good."""

    cluster: Cluster
    stop: threading.Event = field(default_factory=threading.Event)
    _watch: Watch | None = None
    _thread: threading.Thread | None = None

    @property
    @abstractmethod
    def what(self) -> str:
        """What is watched, for the log and the thread's name."""

    @abstractmethod
    def look(self, api: Api) -> None:
        """List where that has to be, then watch once; returns when the API server has ended the watch."""

    @abstractmethod
    def doubt(self) -> None:
        """What was heard may not have been told, or is not known any more: the next look begins with a list."""

    @abstractmethod
    def refused(self) -> None:
        """We may not watch it; called once for each time that the cluster says so."""

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        self._thread = threading.Thread(target=self.run, daemon=True, name=f"{self.cluster.name} {self.what}")
        self._thread.start()

    def end(self) -> None:
        self.stop.set()
        if self._watch:
            self._watch.close()

    def run(self) -> None:
        """Look until told to stop; whatever goes wrong is logged, counted and tried again, more and more rarely."""
        wait = FIRST_WAIT_SECONDS
        while not self.stop.is_set():
            try:
                close_old_connections()
                self.look(connect(self.cluster))
                wait = FIRST_WAIT_SECONDS
            except Expired:
                self.doubt()
                self.stop.wait(random.uniform(0, MOST_JITTER_SECONDS))  # noqa: S311 - spreads load, keeps no secret
            except Forbidden as exc:
                about = {"cluster": self.cluster.name, "watch": self.what, "code": exc.code}
                logger.info("may not watch", extra=about)
                self.refused()
            except Exception as exc:  # noqa: BLE001 - the watch goes on, and note_break logs it
                note_break(self.cluster, self.what, exc)
                if not isinstance(exc, PratiqueError):
                    self.doubt()
                self.stop.wait(wait * random.uniform(0.5, 1.0))  # noqa: S311 - spreads load, keeps no secret
                wait = min(wait * 2, LONGEST_WAIT_SECONDS)
        self._let_go_of_database()

    def events(
        self, api: Api, resource: ServedResource, version: str, *, namespace: str = "", metadata_only: bool = True
    ) -> Generator[WatchEvent]:
        """Those of one watch from `version` on. To be closed by who reads them (contextlib.closing)."""
        self._let_go_of_database()
        watch = api.watch(
            resource,
            namespace=namespace,
            resource_version=version,
            timeout_seconds=WATCH_SECONDS,
            metadata_only=metadata_only,
        )
        self._watch = watch
        if self.stop.is_set():
            watch.close()
        try:
            for event in watch:
                hear(self.cluster.name, event)
                yield event
        finally:
            watch.close()

    def follow_all(
        self,
        api: Api,
        resource: ServedResource,
        version: str,
        heard: Callable[[WatchEvent], None],
        *,
        metadata_only: bool = True,
    ) -> None:
        """Watch again and again, from `version` on, until told to stop; `heard` takes each event but bookmarks."""
        while not self.stop.is_set():
            with closing(self.events(api, resource, version, metadata_only=metadata_only)) as events:
                for event in events:
                    version = event.resource_version or version
                    if event.type is not WatchType.BOOKMARK:
                        heard(event)

    def _let_go_of_database(self) -> None:
        """For minutes nothing may happen, and there is a thread for each kind: the database has not so many places."""
        if threading.current_thread() is self._thread:
            connections.close_all()


class OwnKindLookout(Lookout):
    """The watch of a kind of our own in a cluster, which need not serve it: every look begins with a list."""

    kind: str

    def look(self, api: Api) -> None:
        resource = api.resource_of(OWN_GROUP, OWN_VERSION, self.kind)
        if resource is None:
            api.forget_discovery()
            self.refused()
        else:
            self.look_at(api, resource)

    @abstractmethod
    def look_at(self, api: Api, resource: ServedResource) -> None:
        """List, and then watch until told to stop."""

    def doubt(self) -> None:
        """Every look begins with a list."""

    def refused(self) -> None:
        self.stop.wait(AGAIN_SECONDS)


def note_break(cluster: Cluster, what: str, error: Exception) -> None:
    """Log and count that a watch, or the thread that starts watches, broke off and is to go on.

    What nobody foresaw counts as an uncaught exception, too: there is an alert on those.
    """
    instruments.watch_breaks.labels(cluster.name).inc()
    about = {"cluster": cluster.name, "watch": what}
    if isinstance(error, PratiqueError | OperationalError):
        code = error.code if isinstance(error, PratiqueError) else type(error).__name__
        logger.warning("a watch broke off", extra={**about, "code": code})
        return
    instruments.crashes.labels("thread").inc()
    logger.error("uncaught exception: a watch was interrupted and continues", extra=about, exc_info=error)


def name_of(obj: JsonObject) -> Name:
    meta = obj.get("metadata") or {}
    return (str(meta.get("namespace") or ""), str(meta.get("name") or ""))
