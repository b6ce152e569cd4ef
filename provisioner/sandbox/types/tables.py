"""Tables, as kubectl asks for them: columns of the common kinds, of custom ones by their printer columns."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from provisioner.sandbox.types.kinds import SandboxKind

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
    "Service": (
        ("Type", "string", ".spec.type"),
        ("Cluster-IP", "string", ".spec.clusterIP"),
    ),
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
        own = tuple((it["name"], it["type"], it["jsonPath"]) for it in custom)
        priorities = {it["name"]: int(it.get("priority") or 0) for it in custom}
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
        return f"{sum(1 for it in statuses if it.get('ready'))}/{len((obj.get('spec') or {}).get('containers') or [])}"
    if path.startswith("ready:"):
        return f"{value_at(obj, path.removeprefix('ready:')) or 0}/{(obj.get('spec') or {}).get('replicas', 0)}"
    value = value_at(obj, path)
    if form == "date":
        return _age(value)
    if form == "integer":
        return value if value is not None else 0
    return "" if value is None else str(value).lower() if isinstance(value, bool) else value


def value_at(obj: Any, path: str) -> Any:
    """The value at a JSONPath of the simple kind that printer columns use."""
    for part in _PART.finditer(path):
        if part["name"] is not None:
            obj = obj.get(part["name"]) if isinstance(obj, dict) else None
        elif part["index"] is not None:
            obj = obj[int(part["index"])] if isinstance(obj, list) and len(obj) > int(part["index"]) else None
        else:
            obj = next((it for it in obj or [] if str(it.get(part["key"])) == part["value"]), None)
    return obj


def _age(text: Any) -> str:
    if not text:
        return "<unknown>"
    seconds = int((datetime.now(UTC) - datetime.fromisoformat(str(text))).total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
