"""The schemas that an API server publishes, in the form of a CRD's: references put in place. Pure.

They say which fields a kind has and of what type they are, so that an object can be held against them where the server
cannot be asked to try it. What the server decides in code they do not say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_REFERENCE = "#/components/schemas/"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_GVK = "x-kubernetes-group-version-kind"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_WORDS = frozenset({"description", "example", "title", _GVK})
# What built-in kinds say of lists and defaults by rules that differ from those of custom resources.
_LEFT_OUT = _WORDS | {
    "default",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-unions",
}


def schema_of_kind(document: Mapping[str, Any], group: str, version: str, kind: str) -> dict[str, Any] | None:
    """The schema of one kind out of an OpenAPI v3 document, None where the document does not describe it."""
    schemas = (document.get("components") or {}).get("schemas") or {}
    wanted = {"group": group, "version": version, "kind": kind}
    for schema in schemas.values():
        if wanted not in (schema.get(_GVK) or []):
            continue
        properties = {
            name: property_ for name, property_ in (schema.get("properties") or {}).items() if name != "metadata"
        }
        if not properties:
            return None
        # Of a custom resource the defaults are the CRD's own; those of built-in kinds are zero values of Go.
        is_custom = _REFERENCE not in str(properties)
        inlined = _Inliner(schemas, is_custom).inlined({**schema, "properties": properties}, frozenset())
        return {**inlined, "type": "object"}
    return None


class _Inliner:
    def __init__(self, schemas: Mapping[str, Any], keeps_defaults: bool):
        self._schemas = schemas
        self._left_out = _WORDS if keeps_defaults else _LEFT_OUT

    def inlined(self, schema: Mapping[str, Any], above: frozenset[str]) -> dict[str, Any]:
        """`above` are the references that led here: what holds itself (JSONSchemaProps) is taken as it is."""
        # Kubernetes also writes a reference as an allOf of one.
        branches = schema.get("allOf")
        stated = branches[0] if isinstance(branches, list) and len(branches) == 1 else schema
        name = str(stated.get("$ref") or "").removeprefix(_REFERENCE)
        node = self._schemas.get(name) if name else schema
        if name in above or not isinstance(node, Mapping):
            return {_PRESERVE: True}
        below = above | {name} if name else above
        if node.get("format") == "int-or-string":
            return {_INT_OR_STRING: True}
        found = {key: value for key, value in node.items() if key not in self._left_out}
        if isinstance(found.get("properties"), Mapping):
            found["properties"] = {
                key: self.inlined(property_, below) for key, property_ in found["properties"].items()
            }
        for key in ("items", "additionalProperties"):
            if isinstance(found.get(key), Mapping):
                found[key] = self.inlined(found[key], below)
        # Whether a node says what may stand there: an object without fields is anything (RawExtension).
        fields = ("properties", "additionalProperties")
        telling = fields if found.get("type") == "object" else ("type", "oneOf", "anyOf", "allOf", _INT_OR_STRING)
        return found if any(key in found for key in telling) else {**found, _PRESERVE: True}
