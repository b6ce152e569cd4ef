"""Server-side apply, its conflicts, the managedFields that all writes leave behind, and the patches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointerException

from provisioner.sandbox.calls import StatusRefusal, bad_request
from provisioner.sandbox.fields import (
    ATOMIC,
    SET,
    FieldSet,
    Path,
    Topology,
    changed,
    fields_of,
    in_order,
    item_key,
    leaves,
    lookup,
    merge,
    of_paths,
    remove,
    words,
)

# Fields that nobody owns: the server's, and what names the object.
_STRIPPED_META = (
    "name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields",
    "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip
_FORMER = "before-first-apply"
Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    name: str
    operation: str
    api_version: str
    subresource: str = ""

    def owns(self, entry: Mapping[str, Any]) -> bool:
        return (
            entry.get("manager") == self.name
            and entry.get("operation") == self.operation
            and entry.get("subresource", "") == self.subresource
        )


def apply(
    live: dict[str, Any] | None,
    wish: dict[str, Any],
    manager: ManagedFieldsEntry,
    topology: Topology,
    *,
    force: bool,
    now: str,
) -> dict[str, Any]:
    """The object after `manager` has applied `wish`, managedFields included; raises StatusRefusal 409 for conflicts."""
    owned = fields_of(ownable(wish), topology)
    entries = [dict(entry) for entry in _managed_fields(live)]
    if not entries and (unowned := changed({}, ownable(live or {}), topology)):
        # What is there and belongs to nobody is fought over like everything else, under a name of its own.
        former = ManagedFieldsEntry(_FORMER, "Update", manager.api_version)
        entries = [_entry(former, of_paths(unowned), now)]
    paths = set(leaves(owned))
    merged: dict[str, Any] = merge(live or {}, wish, topology)
    conflicts = []  # fields that others own and that the merge would change
    for entry in entries:
        for path in [] if manager.owns(entry) else in_order(paths & set(leaves(entry["fieldsV1"]))):
            is_there, value = lookup(live, path, topology)
            if path[-1][:2] not in ("k:", "v:") and is_there and value != lookup(merged, path, topology)[1]:
                conflicts.append((entry, path))
    if conflicts and not force:
        raise _conflict_refusal(conflicts)
    for entry, path in conflicts:
        entry["fieldsV1"] = of_paths(set(leaves(entry["fieldsV1"])) - {path})
    mine = next((entry for entry in entries if manager.owns(entry)), None)
    if mine:
        merged = _without_given_up(merged, mine, paths, [entry for entry in entries if entry is not mine], topology)
    entries = [entry for entry in entries if entry is not mine and entry["fieldsV1"]]
    is_same = mine is not None and set(leaves(mine["fieldsV1"])) == paths and ownable(merged) == ownable(live or {})
    if owned:
        entries.append(_entry(manager, owned, str(mine["time"]) if is_same and mine else now))
    return _with_entries(merged, entries)


def update(
    live: dict[str, Any] | None, after: dict[str, Any], manager: ManagedFieldsEntry, topology: Topology, *, now: str
) -> dict[str, Any]:
    """`after` as a create, update or patch leaves it: the manager owns what it changed, others what is still theirs.

    Whoever empties managedFields (`[{}]` or `[]` in the object sent) resets them: then nobody owns anything.
    """
    before, wanted = ownable(live or {}), ownable(after)
    moved = changed(before, wanted, topology) if before != wanted else set()
    entries = []
    for entry in _managed_fields(after) if live else []:
        owned = set(leaves(entry["fieldsV1"]))
        gone = {path for path in owned if lookup(before, path, topology)[0] and not lookup(wanted, path, topology)[0]}
        kept = owned - gone - moved
        entries.append(entry if kept == owned else {**entry, "fieldsV1": of_paths(kept)})
    mine = next((entry for entry in entries if manager.owns(entry)), None)
    if moved:
        own = set(leaves(mine["fieldsV1"])) if mine else set()
        entries = [entry for entry in entries if entry is not mine]
        entries.append(_entry(manager, of_paths(own | moved), now))
    return _with_entries(after, [entry for entry in entries if entry["fieldsV1"]])


def _with_entries(obj: dict[str, Any], entries: list[Entry]) -> dict[str, Any]:
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
    entries = sorted(
        entries,
        key=lambda entry: (entry["operation"], entry.get("time", ""), entry["manager"], entry.get("subresource", "")),
    )
    return {**obj, "metadata": {**meta, "managedFields": entries} if entries else meta}


def ownable(obj: Mapping[str, Any]) -> dict[str, Any]:
    """What of an object can be owned."""
    meta = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _STRIPPED_META}
    body = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
    return {**body, **({"metadata": meta} if meta else {})}


def _managed_fields(obj: Mapping[str, Any] | None) -> list[Entry]:
    return list(((obj or {}).get("metadata") or {}).get("managedFields") or [])


def _conflict_refusal(conflicts: list[tuple[Entry, Path]]) -> StatusRefusal:
    by_manager: dict[str, list[str]] = {}
    for entry, path in conflicts:
        by_manager.setdefault(_manager_words(entry), []).append(words(path))
    lines = []
    for who, paths in sorted(by_manager.items()):
        listed = "".join(f"\n- {path}" for path in paths)
        lines.append(f"conflict with {who}: {paths[0]}" if len(paths) == 1 else f"conflicts with {who}:{listed}")
    count = len(conflicts)
    message = f"Apply failed with {count} conflict{'s' if count > 1 else ''}: " + "\n".join(lines)
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_manager_words(entry)}", "field": words(path)}
        for entry, path in conflicts
    ]
    return StatusRefusal(409, "Conflict", message, {"causes": causes})


def _manager_words(entry: Entry) -> str:
    said = f'"{entry["manager"]}"'
    if entry.get("subresource"):
        said += f' with subresource "{entry["subresource"]}"'
    return f"{said} using {entry['apiVersion']}" if entry["operation"] == "Update" else said


def _without_given_up(
    merged: dict[str, Any], mine: Entry, paths: set[Path], others: list[Entry], topology: Topology
) -> dict[str, Any]:
    """Fields that this manager applied before, does not now, and that nobody else owns, go."""
    elsewhere: set[Path] = set()
    for entry in others:
        for path in leaves(entry["fieldsV1"]):
            elsewhere |= {path[:length] for length in range(1, len(path) + 1)}
    held = {path[:length] for path in paths for length in range(1, len(path) + 1)}
    # Whole items first; the fields that name them go with them and never alone.
    for path in sorted(leaves(mine["fieldsV1"]), key=len):
        is_key = len(path) > 1 and path[-2].startswith("k:") and path[-1][2:] in json.loads(path[-2][2:])
        if path in held or path in elsewhere or is_key:
            continue
        merged = remove(merged, path, topology)
        above = path[:-1]
        # Maps and lists that only held what went are gone with it.
        while above and above not in held and above not in elsewhere:
            is_there, value = lookup(merged, above, topology)
            if is_there and value not in ({}, []):
                break
            merged = remove(merged, above, topology)
            above = above[:-1]
    return merged


def _entry(manager: ManagedFieldsEntry, fields: FieldSet, time: str) -> Entry:
    entry: Entry = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {**entry, "subresource": manager.subresource} if manager.subresource else entry


MAX_OPERATIONS = 10_000


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def strategic(target: Any, patch: Any, topology: Topology, path: tuple[str, ...] = ()) -> Any:
    """Kubernetes' strategic merge: list maps by their keys, and what its directives (`$patch` and others) say."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    merged = dict(target) if isinstance(target, dict) else {}
    if "$retainKeys" in patch:
        merged = {key: value for key, value in merged.items() if key in patch["$retainKeys"]}
    for key, value in patch.items():
        directive, _, name = key.partition("/")
        if directive == "$deleteFromPrimitiveList":
            merged[name] = [item for item in merged.get(name) or [] if item not in value]
    for key, value in patch.items():
        if key.startswith("$"):
            continue
        if value is None or (isinstance(value, dict) and value.get("$patch") == "delete"):
            merged.pop(key, None)
        elif isinstance(value, list):
            merged[key] = _merged_list(merged.get(key), value, topology, (*path, key))
        else:
            merged[key] = strategic(merged.get(key), value, topology, (*path, key))
    return merged


