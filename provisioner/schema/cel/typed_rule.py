"""A CEL rule, and the schema that gives its variables their types (type_check reads it, and loads protobuf)."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.schema.subschemas import Schema


@dataclass(frozen=True, slots=True)
class TypedRule:
    """One rule, and the schema of the value that it is about."""

    text: str
    schema: Schema
    is_root: bool = False
    has_optional_old: bool = False
