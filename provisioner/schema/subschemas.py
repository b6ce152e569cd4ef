"""How a schema is read: a node is a mapping, and what is none is no schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.schema.fields import as_held

Schema = Mapping[str, Any]
NO_SCHEMA: Schema = {}


def copied(value: Any) -> Any:
    """A deep copy of a JSON value: mappings become dicts, sequences lists, integers past 64 bits floating numbers."""
    if isinstance(value, Mapping):
        return {name: copied(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [copied(entry) for entry in value]
    return as_held(value) if type(value) is int else value


def properties_of(schema: Schema) -> Mapping[str, Schema]:
    return schema_of(schema.get("properties")) or {}


def schema_of(value: object) -> Schema | None:
    """A subschema, or None where there is none or where it is a boolean."""
    if type(value) is dict:  # the fast way to say so, and the next one to say no
        return value
    return value if value is not None and isinstance(value, Mapping) else None


def branches_of(schema: Schema, junctor: str) -> list[Schema]:
    """What stands in allOf, anyOf or oneOf; null is a branch that says nothing."""
    return [schema_of(branch) or NO_SCHEMA for branch in schema.get(junctor) or ()]


def has_additional(schema: Schema) -> bool:
    """Whether `additionalProperties` speaks of unlisted fields at all; even `false` keeps them from being pruned."""
    return schema.get("additionalProperties") is not None


def child_schema(schema: Schema | None, name: str) -> Schema | None:
    """The schema that applies to the field `name`, None where its value is not described."""
    if schema is None:
        return None
    found = properties_of(schema).get(name)
    return schema_of(found) if found is not None else schema_of(schema.get("additionalProperties"))