def _merged_list(target: Any, patch: list[Any], topology: Topology, path: tuple[str, ...]) -> list[Any]:
    plain = [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    kind = topology(path, patch)
    if kind == SET and isinstance(target, list):
        return target + [item for item in patch if item not in target]
    is_replaced = any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch)
    if kind in (ATOMIC, SET) or not isinstance(target, list) or is_replaced:
        return plain
    keys = kind[:1]
    merged = {item_key(item, keys): item for item in target}
    for item in patch:
        if not isinstance(item, dict) or keys[0] not in item:
            raise StatusRefusal(500, "", f"map: {item} does not contain declared merge key: {keys[0]}")
        key = item_key(item, keys)
        if item.get("$patch") == "delete":
            merged.pop(key, None)
        else:
            merged[key] = strategic(merged.get(key), item, topology, path)
    return list(merged.values())


def json_patch(target: Any, operations: Any) -> Any:
    """RFC 6902; raises StatusRefusal 422 where a test fails, a place is not there or no object is left."""
    is_list = isinstance(operations, list) and all(isinstance(operation, dict) for operation in operations)
    if not is_list or len(operations) > MAX_OPERATIONS:
        raise bad_request("expected a list of JSON patch operations")
    try:
        patched = JsonPatch(operations).apply(target)
    except (JsonPatchException, JsonPointerException) as exc:
        raise _rejected() from exc
    if not isinstance(patched, dict):
        raise _rejected()
    return patched


def _rejected() -> StatusRefusal:
    return StatusRefusal(422, "Invalid", "the server rejected our request due to an error in our request", {})
