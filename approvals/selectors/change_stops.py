"""What stops changes of a cluster now, as the watch saw it last: windows that deny and have no end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from approvals.deciding.change_windows import ChangeWindow
from approvals.deciding.selector import SelectedBy
from approvals.models import BundleDeployment, Cluster, DecidingObject


@dataclass(frozen=True, slots=True)
class ChangeStop:
    """One stop: `by` is who pressed the button here, "" where it was written otherwise."""

    row: DecidingObject
    window: ChangeWindow
    by: str


def stops_of(clusters: Iterable[Cluster]) -> dict[int, list[ChangeStop]]:
    """By the key of the cluster, the oldest first."""
    found: dict[int, list[ChangeStop]] = {}
    rows = DecidingObject.objects.filter(cluster__in=list(clusters), kind=ChangeWindow.kind, gone_at=None)
    for row in rows.order_by("changed_at", "pk"):
        window, _ = ChangeWindow.read(row.spec)
        if window and window.is_stop:
            by = next((str(writer.get("username") or "") for writer in row.writers), "")
            found.setdefault(row.cluster_id, []).append(ChangeStop(row, window, by))
    return found


def windows_of(cluster: Cluster) -> dict[str, ChangeWindow]:
    """All windows of a cluster that can be read, by name."""
    rows = DecidingObject.objects.filter(cluster=cluster, kind=ChangeWindow.kind, gone_at=None).order_by("name")
    return {row.name: window for row in rows if (window := ChangeWindow.read(row.spec)[0])}


def stops_of_deployment(deployment: BundleDeployment) -> list[ChangeStop]:
    """Those that select it, by what is known of it without a report."""
    about = SelectedBy(deployment.name, (deployment.labels,), str(deployment.spec.get("format") or "plain"))
    stops = stops_of([deployment.cluster]).get(deployment.cluster_id, [])
    return [stop for stop in stops if stop.window.selector.selects(about)]
