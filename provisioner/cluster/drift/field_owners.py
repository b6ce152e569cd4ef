"""Which manager owns which fields, read from `metadata.managedFields`. Pure.

Hints for people and for what to leave alone, never a proof of who somebody is: anybody may name their manager anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.values import JsonObject

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
    return [_owner(entry) for entry in entries if isinstance(entry, Mapping)]


def applied_by(obj: JsonObject, manager: str) -> frozenset[FieldPath]:
    """The fields that `manager` owns by server-side apply."""
    return frozenset().union(*(one.paths for one in owners(obj) if one.is_applier(manager)))


def value_at(obj: object, path: FieldPath) -> Any:
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


def is_below(path: FieldPath, other: FieldPath) -> bool:
    """Whether `path` is `other` or stands somewhere under it."""
    return path[: len(other)] == other


def step_of(key: Mapping[str, Any]) -> str:
    """The step to an item of a list, by its keys."""
    return f"[{','.join(f'{name}={value}' for name, value in sorted(key.items()))}]"


def _owner(entry: Mapping[str, Any]) -> FieldOwner:
    text = {name: str(entry.get(name) or "") for name in ("manager", "operation", "subresource", "time")}
    fields = entry.get("fieldsV1")
    paths = frozenset(_paths(fields, ())) if isinstance(fields, Mapping) else frozenset()
    return FieldOwner(text["manager"], text["operation"], text["subresource"], text["time"], paths)


def _paths(fields: Mapping[str, Any], above: FieldPath) -> Iterator[FieldPath]:
    """Every field, and every struct, map or item that is owned itself (`.`)."""
    for key, inner in fields.items():
        if key == ".":
            continue
        path = (*above, _step(key))
        if not inner or "." in inner:
            yield path
        yield from _paths(inner, path)


def _step(key: str) -> str:
    kind, _, rest = key.partition(":")
    if kind == "f":
        return rest
    if kind == "k":
        return step_of(json.loads(rest))
    return f"[{rest}]"


def _item(items: list[Any], step: str) -> Any:
    if not step.startswith("["):
        return None
    wanted = step[1:-1]
    if wanted.isdecimal() and len(wanted) < 10 and int(wanted) < len(items):
        return items[int(wanted)]
    for item in items:
        if _matches(item, wanted):
            return item
    return None


def _matches(item: Any, wanted: str) -> bool:
    if not isinstance(item, Mapping):
        return json.dumps(item) == wanted
    keys = [part.partition("=") for part in wanted.split(",")]
    # A key that the server fills in (a port's protocol) is missing from what people write.
    return all(str(item[name]) == value for name, _, value in keys if name in item) and keys[0][0] in item
