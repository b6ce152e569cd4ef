"""get, list and watch: selectors, pages, bookmarks."""

from __future__ import annotations

import base64
import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.sandbox import options, selectors
from provisioner.sandbox.calls import PathTarget, SandboxCall
from provisioner.sandbox.status import bad_request
from provisioner.sandbox.store import ObjectStore, StoreChange
from provisioner.sandbox.types import custom
from provisioner.sandbox.types.kinds import SandboxKind

Shown = Callable[[dict[str, Any]], dict[str, Any]]
BOOKMARK_SECONDS = 5.0
WATCH_SECONDS = 1800
QUIET_SECONDS = 2.0


def wants(call: SandboxCall, kind: SandboxKind, selectable: set[str]) -> Callable[[dict[str, Any]], bool]:
    """Whether an object fits the call's selectors; raises Refusal 400."""
    by_labels = selectors.labels(call.query.get("labelSelector", ""))
    by_fields = selectors.fields(call.query.get("fieldSelector", ""), kind, selectable)
    return lambda obj: by_labels(obj["metadata"].get("labels") or {}) and by_fields(obj)


def page(
    store: ObjectStore, target: PathTarget, call: SandboxCall, shown: Shown
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(objects, list metadata); `continue` holds the place in the list as it stood at its first page."""
    fits = wants(call, target.kind, selectable(store, target.kind))
    options.list_version(call)
    start, limit = _start(call.query.get("continue", "")), options.number(call, "limit")
    with store.lock:
        version = start.version if start else store.version
        at = start.version if start else None
        found = [obj for obj in store.all(target.kind.group, target.kind.plural, target.namespace, at) if fits(obj)]
    meta: dict[str, Any] = {"resourceVersion": str(version)}
    chosen = found[start.at if start else 0 :]
    if limit and len(chosen) > limit:
        meta["continue"] = _Place(version, len(found) - len(chosen) + limit).token()
        if not call.query.get("labelSelector") and not call.query.get("fieldSelector"):
            meta["remainingItemCount"] = len(chosen) - limit
        chosen = chosen[:limit]
    return [shown(obj) for obj in chosen], meta


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a page begins: after how many objects of the list at a version."""

    version: int
    at: int

    def token(self) -> str:
        return base64.urlsafe_b64encode(json.dumps(dataclasses.asdict(self)).encode()).decode()


def watch(store: ObjectStore, target: PathTarget, call: SandboxCall, shown: Shown) -> Iterator[dict[str, Any]]:
    """Events after `resourceVersion`, until timeoutSeconds; with bookmarks where they are asked for.

    Raises Refusal for options that are wrong at once, and 410 where the history no longer goes back so far.
    """
    fits = wants(call, target.kind, selectable(store, target.kind))
    given = options.watch_version(call)
    seconds = options.number(call, "timeoutSeconds") or WATCH_SECONDS
    is_initial = call.query.get("sendInitialEvents") in ("true", "1") or (
        given == 0 and call.query.get("sendInitialEvents", "") == ""
    )
    with store.lock:
        version = store.version if is_initial or given == 0 else given
        initial = store.all(target.kind.group, target.kind.plural, target.namespace) if is_initial else []
        store.since(version)
    start = Beginning(version, tuple(obj for obj in initial if fits(obj)), time.monotonic() + seconds)
    return _events(store, target, call, shown, start)


@dataclass(frozen=True, slots=True)
class Beginning:
    """Where a watch starts: after which version, with which objects first, and until when (monotonic seconds)."""

    version: int
    initial: tuple[dict[str, Any], ...]
    end: float


def _events(
    store: ObjectStore, target: PathTarget, call: SandboxCall, shown: Shown, start: Beginning
) -> Iterator[dict[str, Any]]:
    fits = wants(call, target.kind, selectable(store, target.kind))
    with_bookmarks = call.query.get("allowWatchBookmarks") in ("true", "1")
    version = start.version
    yield from ({"type": "ADDED", "object": shown(obj)} for obj in start.initial)
    if with_bookmarks and call.query.get("sendInitialEvents") in ("true", "1"):
        yield _bookmark(target.kind, version, {"k8s.io/initial-events-end": "true"})
    bookmark_at = time.monotonic() + BOOKMARK_SECONDS
    while (left := start.end - time.monotonic()) > 0:
        for change in _next(store, version, min(left, QUIET_SECONDS)):
            version = change.version
            event = _event(change, target, fits)
            if event:
                yield {"type": event, "object": shown(change.object)}
        if with_bookmarks and time.monotonic() > bookmark_at:
            bookmark_at = time.monotonic() + BOOKMARK_SECONDS
            yield _bookmark(target.kind, version, {})


def selectable(store: ObjectStore, kind: SandboxKind) -> set[str]:
    """The fields that a CRD makes selectable."""
    if not kind.is_custom:
        return set()
    version = custom.definition(store, kind)[1]
    return {str(it["jsonPath"]).lstrip(".") for it in version.get("selectableFields") or []}


def _next(store: ObjectStore, version: int, seconds: float) -> list[StoreChange]:
    """What happened after `version`, waited for."""
    with store.moved:
        changes = store.since(version)
        if not changes:
            store.moved.wait(seconds)
            changes = store.since(version)
    return changes


def _event(change: StoreChange, target: PathTarget, fits: Callable[[dict[str, Any]], bool]) -> str:
    """What this watcher sees of a change: an object that stops to fit its selector is deleted for it."""
    if change.key[:2] != (target.kind.group, target.kind.plural):
        return ""
    if target.namespace and change.key[2] != target.namespace:
        return ""
    was, is_now = change.before is not None and fits(change.before), fits(change.object)
    if change.type == "DELETED":
        return "DELETED" if was or is_now else ""
    if is_now:
        return "MODIFIED" if was else "ADDED"
    return "DELETED" if was else ""


def _bookmark(kind: SandboxKind, version: int, annotations: Mapping[str, str]) -> dict[str, Any]:
    meta: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        meta["annotations"] = dict(annotations)
    return {"type": "BOOKMARK", "object": {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}}


def _start(token: str) -> _Place | None:
    if not token:
        return None
    try:
        read = json.loads(base64.urlsafe_b64decode(token))
        return _Place(int(read["version"]), int(read["at"]))
    except (ValueError, KeyError, TypeError) as exc:
        raise bad_request(f"invalid continue token: continue key is not valid: {exc}") from exc
