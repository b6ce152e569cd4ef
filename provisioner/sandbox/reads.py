"""get, list and watch: selectors, pages, bookmarks, and the tables that kubectl asks for."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from provisioner.sandbox import custom
from provisioner.sandbox.calls import (
    PathTarget,
    SandboxCall,
    bad_request,
    check_list_version,
    query_number,
    watch_version,
)
from provisioner.sandbox.kinds import SandboxKind
from provisioner.sandbox.store import ObjectStore, StoreChange

Labels = Mapping[str, str]
_KEY = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?)"
_SET = re.compile(rf"(?P<key>{_KEY})\s+(?P<word>in|notin)\s*\((?P<values>[^()]*)\)")
_PAIR = re.compile(rf"(?P<key>{_KEY})\s*(?P<sign>==|=|!=)\s*(?P<value>[-A-Za-z0-9_.]*)")
_HAS = re.compile(rf"(?P<not>!?)\s*(?P<key>{_KEY})")
_FIELDS = {
    "Pod": {
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
        "status.phase", "status.podIP", "status.nominatedNodeName",
    },
    "Event": {
        "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
        "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
        "reportingComponent", "source", "type",
    },
    "Secret": {"type"},
    "Namespace": {"status.phase", "name"},
    "Node": {"spec.unschedulable"},
    "ReplicaSet": {"status.replicas"},
    "ReplicationController": {"status.replicas"},
    "Job": {"status.successful"},
    "Service": {"spec.clusterIP", "spec.type"},
}  # fmt: skip


def labels(text: str) -> Callable[[Labels], bool]:
    """Whether labels fit a labelSelector; raises Refusal 400."""
    split = re.split(r",(?![^()]*\))", text)  # by commas outside of brackets
    terms = [_label_term(term.strip()) for term in split if term.strip()]
    return lambda has: all(term(has) for term in terms)


def fields(text: str, kind: SandboxKind, more: set[str]) -> Callable[[dict[str, Any]], bool]:
    """Whether an object fits a fieldSelector; `more` are the paths a CRD makes selectable; raises Refusal 400."""
    known = {"metadata.name", "metadata.namespace", *_FIELDS.get(kind.kind, ()), *more}
    terms = []
    for term in filter(None, text.split(",")):
        is_same = "!=" not in term
        path, sign, value = term.partition("=" if is_same else "!=")
        if not sign:
            raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
        if path not in known:
            listed = ", ".join(f'"{name}"' for name in sorted(known))
            raise bad_request(f'"{path}" is not a known field selector: only {listed}')
        terms.append((path, value.lstrip("="), is_same))
    return lambda obj: all((_value(obj, path) == value) == is_same for path, value, is_same in terms)


def _label_term(term: str) -> Callable[[Labels], bool]:
    if found := _SET.fullmatch(term):
        values = {value.strip() for value in found["values"].split(",")}
        return _among(found["key"], values, is_in=found["word"] == "in")
    if found := _PAIR.fullmatch(term):
        return _among(found["key"], {found["value"]}, is_in=found["sign"] != "!=")
    if found := _HAS.fullmatch(term):
        key, is_absent = found["key"], bool(found["not"])
        return lambda has: (key not in has) == is_absent
    words = term.split()
    if len(words) > 1:
        raise bad_request(f"unable to parse requirement: found '{words[1]}', expected: in, notin, =, ==, !=, gt, lt")
    raise bad_request(f"unable to parse requirement: found '{term}', expected: identifier")


def _among(key: str, values: set[str], *, is_in: bool) -> Callable[[Labels], bool]:
    return lambda has: (has.get(key) in values) == is_in


def _value(obj: Any, path: str) -> str:
    for part in path.lstrip(".").split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    if isinstance(obj, bool):
        return str(obj).lower()
    return "" if obj is None else str(obj)


Shown = Callable[[dict[str, Any]], dict[str, Any]]
BOOKMARK_SECONDS = 5.0
WATCH_SECONDS = 1800
QUIET_SECONDS = 2.0


def wants(call: SandboxCall, kind: SandboxKind, selectable: set[str]) -> Callable[[dict[str, Any]], bool]:
    """Whether an object fits the call's selectors; raises Refusal 400."""
    by_labels = labels(call.query.get("labelSelector", ""))
    by_fields = fields(call.query.get("fieldSelector", ""), kind, selectable)
    return lambda obj: by_labels(obj["metadata"].get("labels") or {}) and by_fields(obj)


