"""A schema without the parts in which nothing can be wrong: most of a large one, and all that it costs to judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from provisioner.regexes import BadRegularExpression, compiled
from provisioner.schema.admission.pruning import TYPE_META
from provisioner.schema.definition.structural import INT_OR_STRING, INT_STRING
from provisioner.schema.fields import Schema, same_json

# Keywords that a structural schema may have anywhere, whatever they say; those with schemas below are looked into.
PLAIN = (
    frozenset(
        ("type", "description", "format", "title", "example", "required", "enum", "pattern", "nullable", "multipleOf")
    )
    | frozenset(f"{side}{what}" for side in ("min", "max") for what in ("imum", "Length", "Items", "Properties"))
    | frozenset(("exclusiveMinimum", "exclusiveMaximum", "properties", "items", "additionalProperties"))
)
# What else a node of a type may say.
SOUND = frozenset(
    (
        ("x-kubernetes-list-type", "atomic", "array"),
        ("x-kubernetes-map-type", "atomic", "object"),
        ("x-kubernetes-map-type", "granular", "object"),
        ("x-kubernetes-preserve-unknown-fields", True, "object"),
    )
)
IDIOM: Schema = {INT_STRING: True, "anyOf": INT_OR_STRING}
# What is judged by the whole of the schema below.
WHOLE = frozenset(("default", "x-kubernetes-validations", "x-kubernetes-embedded-resource")) | frozenset(
    ("allOf", "anyOf", "oneOf", "not")
)
SCALARS = frozenset({"boolean", "integer", "number", "string"})
BEYOND_DOUBT: Schema = {}
STUBS: Mapping[str, Schema] = {
    **{kind: {"type": kind} for kind in SCALARS},
    "object": {"type": "object"},
    "array": {"type": "array", "items": {"type": "string"}},
}


def thinned(schema: Schema, named: Sequence[str] = ()) -> Schema:
    """The schema without the fields that are beyond doubt, and other such subtrees cut down to their types.

    Errors and their paths stay the same. `named` are fields that something above asks for.
    """
    if not WHOLE.isdisjoint(schema):
        return schema
    found = dict(schema)
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(properties, Mapping):
        # Beside `additionalProperties` it matters that there are any.
        keeps_all = schema.get("additionalProperties") is not None
        kept = TYPE_META.union(named)
        parts = ((name, it if name in kept else _part(it, keeps_all)) for name, it in properties.items())
        found["properties"] = {name: part for name, part in parts if part is not BEYOND_DOUBT}
    if isinstance(schema.get("additionalProperties"), Mapping):
        found["additionalProperties"] = _part(schema["additionalProperties"], is_kept=True)
    if isinstance(items, Mapping):
        is_asked = schema.get("x-kubernetes-list-type") not in (None, "atomic")
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        found["items"] = thinned(items, keys) if is_asked else _part(items, is_kept=True)
    return found


def _part(node: Any, is_kept: bool) -> Any:
    if not isinstance(node, Mapping):
        return node
    if not _is_plain(node):
        return thinned(node)
    return STUBS[node.get("type", "string")] if is_kept else BEYOND_DOUBT


def _is_plain(node: Any) -> bool:
    if not isinstance(node, dict) or not (node.keys() <= PLAIN or _is_sound(node)):
        return False
    if "pattern" in node and not _is_readable(node["pattern"]):
        return False
    kind = node.get("type")
    if kind in SCALARS or "anyOf" in node:
        return not ("properties" in node or "items" in node or "additionalProperties" in node)
    if kind == "array":
        return "properties" not in node and "additionalProperties" not in node and _is_plain(node.get("items"))
    return kind == "object" and "items" not in node and _has_plain_fields(node)


def _is_sound(node: dict[str, Any]) -> bool:
    """Whether a node says nothing doubtful beside what may stand anywhere."""
    beyond = node.keys() - PLAIN
    if beyond == IDIOM.keys():
        return "type" not in node and all(same_json(node[name], it) for name, it in IDIOM.items())
    said = [(name, node[name], node.get("type")) for name in beyond]
    return all(isinstance(value, str | bool) and (name, value, kind) in SOUND for name, value, kind in said)


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
