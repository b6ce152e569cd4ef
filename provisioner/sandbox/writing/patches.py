"""JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from typing import Any

from jsonpatch import JsonPatch, JsonPatchException
from jsonpointer import JsonPointerException

from provisioner.sandbox.status import StatusRefusal, bad_request
from provisioner.sandbox.types.fields import ATOMIC, SET, Topology, item_key

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
    merged = _kept(target, patch)
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


def _kept(target: Any, patch: dict[str, Any]) -> dict[str, Any]:
    """What `$retainKeys` and `$deleteFromPrimitiveList/…` leave of the target."""
    kept = dict(target) if isinstance(target, dict) else {}
    if "$retainKeys" in patch:
        kept = {key: value for key, value in kept.items() if key in patch["$retainKeys"]}
    for key, gone in patch.items():
        directive, _, name = key.partition("/")
        if directive == "$deleteFromPrimitiveList":
            kept[name] = [item for item in kept.get(name) or [] if item not in gone]
    return kept


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
    is_list = isinstance(operations, list) and all(isinstance(it, dict) for it in operations)
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