def page(
    store: ObjectStore, target: PathTarget, call: SandboxCall, shown: Shown
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """(objects, list metadata); `continue` holds the place in the list as it stood at its first page."""
    fits = wants(call, target.kind, selectable(store, target.kind))
    check_list_version(call)
    limit, at, first = query_number(call, "limit"), None, 0
    if token := call.query.get("continue", ""):  # the version of the list, and how many of its objects came before
        try:
            at, first = (int(number) for number in base64.urlsafe_b64decode(token).split())
        except ValueError as exc:
            raise bad_request(f"invalid continue token: continue key is not valid: {exc}") from exc
    with store.lock:
        version = store.version if at is None else at
        found = [obj for obj in store.all(target.kind.group, target.kind.plural, target.namespace, at) if fits(obj)]
    meta: dict[str, Any] = {"resourceVersion": str(version)}
    chosen = found[first:]
    if limit and len(chosen) > limit:
        meta["continue"] = base64.urlsafe_b64encode(f"{version} {first + limit}".encode()).decode()
        if not call.query.get("labelSelector") and not call.query.get("fieldSelector"):
            meta["remainingItemCount"] = len(chosen) - limit
        chosen = chosen[:limit]
    return [shown(obj) for obj in chosen], meta


def watch(store: ObjectStore, target: PathTarget, call: SandboxCall, shown: Shown) -> Iterator[dict[str, Any]]:
    """Events after `resourceVersion`, until timeoutSeconds; with bookmarks where they are asked for.

    Raises Refusal for options that are wrong at once, and 410 where the history no longer goes back so far.
    """
    fits = wants(call, target.kind, selectable(store, target.kind))
    given = watch_version(call)
    seconds = query_number(call, "timeoutSeconds") or WATCH_SECONDS
    is_initial = call.query.get("sendInitialEvents") in ("true", "1") or (
        given == 0 and call.query.get("sendInitialEvents", "") == ""
    )
    with store.lock:
        version = store.version if is_initial or given == 0 else given
        initial = store.all(target.kind.group, target.kind.plural, target.namespace) if is_initial else []
        store.since(version)
    with_bookmarks = call.query.get("allowWatchBookmarks") in ("true", "1")
    end = time.monotonic() + seconds

    def events(version: int) -> Iterator[dict[str, Any]]:
        yield from ({"type": "ADDED", "object": shown(obj)} for obj in initial if fits(obj))
        if with_bookmarks and call.query.get("sendInitialEvents") in ("true", "1"):
            yield _bookmark(target.kind, version, {"k8s.io/initial-events-end": "true"})
        bookmark_at = time.monotonic() + BOOKMARK_SECONDS
        while (left := end - time.monotonic()) > 0:
            with store.moved:
                changes = store.since(version)
                if not changes:
                    store.moved.wait(min(left, QUIET_SECONDS))
                    changes = store.since(version)
            for change in changes:
                version = change.version
                if event := _event(change, target, fits):
                    yield {"type": event, "object": shown(change.object)}
            if with_bookmarks and time.monotonic() > bookmark_at:
                bookmark_at = time.monotonic() + BOOKMARK_SECONDS
                yield _bookmark(target.kind, version, {})

    return events(version)


def selectable(store: ObjectStore, kind: SandboxKind) -> set[str]:
    """The fields that a CRD makes selectable."""
    if not kind.is_custom:
        return set()
    version = custom.definition(store, kind)[1]
    return {str(field["jsonPath"]).lstrip(".") for field in version.get("selectableFields") or []}


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


Column = tuple[str, str, str]
_NAME: Column = ("Name", "string", ".metadata.name")
_AGE: Column = ("Age", "date", ".metadata.creationTimestamp")
_COLUMNS: dict[str, tuple[Column, ...]] = {
    "Namespace": (("Status", "string", ".status.phase"),),
    "Pod": (
        ("Ready", "string", "ready:pod"),
        ("Status", "string", ".status.phase"),
        ("Restarts", "integer", ".status.containerStatuses[0].restartCount"),
    ),
    "Deployment": (
        ("Ready", "string", "ready:.status.readyReplicas"),
        ("Up-to-date", "integer", ".status.updatedReplicas"),
        ("Available", "integer", ".status.availableReplicas"),
    ),
    "ReplicaSet": (
        ("Desired", "integer", ".spec.replicas"),
        ("Current", "integer", ".status.replicas"),
        ("Ready", "integer", ".status.readyReplicas"),
    ),
    "StatefulSet": (("Ready", "string", "ready:.status.readyReplicas"),),
    "Service": (("Type", "string", ".spec.type"), ("Cluster-IP", "string", ".spec.clusterIP")),
    "CustomResourceDefinition": (("Created At", "date", ".metadata.creationTimestamp"),),
    "ClusterRole": (("Created At", "date", ".metadata.creationTimestamp"),),
}
_PART = re.compile(r"\.?(?P<name>[^.\[\]]+)|\[\?\(@\.(?P<key>\w+)==\"(?P<value>[^\"]*)\"\)\]|\[(?P<index>\d+)\]")


def table(
    kind: SandboxKind, objects: list[dict[str, Any]], meta: dict[str, Any], custom: list[dict[str, Any]]
) -> dict[str, Any]:
    """meta.k8s.io/v1 Table; `custom` are additionalPrinterColumns."""
    priorities: dict[str, int] = {}
    if kind.is_custom:
        own = tuple((column["name"], column["type"], column["jsonPath"]) for column in custom)
        priorities = {column["name"]: int(column.get("priority") or 0) for column in custom}
        columns = (_NAME, *own) if custom else (_NAME, _AGE)
    else:
        more = _COLUMNS.get(kind.kind, ())
        columns = (_NAME, *more) if any(name == "Created At" for name, _, _ in more) else (_NAME, *more, _AGE)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": meta,
        "columnDefinitions": [
            {
                "name": name,
                "type": form if kind.is_custom or form != "date" else "string",
                "format": "name" if name == "Name" else "",
                "description": "",
                "priority": priorities.get(name, 0),
            }
            for name, form, _ in columns
        ],
        "rows": [
            {
                "cells": [_cell(obj, form, path) for _, form, path in columns],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": obj["metadata"],
                },
            }
            for obj in objects
        ],
    }


