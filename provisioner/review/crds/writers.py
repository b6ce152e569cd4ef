"""Who writes an object, by which version and which fields, as its managedFields tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from provisioner.review.base.facts import mapping, maps
from provisioner.review.crds.stored import ITEMS, VALUES
from provisioner.sentences import number, some
from provisioner.values import JsonObject


def managers_by_version(objects: Iterable[JsonObject]) -> dict[str, Counter[str]]:
    """How many objects each manager last wrote by each version (without its group)."""
    found: dict[str, Counter[str]] = {}
    for obj in objects:
        pairs = {(_version(entry), str(entry.get("manager") or "?")) for entry in _entries(obj)}
        for version, manager in pairs:
            found.setdefault(version, Counter())[manager] += 1
    return found


def owners_of(obj: JsonObject, place: tuple[str | int, ...]) -> set[str]:
    """The managers who own a field of `obj` at or below `place` of its schema."""
    wanted = [str(part) for part in place]
    return {
        str(entry.get("manager") or "?") for entry in _entries(obj) if _owns(mapping(entry.get("fieldsV1")), wanted)
    }


def most_first(managers: Mapping[str, int]) -> list[str]:
    """The names of managers, those of most objects first."""
    return sorted(managers, key=lambda name: (-managers[name], name))


def counted(managers: Mapping[str, int]) -> str:
    """Managers in words: `helm (12 objects), kubectl (1 object)`."""
    return some([f"{name} ({number(managers[name], 'object')})" for name in most_first(managers)], 5)


def _entries(obj: JsonObject) -> list[Mapping[str, Any]]:
    return maps(mapping(obj.get("metadata")).get("managedFields"))


def _version(entry: Mapping[str, Any]) -> str:
    return str(entry.get("apiVersion") or "").rpartition("/")[2]


def _owns(fields: Mapping[str, Any], wanted: list[str]) -> bool:
    """`f:name` is a field, `k:{...}`, `v:...` and `i:0` are items of lists."""
    if not wanted:
        return bool(fields)
    first, rest = wanted[0], wanted[1:]
    if first == ITEMS:
        inner = [one for key, one in fields.items() if not key.startswith("f:") and key != "."]
    elif first == VALUES:
        inner = [one for key, one in fields.items() if key.startswith("f:")]
    else:
        inner = [fields[f"f:{first}"]] if f"f:{first}" in fields else []
    return any(not rest or _owns(mapping(one), rest) for one in inner)
