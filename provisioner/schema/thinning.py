"""A schema without the parts in which nothing can be wrong: most of a large one, and all that it costs to judge it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.schema.formats import BadRegularExpression, compiled
from provisioner.schema.pruning import TYPE_META, Schema

# Keywords that a structural schema may have anywhere, whatever they say; those with schemas below are looked into.
PLAIN = (
    frozenset(
        ("type", "description", "format", "title", "example", "required", "enum", "pattern", "nullable", "multipleOf")
    )
    | frozenset(f"{side}{what}" for side in ("min", "max") for what in ("imum", "Length", "Items", "Properties"))
    | frozenset(("exclusiveMinimum", "exclusiveMaximum", "properties", "items", "additionalProperties"))
)
# What is judged by the whole of the schema below.
WHOLE = frozenset(
    ("default", "x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-embedded-resource")
) | frozenset(("allOf", "anyOf", "oneOf", "not"))
SCALARS = frozenset({"boolean", "integer", "number", "string"})
STUBS: Mapping[str, Schema] = {
    **{kind: {"type": kind} for kind in SCALARS},
    "object": {"type": "object"},
    "array": {"type": "array", "items": {"type": "string"}},
}


def thinned(schema: Schema) -> Schema:
    """The schema with every subtree that is beyond doubt cut down to its type; errors and their paths stay the same."""
    if not WHOLE.isdisjoint(schema):
        return schema
    found = dict(schema)
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        found["properties"] = {name: it if name in TYPE_META else _part(it) for name, it in properties.items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            found[name] = _part(schema[name])
    return found


def _part(node: Any) -> Any:
    if not isinstance(node, Mapping):
        return node
    return STUBS[node["type"]] if _is_plain(node) else thinned(node)


def _is_plain(node: Any) -> bool:
    if not isinstance(node, dict) or not node.keys() <= PLAIN:
        return False
    kind = node.get("type")
    if kind in SCALARS:
        return not _has_schemas(node) and ("pattern" not in node or _is_readable(node["pattern"]))
    if kind == "array":
        return "properties" not in node and "additionalProperties" not in node and _is_plain(node.get("items"))
    return kind == "object" and "items" not in node and "pattern" not in node and _has_plain_fields(node)


def _has_schemas(node: dict[str, Any]) -> bool:
    return "properties" in node or "items" in node or "additionalProperties" in node


def _has_plain_fields(node: dict[str, Any]) -> bool:
    properties = node.get("properties")
    if properties is None:
        return "additionalProperties" not in node or _is_plain(node["additionalProperties"])
    if not isinstance(properties, dict) or "additionalProperties" in node:
        return False
    return all(map(_is_plain, properties.values()))


def _is_readable(pattern: Any) -> bool:
    try:
        return isinstance(pattern, str) and compiled(pattern) is not None
    except BadRegularExpression:
        return False