def _cell(obj: dict[str, Any], form: str, path: str) -> Any:
    if path == "ready:pod":
        statuses = (obj.get("status") or {}).get("containerStatuses") or []
        ready = sum(1 for status in statuses if status.get("ready"))
        return f"{ready}/{len((obj.get('spec') or {}).get('containers') or [])}"
    if path.startswith("ready:"):
        return f"{column_value(obj, path.removeprefix('ready:')) or 0}/{(obj.get('spec') or {}).get('replicas', 0)}"
    value = column_value(obj, path)
    if form == "date":
        if not value:
            return "<unknown>"
        seconds = int((datetime.now(UTC) - datetime.fromisoformat(str(value))).total_seconds())
        for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
            if seconds >= 2 * size:
                return f"{seconds // size}{unit}"
        return f"{seconds}s"
    if form == "integer":
        return value if value is not None else 0
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value


def column_value(obj: Any, path: str) -> Any:
    """The value at a JSONPath of the simple kind that printer columns use."""
    for part in _PART.finditer(path):
        if part["name"] is not None:
            obj = obj.get(part["name"]) if isinstance(obj, dict) else None
        elif part["index"] is not None:
            obj = obj[int(part["index"])] if isinstance(obj, list) and len(obj) > int(part["index"]) else None
        else:
            obj = next((item for item in obj or [] if str(item.get(part["key"])) == part["value"]), None)
    return obj
