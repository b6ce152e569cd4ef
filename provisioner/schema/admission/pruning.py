"""What the API server does to a custom resource before it looks whether it is valid: prune, drop nulls, default.

The functions here return a changed copy; what they are given stays as it is. They take the schema as the dict that a
CRD holds under `openAPIV3Schema`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner.schema.fields import (
    NO_SCHEMA,
    Schema,
    child,
    child_schema,
    copied,
    has_additional,
    properties_of,
    schema_of,
)

TYPE_META = frozenset({"apiVersion", "kind", "metadata"})


def prune(schema: Schema, obj: Any) -> tuple[Any, list[str]]:
    """`obj` without what `schema` does not know, and the sorted dotted paths of what was dropped.

    `obj` is a whole resource: its apiVersion, kind and metadata stay.
    """
    pruner = _Pruner()
    after = copied(obj)
    pruner.prune(after, {**schema, "x-kubernetes-embedded-resource": True}, "")
    return after, sorted(pruner.dropped)


def prune_value(schema: Schema, value: Any) -> Any:
    """A value somewhere inside a resource without what its own schema does not know."""
    after = copied(value)
    _Pruner().prune(after, schema, "")
    return after


def default(schema: Schema, obj: Any) -> Any:
    """`obj` with the defaults of `schema` where a parent is present and the field is not, or is a forbidden null."""
    after = copied(obj)
    _default(after, schema)
    return after


def prepared(schema: Schema, obj: Any) -> tuple[Any, list[str]]:
    """All three steps in the API server's order, with the paths that were pruned."""
    after, dropped = prune(schema, obj)
    _drop_nulls(after, schema)
    _default(after, schema)
    return after, dropped


@dataclass(slots=True)
class _Pruner:
    dropped: list[str] = field(default_factory=list)

    def prune(self, value: Any, schema: Schema | None, path: str) -> None:
        if schema is not None and schema.get("x-kubernetes-preserve-unknown-fields") is True:
            self._descend(value, schema, path, keeps_unknown=True)
        elif schema is None:
            self._empty(value, path)
        else:
            self._descend(value, schema, path, keeps_unknown=False)

    def _empty(self, value: Any, path: str) -> None:
        """A value that nothing describes: its objects lose all their fields, its lists and scalars stay."""
        if isinstance(value, dict):
            self.dropped += [child(path, name) for name in value]
            value.clear()
        elif isinstance(value, list):
            for position, item in enumerate(value):
                self._empty(item, f"{path}[{position}]")

    def _descend(self, value: Any, schema: Schema, path: str, *, keeps_unknown: bool) -> None:
        if isinstance(value, dict):
            known, is_resource = properties_of(schema), schema.get("x-kubernetes-embedded-resource") is True
            for name in list(value):
                if is_resource and name in TYPE_META:
                    continue
                at = child(path, name)
                if name in known:
                    self.prune(value[name], schema_of(known[name]) or NO_SCHEMA, at)
                elif has_additional(schema):
                    self.prune(value[name], schema_of(schema["additionalProperties"]), at)
                elif not keeps_unknown:
                    self.dropped.append(at)
                    del value[name]
        elif isinstance(value, list):
            items = schema_of(schema.get("items"))
            for position, item in enumerate(value):
                at = f"{path}[{position}]"
                if not keeps_unknown:
                    self.prune(item, items, at)
                elif items is not None:
                    self._descend(item, items, at, keeps_unknown=True)


def _drop_nulls(value: Any, schema: Schema | None) -> None:
    if isinstance(value, dict):
        for name in list(value):
            described = child_schema(schema, name)
            if _is_forbidden_null(value[name], described) and _default_of(described) is None:
                del value[name]
            else:
                _drop_nulls(value[name], described)
    elif isinstance(value, list):
        items = schema_of(schema.get("items")) if schema is not None else None
        for item in value:
            _drop_nulls(item, items)


def _default(value: Any, schema: Schema | None) -> None:
    if schema is None:
        return
    if isinstance(value, dict):
        for name, known in properties_of(schema).items():
            if not isinstance(known, Mapping) or known.get("default") is None:
                continue
            if name not in value or _is_forbidden_null(value[name], known):
                value[name] = copied(known["default"])
        for name, entry in value.items():
            described = child_schema(schema, name)
            if _is_forbidden_null(entry, described):
                value[name] = _default_of(described)
            _default(value[name], described)
    elif isinstance(value, list):
        items = schema_of(schema.get("items"))
        for position, item in enumerate(value):
            if _is_forbidden_null(item, items):
                value[position] = _default_of(items)
            _default(value[position], items)


def _is_forbidden_null(value: Any, schema: Schema | None) -> bool:
    return value is None and schema is not None and not schema.get("nullable")


def _default_of(schema: Schema | None) -> Any:
    return copied(schema.get("default")) if schema is not None else None
