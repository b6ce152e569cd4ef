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
# What only documents, and what built-in kinds say of lists by rules that differ from those of custom resources.
_LEFT_OUT = frozenset(
    {"description", "example", "title", _GVK, "x-kubernetes-unions", "x-kubernetes-patch-strategy"}
    | {"x-kubernetes-patch-merge-key", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"}
)
# JSONSchemaProps holds itself; what lies deeper than any object of a person is taken as it is.
DEEPEST = 40


def schema_of_kind(document: Mapping[str, Any], group: str, version: str, kind: str) -> dict[str, Any] | None:
    """The schema of one kind out of an OpenAPI v3 document, None where the document does not describe it."""
    schemas = (document.get("components") or {}).get("schemas") or {}
    wanted = {"group": group, "version": version, "kind": kind}
    for schema in schemas.values():
        if wanted not in (schema.get(_GVK) or []):
            continue
        properties = {name: one for name, one in (schema.get("properties") or {}).items() if name != "metadata"}
        if not properties:
            return None
        # Of a custom resource the defaults are the CRD's own; those of built-in kinds are zero values of Go.
        is_custom = _REFERENCE not in str(properties)
        inlined = _Inliner(schemas, is_custom).inlined({**schema, "properties": properties}, 0)
        return {**inlined, "type": "object"}
    return None


class _Inliner:
    def __init__(self, schemas: Mapping[str, Any], keeps_defaults: bool):
        self._schemas = schemas
        self._left_out = _LEFT_OUT if keeps_defaults else _LEFT_OUT | {"default"}
        if keeps_defaults:
            self._left_out = frozenset({"description", "example", "title", _GVK})

    def inlined(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        node = self._resolved(schema)
        if depth > DEEPEST or node is None:
            return {_PRESERVE: True}
        if node.get("format") == "int-or-string":
            return {"x-kubernetes-int-or-string": True}
        found = {key: value for key, value in node.items() if key not in self._left_out}
        if isinstance(found.get("properties"), Mapping):
            found["properties"] = {key: self.inlined(one, depth + 1) for key, one in found["properties"].items()}
        for key in ("items", "additionalProperties"):
            if isinstance(found.get(key), Mapping):
                found[key] = self.inlined(found[key], depth + 1)
        return found if _is_described(found) else {**found, _PRESERVE: True}

    def _resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The schema that stands behind a reference, which Kubernetes also writes as an allOf of one."""
        branches = schema.get("allOf")
        inner = branches[0] if isinstance(branches, list) and len(branches) == 1 else schema
        reference = str(inner.get("$ref") or "")
        if not reference:
            return schema
        found = self._schemas.get(reference.removeprefix(_REFERENCE))
        return found if isinstance(found, Mapping) else None


def _is_described(node: Mapping[str, Any]) -> bool:
    """Whether a node says what may stand there: an object without fields is anything (RawExtension)."""
    if node.get("type") == "object":
        return any(key in node for key in ("properties", "additionalProperties"))
    return "type" in node or any(key in node for key in ("oneOf", "anyOf", "allOf", "x-kubernetes-int-or-string"))
