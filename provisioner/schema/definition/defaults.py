"""Whether the defaults of a schema are values that the schema itself takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.schema.admission.embedded import embedded_errors
from provisioner.schema.admission.pruning import TYPE_META, prune, prune_value
from provisioner.schema.admission.rules import rule_errors
from provisioner.schema.admission.validation import validate
from provisioner.schema.cel.values import has_cel_type
from provisioner.schema.fields import NO_PATH, FieldError, child, invalid, key, same_json
from provisioner.schema.subschemas import Schema, copied, properties_of, schema_of

EMBEDDED, RULES = "x-kubernetes-embedded-resource", "x-kubernetes-validations"
INT_OR_STRING = "x-kubernetes-int-or-string"
UNTYPED = "rule compiler initialization error: failed to convert to declType for CEL validation rules"


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
            continue
        errors = embedded_errors({**node, EMBEDDED: True} if at == path else node, value)
        misfits = [] if errors else validate(_unconverted(node), value)
        found += [FieldError(child(place, it.path) if _is_inside(it.path) else place, it.message) for it in misfits]
        errors = errors if errors or misfits else _rule_errors(node, value)
        found += [FieldError(_below(place, error.path), error.message) for error in errors]
    return found


def _rule_errors(node: Schema, value: object) -> list[FieldError]:
    """A default is a new value, and one that took the place of its like: the API server runs the rules for both."""
    if node.get(RULES) and not has_cel_type(node):
        kind = str(node.get("type") or "")
        return [invalid("", kind, UNTYPED)]
    found = [*rule_errors(node, value, None, None), *rule_errors(node, value, value, None)]
    return list(dict.fromkeys(found))


def has_unpruned_default(schema: Schema) -> bool:
    """Whether a default has fields that its own schema would drop."""
    return any(not same_json(_pruned(node), copied(node["default"])) for _, node in _with_defaults(schema, ""))


def _unconverted(schema: Any) -> Any:
    """A schema as the API server holds it against defaults: there int-or-string says nothing of the type."""
    if isinstance(schema, Mapping):
        return {name: _unconverted(entry) for name, entry in schema.items() if name != INT_OR_STRING}
    return [_unconverted(entry) for entry in schema] if isinstance(schema, list) else schema


def _is_inside(path: str) -> bool:
    return path not in (NO_PATH, "")


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
    if not _is_inside(path):
        return place
    return place + path if path.startswith("[") else f"{place}.{path}"
