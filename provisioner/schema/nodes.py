"""One schema node as the comparison sees it: idioms written in one way, types as sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.schema.fields import Schema, properties_of, schema_of
from provisioner.schema.verdicts import Path

JUNCTORS = frozenset({"allOf", "anyOf", "oneOf"})
INT_OR_STRING = ({"type": "integer"}, {"type": "string"})
SELECTOR = frozenset({"matchLabels", "matchExpressions"})
REFERENCE = frozenset(
    ("apiVersion", "kind", "name", "namespace", "group", "apiGroup", "uid", "key", "optional", "fieldPath")
) | frozenset({"resourceVersion"})
BELOW = frozenset({"properties", "items"})
INT_STRING = "x-kubernetes-int-or-string"


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Where a pair of nodes stands.

    `is_always_there`: items, map values and required fields without a default. `is_droppable`: values of a map, which
    may lose keys.
    """

    path: Path = ()
    is_element: bool = False
    is_always_there: bool = False
    is_droppable: bool = False


def plain_node(schema: Schema) -> Schema:
    """The node with the idioms of "integer or string" all written in one way."""
    if JUNCTORS.isdisjoint(schema):
        return schema
    any_of, all_of = schema.get("anyOf"), schema.get("allOf")
    if _is_idiom(any_of):
        rest = {name: value for name, value in schema.items() if name != "anyOf"}
        return {**rest, INT_STRING: True} if not schema.get("type") else schema
    if schema.get(INT_STRING) and isinstance(all_of, list) and all_of and _is_idiom(_first(all_of)):
        return {**{name: value for name, value in schema.items() if name != "allOf"}, "allOf": all_of[1:] or None}
    if _is_idiom(schema.get("oneOf")) and not schema.get("type"):
        return {**{name: value for name, value in schema.items() if name != "oneOf"}, INT_STRING: True}
    return schema


def hoisted(schema: Schema) -> Schema:
    """The same node with what its allOf says of fields and items said by these: all of it is asked of them anyway."""
    listed = schema.get("allOf")
    if not isinstance(listed, list) or not any(isinstance(it, Mapping) and it.keys() & BELOW for it in listed):
        return schema
    found, rest = {**schema, "properties": dict(properties_of(schema))}, []
    for branch in listed:
        left = _lowered(found, branch) if isinstance(branch, Mapping) else branch
        rest += [left] if left else []
    if not found["properties"]:
        del found["properties"]
    return {**found, "allOf": rest or None}


def _lowered(node: dict[str, Any], branch: Schema) -> Schema:
    """What a branch of allOf says beside what `node` now says of its fields and items."""
    asked, items = properties_of(branch), schema_of(branch.get("items"))
    known, own = node["properties"], schema_of(node.get("items"))
    left = {name: it for name, it in branch.items() if name not in BELOW and it is not None}
    kept = {name: it for name, it in asked.items() if schema_of(it) is None or schema_of(known.get(name)) is None}
    for name in asked.keys() - kept.keys():
        known[name] = _with_branch(known[name], asked[name])
    if kept:
        left["properties"] = kept
    if items is not None and own is None:
        left["items"] = items
    elif items is not None and own is not None:
        node["items"] = _with_branch(own, items)
    return left


def _with_branch(node: Schema, branch: Schema) -> Schema:
    return {**node, "allOf": [*(node.get("allOf") or ()), branch]} if branch else node


def _first(branches: list[Any]) -> Any:
    branch = branches[0]
    return branch.get("anyOf") if isinstance(branch, Mapping) and set(branch) == {"anyOf"} else None


def _is_idiom(branches: Any) -> bool:
    return isinstance(branches, list) and len(branches) == 2 and all(it in branches for it in INT_OR_STRING)


def types(schema: Schema) -> frozenset[str]:
    if schema.get(INT_STRING):
        return frozenset({"integer", "string"})
    kind = schema.get("type")
    if isinstance(kind, str) and kind:
        return frozenset({kind})
    if properties_of(schema) or additional_of(schema) is not None:
        return frozenset({"object"})
    return frozenset({"array"}) if schema_of(schema.get("items")) is not None else frozenset()


def is_reference(schema: Schema) -> bool:
    """Whether a node names other objects, or selects them, which one applier usually writes as a whole."""
    names = set(properties_of(schema))
    return bool(names) and (names <= SELECTOR or ("name" in names and names <= REFERENCE))


def with_integers(types: frozenset[str]) -> frozenset[str]:
    return types | {"integer"} if "number" in types else types


def type_words(types: frozenset[str]) -> str:
    return " or ".join(sorted(types)) or "any"


def as_object(schema: Schema) -> Schema:
    """The node of a whole resource, which is an object whether or not its schema says so."""
    return schema if types(schema) else {**schema, "type": "object"}


def may_hold_objects(schema: Schema) -> bool:
    """Whether a value may be an object, or a list with one somewhere inside."""
    node: Schema | None = schema
    while node is not None and types(node) == {"array"}:
        node = schema_of(node.get("items"))
    return node is not None and (not types(node) or "object" in types(node))


def additional_of(schema: Schema) -> Any:
    """A map's values: a schema, True or False; `{}` says the same as True, but keeps what is below."""
    return schema.get("additionalProperties")


def count(schema: Schema) -> int:
    """How many fields there are below a node."""
    found, waiting = 0, [schema]
    while waiting:
        node = waiting.pop()
        fields = properties_of(node)
        found += len(fields)
        inside = (*fields.values(), node.get("items"), node.get("additionalProperties"))
        waiting += [it for it in map(schema_of, inside) if it is not None]
    return found
