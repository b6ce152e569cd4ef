"""What stops changes of a cluster now, as the watch saw it last: windows that deny and have no end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from approvals.deciding.change_windows import ChangeWindow, WindowType
from approvals.deciding.selector import SelectedBy
from approvals.deciding.spec_fields import UnreadableObject
from approvals.models import BundleDeployment, Cluster, DecidingObject


@dataclass(frozen=True, slots=True)
class ChangeStop:
    """One stop: `by` is who pressed the button here, "" where it was written otherwise; `about` is what it selects."""

    row: DecidingObject
    reason: str
    about: str
    by: str


def is_stop(row: DecidingObject) -> bool:
    """Whether it denies, always and without an end."""
    window = _parse(row)
    return window is not None and window.type is WindowType.DENY and window.schedule is None


def stops_of(clusters: Iterable[Cluster]) -> dict[int, list[ChangeStop]]:
    """By the key of the cluster, the oldest first."""
    found: dict[int, list[ChangeStop]] = {}
    rows = DecidingObject.objects.filter(cluster__in=list(clusters), kind=ChangeWindow.kind, gone_at=None)
    for row in rows.order_by("changed_at", "pk"):
        window = _parse(row)
        if window is not None and is_stop(row):
            by = next((str(writer.get("username") or "") for writer in row.writers), "")
            stop = ChangeStop(row, window.description, window.selector.words, by)
            found.setdefault(row.cluster_id, []).append(stop)
    return found


def windows_of(cluster: Cluster) -> dict[str, ChangeWindow]:
    """All windows of a cluster that can be read, by name."""
    rows = DecidingObject.objects.filter(cluster=cluster, kind=ChangeWindow.kind, gone_at=None).order_by("name")
    return {row.name: window for row in rows if (window := _parse(row)) is not None}


def stops_of_deployment(deployment: BundleDeployment) -> list[ChangeStop]:
    """Those that select it, by what is known of it without a report."""
    about = SelectedBy(deployment.name, (deployment.labels,), str(deployment.spec.get("format") or "plain"))
    stops = stops_of([deployment.cluster]).get(deployment.cluster_id, [])
    windows = ((stop, _parse(stop.row)) for stop in stops)
    return [stop for stop, window in windows if window is not None and window.selector.selects(about)]


def _parse(row: DecidingObject) -> ChangeWindow | None:
    try:
        return ChangeWindow.parse(row.spec)
    except UnreadableObject:
        return None
