"""How far the watch is behind: from the moment when somebody changed an object to the moment when we hear of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from approvals import instruments
from approvals.clock import database_now
from provisioner.cluster.client.answers import WatchEvent, WatchType

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
