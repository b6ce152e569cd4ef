"""What stops changes of a cluster now, as the watch saw it last: windows that deny and have no end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from approvals.deciding.change_windows import ChangeWindow, WindowType
from approvals.deciding.selector import SelectedBy
from approvals.deciding.spec_fields import UnreadableObject
from approvals.models import BundleDeployment, Cluster, DecidingObject


@dataclass(frozen=True, slots=True)
class ChangeStop:
    """One stop: `by` is who pressed the button here, "" where it was written otherwise."""

    row: DecidingObject
    window: ChangeWindow
    by: str


def is_stop(spec: Mapping[str, Any]) -> bool:
    """Whether a window of this spec denies, always and without an end."""
    return _is_stop(_parse(spec))


def _is_stop(window: ChangeWindow | None) -> bool:
    return window is not None and window.type is WindowType.DENY and window.schedule is None


def stops_of(clusters: Iterable[Cluster]) -> dict[int, list[ChangeStop]]:
    """By the key of the cluster, the oldest first."""
    found: dict[int, list[ChangeStop]] = {}
    rows = DecidingObject.objects.filter(cluster__in=list(clusters), kind=ChangeWindow.kind, gone_at=None)
    for row in rows.order_by("changed_at", "pk"):
        window = _parse(row.spec)
        if window is not None and _is_stop(window):
            by = next((str(writer.get("username") or "") for writer in row.writers), "")
            found.setdefault(row.cluster_id, []).append(ChangeStop(row, window, by))
    return found


def windows_of(cluster: Cluster) -> dict[str, ChangeWindow]:
    """All windows of a cluster that can be read, by name."""
    rows = DecidingObject.objects.filter(cluster=cluster, kind=ChangeWindow.kind, gone_at=None).order_by("name")
    return {row.name: window for row in rows if (window := _parse(row.spec)) is not None}


def stops_of_deployment(deployment: BundleDeployment) -> list[ChangeStop]:
    """Those that select it, by what is known of it without a report."""
    about = SelectedBy(deployment.name, (deployment.labels,), str(deployment.spec.get("format") or "plain"))
    stops = stops_of([deployment.cluster]).get(deployment.cluster_id, [])
    return [stop for stop in stops if stop.window.selector.selects(about)]


def _parse(spec: Mapping[str, Any]) -> ChangeWindow | None:
    try:
        return ChangeWindow.parse(spec)
    except UnreadableObject:
        return None
