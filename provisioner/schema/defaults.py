"""Whether the defaults of a schema are values that the schema itself takes."""

from __future__ import annotations

from collections.abc import Mapping

from provisioner.schema.embedded import embedded_errors
from provisioner.schema.fields import NO_PATH, FieldError, child, invalid, key, same_json
from provisioner.schema.pruning import TYPE_META, Schema, copied, properties_of, prune, prune_value, schema_of
from provisioner.schema.rules import rule_errors
from provisioner.schema.validating import validate

EMBEDDED = "x-kubernetes-embedded-resource"


def default_errors(schema: Schema, path: str, *, needs_pruned: bool = True) -> list[FieldError]:
    """The defaults that do not fit: with unknown fields (where `needs_pruned`), or invalid by their own schema.

    Defaults of a resource's own apiVersion, kind and metadata are judged by the keywords, not here.
    """
    found: list[FieldError] = []
    for at, node in _with_defaults(schema, path):
        value = copied(node["default"])
        place = child(at, "default")
        if needs_pruned and not same_json(_pruned(node), value):
            found.append(invalid(place, value, "must not have unknown fields"))
        errors = validate(node, value) or embedded_errors(node, value) or rule_errors(node, value, None, None)
        found += [FieldError(_below(place, error.path), error.message) for error in errors]
    return found


def has_unpruned_default(schema: Schema) -> bool:
    """Whether a default has fields that its own schema would drop."""
    return any(not same_json(_pruned(node), copied(node["default"])) for _, node in _with_defaults(schema, ""))


def _pruned(node: Schema) -> object:
    if node.get(EMBEDDED) is True:
        return prune(node, node["default"])[0]
    return prune_value(node, node["default"])


def _with_defaults(schema: Schema, path: str) -> list[tuple[str, Schema]]:
    found: list[tuple[str, Schema]] = []
    waiting = [(path, schema, True)]
    while waiting:
        at, node, is_root = waiting.pop()
        if node.get("default") is not None:
            found.append((at, node))
        items = schema_of(node.get("items"))
        if items is not None:
            waiting.append((child(at, "items"), items, False))
        is_resource = is_root or node.get(EMBEDDED) is True
        for name, below in properties_of(node).items():
            if isinstance(below, Mapping) and not (is_resource and name in TYPE_META):
                waiting.append((key(child(at, "properties"), name), below, False))
    return found


def _below(place: str, path: str) -> str:
    if path in (NO_PATH, ""):
        return place
    return place + path if path.startswith("[") else f"{place}.{path}"
