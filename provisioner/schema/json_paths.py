"""The simple paths by which a CRD names fields of its own schema: `.spec.size`, `.spec.map['key']`."""

from __future__ import annotations

import re

from provisioner.schema.reading import NO_SCHEMA, Schema, properties_of, schema_of

STEPS = re.compile(r"[.\[\]]|[^.\[\]]+")
KEYED = re.compile(r"(?:\.(?P<name>[^.\[\]]+)|\['(?P<key>(?:[^'\\]|\\.)*)'\])")
ESCAPED = re.compile(r"\\(.)")


def pointed_at(json_path: str, schema: Schema) -> tuple[Schema, str]:
    """The node that a path of plain names leads to, or why it leads nowhere, in the API server's words."""
    node = schema
    steps = iter(STEPS.findall(json_path))
    for step in steps:
        if step == "[":
            return node, "array notation is not allowed"
        if step != ".":
            return node, f"expected [ or . but got: {step}"
        name = next(steps, None)
        if name is None:
            return node, "unexpected end of JSON path"
        below = _below(node, name)
        if below is None:
            return node, "does not refer to a valid field"
        node = below
    return node, ""


def leads_somewhere(json_path: str, schema: Schema) -> bool:
    """Whether a path, which may also name fields as `['name']`, names a field that the schema has."""
    node: Schema | None = schema
    place = 0
    while place < len(json_path) and node is not None:
        step = KEYED.match(json_path, place)
        if step is None:
            return False
        place = step.end()
        node = _below(node, step["name"] or ESCAPED.sub(r"\1", step["key"] or ""))
    return node is not None


def _below(node: Schema, name: str) -> Schema | None:
    known = properties_of(node)
    if name in known:
        return schema_of(known[name]) or NO_SCHEMA
    return schema_of(node.get("additionalProperties"))
