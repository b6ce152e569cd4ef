"""An object that killed two watchers is left aside, so that the others are seen.

After a first death it is noted which object is looked at, before it is: a second death then says which one it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from approvals.models import Cluster

WORDS = "two watchers died while reading it. It is read again when its spec changes"
# More than this are not poison but a defect of the watch itself.
MOST = 100


def is_skipped(cluster: Cluster, obj: Mapping[str, Any]) -> bool:
    return _mark(obj) in cluster.watch_skips


@contextmanager
def noted(cluster: Cluster, obj: Mapping[str, Any]) -> Iterator[None]:
    """After a death: note which object is looked at, until that has come to an end."""
    if not cluster.watch_deaths:
        yield
        return
    rows = Cluster.objects.filter(pk=cluster.pk)
    rows.update(watch_at=_mark(obj))
    try:
        yield
    except Exception:  # an error is no death: the mark goes, and the error goes on
        rows.update(watch_at="")
        raise
    rows.update(watch_at="")


def skip_what_killed(cluster: Cluster) -> None:
    """Leave aside from now on what a watcher before this one was looking at when it died."""
    cluster.refresh_from_db(fields=["watch_deaths", "watch_at", "watch_skips"])
    if cluster.watch_at:
        cluster.watch_skips = [*cluster.watch_skips, cluster.watch_at][-MOST:]
        cluster.watch_at = ""
        cluster.save(update_fields=["watch_at", "watch_skips"])


def note_all_seen(cluster: Cluster) -> None:
    """Everything was looked at, and nobody died."""
    if cluster.watch_deaths:
        cluster.watch_deaths = 0
        Cluster.objects.filter(pk=cluster.pk).update(watch_deaths=0)


def _mark(obj: Mapping[str, Any]) -> str:
    """The object as its spec is now: what we write to it ourselves, such as its status, changes no generation."""
    meta = obj["metadata"]
    return f"{meta['name']} {meta['uid']} {meta.get('generation', 0)}"
