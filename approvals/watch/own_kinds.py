"""See our own objects beside BundleDeployments: mirrored requests, catalogs, what says how requests are decided, and
reviews that people make with kubectl.

A mirror that somebody deleted or edited is written anew, and nothing in it is believed. It is ours as long as its
resourceVersion is the one after our last write (Request.mirrored_version). Who wrote it is not asked: whoever may edit
it may also use our field manager's name.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import DataError, connections

from approvals import kubectl_reviews, wake
from approvals.access.port import connect
from approvals.catalogs.schedule import forget_catalog, observe_catalog
from approvals.deciding.table import BY_NAME
from approvals.ledger.deciding import deciding_objects
from approvals.ledger.pivots import person_record
from approvals.models import Catalog, DecidingObject, Request
from approvals.steps.mirroring.mirror import WRITING
from approvals.watch.authorship import Authorship
from approvals.watch.lookout import OWN_VERSION, OwnKindLookout, note_break
from provisioner.api_groups import OWN_GROUP
from provisioner.cluster.client.answers import WatchEvent, WatchType
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.client.discovery import ServedResource

# A mirror is written in two steps, and its row after that: so long an event waits for what follows it.
SETTLE_SECONDS = 1.0
GONE = ""


@dataclass
class SeenMirrors(OwnKindLookout):
    """The watch of a cluster for what became of mirrors. `_seen`: resourceVersions by name, GONE for a deleted one."""

    kind = "BundleDeploymentRequest"
    _seen: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _timer: threading.Timer | None = None

    @property
    def what(self) -> str:
        return "mirrored requests"

    def look_at(self, api: Api, resource: ServedResource) -> None:
        listed: dict[str, str] = {}
        version = ""
        for objects, at in api.pages(resource, metadata_only=True):
            version = version or at
            listed |= {obj["metadata"]["name"]: str(obj["metadata"]["resourceVersion"]) for obj in objects}
        self._note({name: listed.get(name, GONE) for name in {*listed, *self._known()}})
        self.follow_all(api, resource, version, self._heard)

    def _heard(self, event: WatchEvent) -> None:
        is_gone = event.type is WatchType.DELETED
        about = event.object["metadata"]
        self._note({about["name"]: GONE if is_gone else str(about["resourceVersion"])})

    def end(self) -> None:
        super().end()
        with self._lock:
            if self._timer:
                self._timer.cancel()

    def _known(self) -> list[str]:
        """The names of all mirrors that ought to be there."""
        mirrored = Request.objects.filter(
            deployment__cluster=self.cluster, deployment__gone_at__isnull=True, mirrored_at__isnull=False
        )
        return [f"{name}-{number}" for name, number in mirrored.values_list("deployment__name", "number")]

    def _note(self, seen: dict[str, str]) -> None:
        with self._lock:
            self._seen |= seen
            if self._timer is None and self._seen and not self.stop.is_set():
                self._timer = threading.Timer(SETTLE_SECONDS, self._settle)
                self._timer.daemon = True
                self._timer.start()

    def _settle(self) -> None:
        with self._lock:
            seen, self._seen, self._timer = self._seen, {}, None
        try:
            left = repair(self.cluster.pk, seen)
        except Exception as exc:  # noqa: BLE001 - whatever it was, what was seen is looked at again
            note_break(self.cluster, self.what, exc)
            left = seen
        finally:
            connections.close_all()
        if left:
            with self._lock:
                left = {name: version for name, version in left.items() if name not in self._seen}
            self._note(left)


def repair(cluster_id: int, seen: dict[str, str]) -> dict[str, str]:
    """Have the mirrors written anew that are not as we left them. `seen`: resourceVersion by name, GONE if deleted.

    Returns those that a worker is writing just now: what it leaves is known after that.
    """
    left = {}
    for name, version in seen.items():
        deployment, _, number = name.rpartition("-")
        if not number.isdecimal() or number != str(int(number)):
            continue
        rows = Request.objects.filter(
            deployment__cluster_id=cluster_id,
            deployment__name=deployment,
            deployment__gone_at__isnull=True,
            number=number,
        ).exclude(mirrored_version=version or "gone")
        for pk, deployment_id, known in rows.values_list("pk", "deployment_id", "mirrored_version"):
            if known == WRITING:
                left[name] = version
                continue
            Request.objects.filter(pk=pk, mirrored_version=known).update(mirrored_at=None)
            wake.deployment(deployment_id)
    return left


logger = logging.getLogger(__name__)


@dataclass
class SeenCatalogs(OwnKindLookout):
    """The watch of one cluster for catalogs."""

    kind = "Catalog"
    authorship: Authorship = field(init=False)

    def __post_init__(self) -> None:
        self.authorship = Authorship(self.cluster, Catalog)

    @property
    def what(self) -> str:
        return "catalogs"

    def look_at(self, api: Api, resource: ServedResource) -> None:
        snapshot = api.snapshot(resource)
        for obj in snapshot.objects:
            self._see(api, obj, is_event=False)
        there = {obj["metadata"]["uid"] for obj in snapshot.objects}
        known = Catalog.objects.filter(cluster=self.cluster).exclude(uid__in=there)
        for uid in known.values_list("uid", flat=True):
            forget_catalog(cluster=self.cluster, uid=uid)
        self.follow_all(api, resource, snapshot.resource_version, partial(self._heard, api), metadata_only=False)

    def _heard(self, api: Api, event: WatchEvent) -> None:
        if event.type is WatchType.DELETED:
            forget_catalog(cluster=self.cluster, uid=event.object["metadata"]["uid"])
        else:
            self._see(api, event.object, is_event=True)

    def _see(self, api: Api, obj: Mapping[str, Any], *, is_event: bool) -> None:
        """One that the database cannot keep, as for a NUL in a text, must not hide the others."""
        writer_of = partial(self.authorship.writer_of, api, is_event=is_event)
        try:
            writer = writer_of(obj)
            record = person_record(writer) if writer else None
            row = observe_catalog(cluster=self.cluster, obj=obj, writer=record, is_listed=not is_event)
        except (DataError, UnicodeError) as exc:
            about = {"cluster": self.cluster.name, "catalog": obj["metadata"]["name"], "error": type(exc).__name__}
            logger.warning("a catalog cannot be kept", extra=about)
            self.authorship.note(obj, is_kept=False)
            return
        self.authorship.note(obj, is_kept=True)
        if row is not None:
            wake.catalog(row.pk)


@dataclass
class SeenDecidingObjects(OwnKindLookout):
    """The watch of one cluster for one kind of objects that say how requests are decided."""

    kind: str
    authorship: Authorship = field(init=False)

    def __post_init__(self) -> None:
        self.authorship = Authorship(self.cluster, DecidingObject)

    @property
    def what(self) -> str:
        return self.kind

    def look_at(self, api: Api, resource: ServedResource) -> None:
        snapshot = api.snapshot(resource)
        for obj in snapshot.objects:
            self._see(api, obj, is_listed=True)
        self._forget_all_but({obj["metadata"]["uid"] for obj in snapshot.objects})
        self.follow_all(api, resource, snapshot.resource_version, partial(self._heard, api), metadata_only=False)

    def refused(self) -> None:
        """A kind that is not served has no objects. Where we may not watch it, they stay as they were seen last."""
        if connect(self.cluster).resource_of(OWN_GROUP, OWN_VERSION, self.kind) is None:
            self._forget_all_but(set())
        super().refused()

    def _heard(self, api: Api, event: WatchEvent) -> None:
        if event.type is WatchType.DELETED:
            deciding_objects.forget(cluster=self.cluster, uid=event.object["metadata"]["uid"])
        else:
            self._see(api, event.object, is_listed=False)

    def _forget_all_but(self, there: set[str]) -> None:
        known = DecidingObject.objects.filter(cluster=self.cluster, kind=self.kind, gone_at=None)
        for uid in known.exclude(uid__in=there).values_list("uid", flat=True):
            deciding_objects.forget(cluster=self.cluster, uid=uid)

    def _see(self, api: Api, obj: Mapping[str, Any], *, is_listed: bool) -> None:
        """One that the database cannot keep, as for a NUL in a text, must not hide the others. The gate reads it in the
        cluster before anything is applied."""
        try:
            writer = None
            if BY_NAME[self.kind].are_authors_proved:
                writer = self.authorship.writer_of(api, obj, is_event=not is_listed)
            row = deciding_objects.observe(
                cluster=self.cluster,
                kind=self.kind,
                obj=obj,
                writer=person_record(writer) if writer else None,
                is_listed=is_listed,
            )
        except (DataError, UnicodeError) as exc:
            about = {"cluster": self.cluster.name, "object": obj["metadata"]["name"], "error": type(exc).__name__}
            logger.warning("an object that says how requests are decided cannot be kept", extra=about)
            self.authorship.note(obj, is_kept=False)
            return
        self.authorship.note(obj, is_kept=True)
        if row is not None:
            wake.deciding_object(row.pk)


@dataclass
class SeenReviews(OwnKindLookout):
    """The watch of one cluster for reviews."""

    kind = "BundleDeploymentReview"

    @property
    def what(self) -> str:
        return "reviews by kubectl"

    def look_at(self, api: Api, resource: ServedResource) -> None:
        found, version = [], ""
        for objects, at in api.pages(resource, metadata_only=True):
            version = version or at
            found += [obj["metadata"] for obj in objects]
        for about in sorted(found, key=lambda it: (it["creationTimestamp"], it["name"])):
            kubectl_reviews.note_seen(self.cluster, about)
        self.follow_all(api, resource, version, self._heard)

    def _heard(self, event: WatchEvent) -> None:
        if event.type is WatchType.ADDED:
            kubectl_reviews.note_seen(self.cluster, event.object["metadata"])
        elif event.type is WatchType.DELETED:
            kubectl_reviews.note_gone(self.cluster, event.object["metadata"]["uid"])
