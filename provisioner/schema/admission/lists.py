"""Lists that are sets or maps: no item, or no key, may occur twice."""

from __future__ import annotations

from typing import Any

from provisioner.schema.admission.correlation import list_keys
from provisioner.schema.fields import FieldError, child, duplicate, go_json, index, invalid, key
from provisioner.schema.subschemas import Schema, properties_of, schema_of


def list_errors(schema: Schema, obj: Any) -> list[FieldError]:
    """Repeated items or keys in every list of `obj` whose schema says x-kubernetes-list-type `set` or `map`."""
    return _errors(schema, obj, "")


def _errors(schema: Schema | None, value: Any, path: str) -> list[FieldError]:
    if schema is None:
        return []
    if isinstance(value, dict):
        additional, known = schema_of(schema.get("additionalProperties")), properties_of(schema)
        found: list[FieldError] = []
        for name, entry in value.items():
            if additional is not None:
                found += _errors(additional, entry, key(path, name))
            if name in known:
                found += _errors(schema_of(known[name]), entry, child(path, name))
        return found
    return _list_errors(schema, value, path) if isinstance(value, list) else []


def _list_errors(schema: Schema, value: list[Any], path: str) -> list[FieldError]:
    found: list[FieldError] = []
    match schema.get("x-kubernetes-list-type"):
        case "set":
            found += [duplicate(index(path, place), value[place]) for place in _repeated(value)]
        case "map":
            found += _map_errors(schema, value, path)
    items = schema_of(schema.get("items"))
    for place, item in enumerate(value):
        found += _errors(items, item, index(path, place))
    return found


def _map_errors(schema: Schema, value: list[Any], path: str) -> list[FieldError]:
    for place, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            return [invalid(index(path, place), item, "must be an object for an array of list-type map")]
    keys = list_keys(schema) or []
    found = [{name: item[name] for name in keys if name in item} if item else {} for item in value]
    return [duplicate(index(path, place), found[place]) for place in _repeated(found)]


def _repeated(values: list[Any]) -> list[int]:
    """Where each repeated value occurs for the second time; of scalars, 1 and 1.0 are two."""
    times: dict[Any, int] = {}
    places = []
    for place, value in enumerate(values):
        text = (type(value), value) if isinstance(value, int | float) else go_json(value)
        times[text] = times.get(text, 0) + 1
        if times[text] == 2:
            places.append(place)
    return places
