"""Whether the content store can be used, and how much room its folder has left."""

from __future__ import annotations

from prometheus_client.core import GaugeMetricFamily, Metric

from approvals.encryption.files import content_files
from approvals.errors import StoreUnavailable
from approvals.metrics.sources import SourceAway


class ContentStoreCollector:
    def read(self) -> list[Metric]:
        files = content_files()
        try:
            files.look()
            room = files.room()
        except (StoreUnavailable, OSError) as exc:
            raise SourceAway(type(exc).__name__) from exc
        if room is None:
            return []
        return [
            GaugeMetricFamily(
                "pratique_content_store_free_bytes", "Free space of the content store's folder.", room.free_bytes
            ),
            GaugeMetricFamily(
                "pratique_content_store_size_bytes", "Size of the content store's volume.", room.size_bytes
            ),
        ]
