"""Notice that an API appears which objects wait for that were left out. Nothing is asked while none waits.

Discovery is read, which is one request for all kinds there are; a kind that is served is no list call.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from approvals.access.port import connect
from approvals.clock import database_now
from approvals.ledger import optionals
from approvals.models import Cluster
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import PratiqueError

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
