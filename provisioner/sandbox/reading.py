"""get, list and watch: selectors, pages, bookmarks."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from provisioner.sandbox.calls import Call, Target
from provisioner.sandbox.kinds import Kind
from provisioner.sandbox.status import bad_request
from provisioner.sandbox.store import Change, Store

Shown = Callable[[dict[str, Any]], dict[str, Any]]
BOOKMARK_SECONDS = 5.0
WATCH_SECONDS = 600.0


def wants(call: Call) -> Callable[[dict[str, Any]], bool]:
    """Whether an object fits the call's selectors; raises Refusal 400."""
    labels = _label_terms(call.query.get("labelSelector", ""))
    fields = _field_terms(call.query.get("fieldSelector", ""))

    def fits(obj: dict[str, Any]) -> bool:
        has = obj["metadata"].get("labels") or {}
        return all(term(has) for term in labels) and all(
            _field(obj, path) == value if same else _field(obj, path) != value for path, value, same in fields
        )

    return fits


def page(store: Store, target: Target, call: Call, shown: Shown) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(objects, list metadata); `continue` holds the place in a list as it stands now."""
    fits = wants(call)
    with store.lock:
        version = str(store.version)
        found = [obj for obj in store.all(target.kind.group, target.kind.plural, target.namespace) if fits(obj)]
    start, limit = _start(call.query.get("continue", "")), int(call.query.get("limit") or 0)
    meta: dict[str, Any] = {"resourceVersion": version}
    chosen = found[start:]
    if limit and len(chosen) > limit:
        meta["continue"] = base64.urlsafe_b64encode(json.dumps({"at": start + limit}).encode()).decode()
        meta["remainingItemCount"] = len(chosen) - limit
        chosen = chosen[:limit]
    return [shown(obj) for obj in chosen], meta


def watch(store: Store, target: Target, call: Call, shown: Shown) -> Iterator[dict[str, Any]]:
    """Events after `resourceVersion`, until timeoutSeconds; with bookmarks where they are asked for."""
    fits = wants(call)
    end = time.monotonic() + float(call.query.get("timeoutSeconds") or WATCH_SECONDS)
    with_bookmarks = call.query.get("allowWatchBookmarks") in ("true", "1")
    given = call.query.get("resourceVersion", "")
    with store.lock:
        version = store.version if given in ("", "0") else int(given)
        initial = store.all(target.kind.group, target.kind.plural, target.namespace)
    if given in ("", "0") or call.query.get("sendInitialEvents") in ("true", "1"):
        yield from ({"type": "ADDED", "object": shown(obj)} for obj in initial if fits(obj))
        if call.query.get("sendInitialEvents") in ("true", "1"):
            yield _bookmark(target.kind, version, {"k8s.io/initial-events-end": "true"})
    bookmark_at = time.monotonic() + BOOKMARK_SECONDS
    while (left := end - time.monotonic()) > 0:
        for change in _next(store, version, min(left, 1.0)):
            version = change.version
            event = _event(change, target, fits)
            if event:
                yield {"type": event, "object": shown(change.object)}
        if with_bookmarks and time.monotonic() > bookmark_at:
            bookmark_at = time.monotonic() + BOOKMARK_SECONDS
            yield _bookmark(target.kind, version, {})


def _next(store: Store, version: int, seconds: float) -> list[Change]:
    """What happened after `version`, waited for."""
    with store.moved:
        changes = store.since(version)
        if not changes:
            store.moved.wait(seconds)
            changes = store.since(version)
    return changes


def _event(change: Change, target: Target, fits: Callable[[dict[str, Any]], bool]) -> str:
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


def _bookmark(kind: Kind, version: int, annotations: Mapping[str, str]) -> dict[str, Any]:
    meta: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
    if annotations:
        meta["annotations"] = dict(annotations)
    return {"type": "BOOKMARK", "object": {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": meta}}


def _start(token: str) -> int:
    if not token:
        return 0
    try:
        return int(json.loads(base64.urlsafe_b64decode(token))["at"])
    except (ValueError, KeyError, TypeError) as exc:
        raise bad_request("continue key is not valid") from exc


def _label_terms(text: str) -> list[Callable[[Mapping[str, str]], bool]]:
    return [_label_term(term.strip()) for term in _split(text)]


def _split(text: str) -> list[str]:
    """Terms by commas outside of brackets."""
    terms, depth, current = [], 0, ""
    for one in text:
        depth += (one == "(") - (one == ")")
        if one == "," and depth == 0:
            terms.append(current)
            current = ""
        else:
            current += one
    return [term for term in [*terms, current] if term.strip()]


def _label_term(term: str) -> Callable[[Mapping[str, str]], bool]:
    for word, is_in in ((" notin ", False), (" in ", True)):
        if word in term:
            key, _, values = term.partition(word)
            return _among(key.strip(), {value.strip() for value in values.strip().strip("()").split(",")}, is_in)
    for sign, is_same in (("!=", False), ("==", True), ("=", True)):
        if sign in term:
            key, _, value = term.partition(sign)
            return _among(key.strip(), {value.strip()}, is_same)
    if term.startswith("!"):
        return lambda has: term[1:].strip() not in has
    return lambda has: term in has


def _among(key: str, values: set[str], is_in: bool) -> Callable[[Mapping[str, str]], bool]:
    return lambda has: (has.get(key) in values) == is_in


def _field_terms(text: str) -> list[tuple[list[str], str, bool]]:
    found = []
    for term in filter(None, text.split(",")):
        is_same = "!=" not in term
        path, sign, value = term.partition("!=" if not is_same else "=")
        if not sign:
            raise bad_request(f"invalid field selector {text!r}")
        found.append((path.strip().split("."), value.lstrip("=").strip(), is_same))
    return found


def _field(obj: Any, path: list[str]) -> str:
    for part in path:
        obj = obj.get(part) if isinstance(obj, dict) else None
    return "" if obj is None else str(obj)
