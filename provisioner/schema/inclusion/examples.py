"""The smallest value that a schema seems to ask for: a candidate to show reviewers, which the caller validates."""

from __future__ import annotations

import math
from typing import Any

from provisioner.schema.fields import DEEPEST
from provisioner.schema.inclusion.languages import inclusion
from provisioner.schema.subschemas import NO_SCHEMA, Schema, properties_of, schema_of

NOTHING = r"[^\x00-\x{10FFFF}]"
MAX_ITEMS = 32
SAMPLES = (
    "",
    "x",
    "a b",
    "a@example.com",
    "example.com",
    "10.0.0.1",
    "10.0.0.0/8",
    "::1",
    "2001-02-03",
    "2001-02-03T04:05:06Z",
    "1h",
    "https://example.com/",
    "c2VjcmV0",
    "#ffffff",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "6ba7b810-9dad-41d1-80b4-00c04fd430c8",
    "00:00:5e:00:53:01",
    "507f1f77bcf86cd799439011",
)


def smallest(schema: Schema, depth: int = 0) -> Any:
    """A small value of the schema's type, with what it requires; not always one that the schema accepts."""
    if schema.get("default") is not None:
        return schema["default"]
    listed = schema.get("enum")
    if isinstance(listed, list) and listed:
        return listed[0]
    kind = schema.get("type")
    if kind == "object" or properties_of(schema):
        return _object(schema, depth)
    if kind == "array":
        items = smallest(schema_of(schema.get("items")) or NO_SCHEMA, depth + 1) if depth < DEEPEST else None
        return [items] * min(int(schema.get("minItems") or 0), MAX_ITEMS)
    if kind in ("integer", "number") or schema.get("x-kubernetes-int-or-string"):
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is not None:
            return low + (1 if schema.get("exclusiveMinimum") else 0)
        if high is not None:
            return high - (1 if schema.get("exclusiveMaximum") else 0)
        return schema.get("multipleOf") or 0
    return True if kind == "boolean" else _text(schema)


def text_of(pattern: str, shortest: int = 0, longest: float = math.inf) -> str | None:
    """The shortest text within the lengths that matches `pattern`; None where none was found."""
    return inclusion(pattern, NOTHING, shortest, longest).counterexample


def _object(schema: Schema, depth: int) -> dict[str, Any]:
    known = properties_of(schema)
    needed = [str(name) for name in schema.get("required") or ()]
    if depth >= DEEPEST:
        return {}
    return {name: smallest(schema_of(known.get(name)) or NO_SCHEMA, depth + 1) for name in needed}


def _text(schema: Schema) -> str:
    limit = schema.get("maxLength")
    longest = math.inf if limit is None else limit
    return text_of(str(schema.get("pattern") or ""), int(schema.get("minLength") or 0), longest) or ""
