"""Reads JSON of unknown shape, where a bundle may hold anything anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def mapping(value: object) -> Mapping[str, Any]:
    """Return `value` if it is a mapping, else an empty one."""
    # Nearly all mappings are dicts, and asking an abstract class costs ten times as much.
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    """Return `value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def maps(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings in the list `value`; what else stands in it is left out."""
    return [item for item in items(value) if isinstance(item, Mapping)]


def value_at(value: object, *path: str) -> Any:
    """Return the value that the keys of `path` lead to, None where they lead nowhere."""
    for key in path:
        value = mapping(value).get(key)
    return value


def uid_of(obj: object) -> str:
    """Return the uid of a Kubernetes object, "" if it has none."""
    return str(value_at(obj, "metadata", "uid") or "")


def pointer(path: Iterable[str | int]) -> str:
    """Return the JSON pointer (RFC 6901) of a path."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)
