"""Objects of Kubernetes' kinds in which every field of the schema is set, made from the schemas of the API server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin.schemas import MINORS, Schemas, schemas_of
from provisioner.values import GroupKind

Path = tuple[str | int, ...]
KEY = "some.example/key"
# What is sent to the API server and is no object that a bundle may hold.
_NO_OBJECTS = frozenset({"DeleteOptions", "Status", "WatchEvent", "APIGroup", "APIResourceList", "APIVersions"})
_VALUES: Mapping[str, tuple[Any, Any]] = {
    "boolean": (True, False),
    "integer": (1, 2),
    "number": (1.5, 2.5),
    "string": ("one", "two"),
}


def schemas() -> Schemas:
    found = schemas_of(MINORS[-1])
    assert found is not None, "the package kubernetes-validate is not installed"
    return found


def every_kind() -> list[tuple[str, str]]:
    """Each kind of which there are objects, as (apiVersion, kind)."""
    known = schemas()
    return sorted(
        pair
        for pair in known.kinds
        if pair[1] not in _NO_OBJECTS
        and "metadata" in (known.of(*pair) or {}).get("properties", {})
        and not (pair[1].endswith("List") and "items" in (known.of(*pair) or {}).get("properties", {}))
    )


def group_kind(api_version: str, kind: str) -> GroupKind:
    return GroupKind(api_version.rpartition("/")[0], kind)


def object_with_everything(api_version: str, kind: str, *, second: bool = False) -> dict[str, Any]:
    """An object with a value in each field of its schema; the `second` one has another value in each."""
    made = _value(schemas().of(api_version, kind) or {}, (), second)
    meta = {**made["metadata"], "name": "all", "namespace": "shop"}
    return {**made, "apiVersion": api_version, "kind": kind, "metadata": meta}


def leaves_of(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves_of(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from leaves_of(inner, (*path, at))
    else:
        yield path


def _value(schema: Mapping[str, Any], inside: tuple[str, ...], second: bool) -> Any:
    """A schema that holds itself is one text at its second level: what is below has the same fields again."""
    name, schema = schemas().resolved(schema)
    if name and name in inside:
        return _VALUES["string"][second]
    inside = (*inside, name) if name else inside
    if properties := schema.get("properties"):
        return {key: _value(one, inside, second) for key, one in properties.items()}
    if isinstance(schema.get("additionalProperties"), Mapping):
        return {KEY: _value(schema["additionalProperties"], inside, second)}
    if schema.get("type") == "array":
        return [_value(schema.get("items", {}), inside, second)]
    if schema.get("type") == "object":
        return {KEY: _VALUES["string"][second]}
    return _VALUES.get(str(schema.get("type")), _VALUES["string"])[second]
