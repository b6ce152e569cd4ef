"""See the catalogs that a cluster names: the rows are copies, and who reads them is woken."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.db import DataError

from approvals import wake
from approvals.catalogs.schedule import forget_catalog, observe_catalog
from approvals.ledger.pivots import person_record
from approvals.models import Catalog
from approvals.watch.authorship import Authorship
from approvals.watch.lookout import OwnKindLookout
from provisioner.cluster.client.answers import WatchEvent, WatchType
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.cluster.client.discovery import ServedResource

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
