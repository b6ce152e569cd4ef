"""Resources inside resources (x-kubernetes-embedded-resource): each needs an apiVersion and a kind of its own."""

from __future__ import annotations

from typing import Any

from provisioner.schema.admission.object_meta import metadata_errors
from provisioner.schema.fields import FieldError, child, index, invalid, key, required
from provisioner.schema.names import label_problems
from provisioner.schema.subschemas import Schema, properties_of, schema_of


def embedded_errors(schema: Schema, obj: Any) -> list[FieldError]:
    """The errors of all embedded resources in `obj`; the resource itself is not looked at."""
    return _errors(schema, obj, "")


def _errors(schema: Schema | None, value: Any, path: str) -> list[FieldError]:
    if schema is None:
        return []
    found: list[FieldError] = []
    if isinstance(value, dict):
        if schema.get("x-kubernetes-embedded-resource") is True:
            found += _resource_errors(value, path)
        known, additional = properties_of(schema), schema_of(schema.get("additionalProperties"))
        for name, entry in value.items():
            if name in known:
                found += _errors(schema_of(known[name]), entry, child(path, name))
            else:
                found += _errors(additional, entry, key(path, name))
    elif isinstance(value, list):
        items = schema_of(schema.get("items"))
        for place, item in enumerate(value):
            found += _errors(items, item, index(path, place))
    return found


def _resource_errors(value: dict[str, Any], path: str) -> list[FieldError]:
    found = [required(child(path, name)) for name in ("apiVersion", "kind") if name not in value]
    for name in ("apiVersion", "kind"):
        text = value.get(name)
        if name not in value:
            continue
        if not isinstance(text, str):
            found.append(invalid(child(path, name), text, "must be a string"))
        elif not text:
            found.append(invalid(child(path, name), text, "must not be empty"))
    found += _name_errors(value, path)
    metadata = value.get("metadata")
    if metadata is None:
        return found
    if not isinstance(metadata, dict):
        return [*found, invalid(child(path, "metadata"), metadata, "must be an object")]
    return found + metadata_errors(metadata, child(path, "metadata"))


def _name_errors(value: dict[str, Any], path: str) -> list[FieldError]:
    found = []
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        found.append(invalid(child(path, "apiVersion"), version, f"unexpected GroupVersion string: {version}"))
    problems = label_problems(kind.lower()) if isinstance(kind, str) and kind else ""
    if problems:
        detail = f"may have mixed case, but should otherwise match: {problems}"
        found.append(invalid(child(path, "kind"), kind, detail))
    return found
