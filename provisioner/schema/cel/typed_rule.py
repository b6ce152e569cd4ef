"""A CEL rule, and the schema that gives its variables their types (type_check reads it, and loads protobuf)."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.schema.reading import Schema


@dataclass(frozen=True, slots=True)
class TypedRule:
    """One rule, or the expression of its message, and the schema of the value that it is about.

    `result` is the type that it must come to.
    """

    text: str
    schema: Schema
    is_root: bool = False
    has_optional_old: bool = False
    result: str = "bool"
