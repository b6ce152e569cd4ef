"""Which manager owns which fields, read from `metadata.managedFields`.

Hints for people and for what to leave alone, never a proof of who somebody is: anybody may name their manager anything.

A CRD that drops a version leaves objects whose record names it. The API server cannot read such a record and refuses
every server-side apply of the object, a dry-run included (seen on 1.36.3): the record is rewritten first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.compare import version_of
from provisioner.errors import ClusterError
from provisioner.json_values import mapping, uid_of
from provisioner.values import JsonObject, ObjectRef

# A field's path: names, and for an item of a list `[name=web]` by its keys, `["x"]` by its value, `[0]` by its place.
FieldPath = tuple[str, ...]

APPLY = "Apply"
STATUS = "status"


@dataclass(frozen=True, slots=True)
class FieldOwner:
    """One entry of managedFields; `at` is the server's time of its last write, as it stands there."""

    manager: str
    operation: str
    subresource: str
    at: str
    paths: frozenset[FieldPath]

    def is_applier(self, manager: str) -> bool:
        return (self.manager, self.operation, self.subresource) == (manager, APPLY, "")


def owners(obj: JsonObject) -> list[FieldOwner]:
    """Everybody who owns fields, in the server's order."""
    entries = (obj.get("metadata") or {}).get("managedFields") or []
    found = []
    for entry in entries:
        if isinstance(entry, Mapping):
            parts = (str(entry.get(name) or "") for name in ("manager", "operation", "subresource", "time"))
            manager, operation, subresource, time = parts
            paths = frozenset(_paths(mapping(entry.get("fieldsV1")), ()))
            found.append(FieldOwner(manager, operation, subresource, time, paths))
    return found


def applied_by(obj: JsonObject, manager: str) -> frozenset[FieldPath]:
    """The fields that `manager` owns by server-side apply."""
    return frozenset().union(*(owner.paths for owner in owners(obj) if owner.is_applier(manager)))


def field_value(obj: object, path: FieldPath) -> Any:
    """What stands at a path; None where nothing does."""
    for step in path:
        obj = _item(obj, step) if isinstance(obj, list) else obj.get(step) if isinstance(obj, Mapping) else None
    return obj


def words(path: FieldPath) -> str:
    """`spec.containers[name=web].image`; a name with dots of its own is quoted."""
    shown = ""
    for step in path:
        if step.startswith("["):
            shown += step
        else:
            shown += ("." if shown else "") + (json.dumps(step, ensure_ascii=False) if "." in step else step)
    return shown


def leaf_paths(fields: Mapping[str, Any]) -> Iterator[FieldPath]:
    """The fields of a fieldsV1 that have no parts of their own."""
    for path in (every := list(_paths(fields, ()))):
        if not any(other != path and is_below(other, path) for other in every):
            yield path


def is_below(path: FieldPath, other: FieldPath) -> bool:
    """Whether `path` is `other` or stands somewhere under it."""
    return path[: len(other)] == other


def step_of(key: Mapping[str, Any]) -> str:
    """The step to an item of a list, by its keys."""
    return f"[{','.join(f'{name}={value}' for name, value in sorted(key.items()))}]"


def _paths(fields: Mapping[str, Any], above: FieldPath) -> Iterator[FieldPath]:
    """Every field, and every struct, map or item that is owned itself (`.`)."""
    for key, inner in fields.items():
        if key == ".":
            continue
        kind, _, rest = key.partition(":")
        path = (*above, rest if kind == "f" else step_of(json.loads(rest)) if kind == "k" else f"[{rest}]")
        if not inner or "." in inner:
            yield path
        yield from _paths(inner, path)


def _item(items: list[Any], step: str) -> Any:
    if not step.startswith("["):
        return None
    wanted = step[1:-1]
    if wanted.isdecimal() and len(wanted) < 10 and int(wanted) < len(items):
        return items[int(wanted)]
    keys = [part.partition("=") for part in wanted.split(",")]
    for item in items:
        if not isinstance(item, Mapping):
            if json.dumps(item) == wanted:
                return item
        # A key that the server fills in (a port's protocol) is missing from what people write.
        elif keys[0][0] in item and all(str(item[name]) == value for name, _, value in keys if name in item):
            return item
    return None


WORDS = "who set which of its fields is recorded in a version that is not served any more; that is rewritten first"
_REFUSAL = "request to convert CR to an invalid group/version"
# What tells one entry of managedFields from another.
_KEYS = ("manager", "operation", "apiVersion", "subresource")


def is_of_old_version(error: ClusterError) -> bool:
    return _REFUSAL in error.server_words


def rewrite(cluster: ClusterClient, ref: ObjectRef, *, uid: str, field_manager: str) -> None:
    """Say in the version of `ref` what the object with this `uid` records in versions that are not served.

    Nothing else of it changes. Raises PreconditionFailed where it is another object, or changes meanwhile.
    """
    live = cluster.get(ref) or {}
    # One entry of those that are told apart by their version alone, with the fields of all.
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in (live.get("metadata") or {}).get("managedFields") or []:
        group, _, version = str(entry.get("apiVersion") or "").rpartition("/")
        is_old = group == ref.group and cluster.resource_of(group, version, ref.kind) is None
        renamed = {**entry, "apiVersion": ref.api_version} if is_old else entry
        key = tuple(renamed.get(name) for name in _KEYS)
        fields = _union(merged.get(key, {}).get("fieldsV1"), entry.get("fieldsV1"))
        merged[key] = {**renamed, "fieldsV1": fields}
    entries = list(merged.values())
    meta = {"name": ref.name, "uid": uid, "resourceVersion": version_of(live), "managedFields": entries}
    meta |= {"namespace": ref.namespace} if ref.namespace else {}
    if live and uid_of(live) == uid:
        body = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": meta}
        cluster.merge(body, field_manager=field_manager)


def _union(first: JsonObject | None, second: JsonObject | None) -> dict[str, Any]:
    one, other = first or {}, second or {}
    return {key: _union(one.get(key), other.get(key)) for key in sorted(one.keys() | other.keys())}
