"""OpenAPI v3: what `kubectl explain` shows, what objects are held against offline, and that this server validates.

Schemas say types, choices, descriptions and what is required; how lists are merged they leave to what kubectl knows.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

from provisioner.sandbox.types import builtin
from provisioner.sandbox.types.discovery import VERSION, groups
from provisioner.sandbox.types.field_forms import INT_OR_STRING, QUANTITY
from provisioner.sandbox.types.kinds import SandboxKind

Schema = dict[str, Any]
_PLAIN: dict[str, Schema] = {
    "str": {"type": "string"},
    "bytes": {"type": "string", "format": "byte"},
    "datetime": {"type": "string", "format": "date-time"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
}
# Types that are no classes: (name of the schema, the schema).
_SHARED: dict[str, tuple[str, Schema]] = {
    INT_OR_STRING: (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
    QUANTITY: (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
}
_CLASS = re.compile(r"(?P<group>[A-Z][a-z]+)?(?P<version>V\d+(?:(?:alpha|beta)\d+)?)(?P<kind>.+)")
_META = "V1ObjectMeta"
# An OpenAPI v2 document in protobuf that says nothing. kubectl checks each item of a List against it by itself, and
# lets pass what it does not know; the server looks at the items when they come.
NOTHING = ""
NOTHING_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def document(
    kinds: list[SandboxKind], parts: list[str], schema_of: Callable[[SandboxKind], Schema | None]
) -> str | None:
    """/openapi/v3 and what it names, as JSON; `schema_of` gives the schema of a custom kind. None for other paths."""
    places = [
        f"apis/{name}/{version}" if name else f"api/{version}"
        for name, versions in groups(kinds).items()
        for version in versions
    ]
    if parts == ["v3"]:
        return json.dumps({"paths": {place: {"serverRelativeURL": f"/openapi/v3/{place}"} for place in places}})
    place = "/".join(parts[1:])
    if parts[:1] != ["v3"] or place not in places:
        return None
    chosen = tuple(kind for kind in kinds if _place(kind) == place)
    if any(kind.is_custom for kind in chosen):
        return _described(place, chosen, schema_of)
    return _of_built_in(place, chosen)


@functools.cache
def _of_built_in(place: str, kinds: tuple[SandboxKind, ...]) -> str:
    """Made once: these documents are large, read for every report, and never change."""
    return _described(place, kinds, lambda _: None)


def _described(place: str, kinds: tuple[SandboxKind, ...], schema_of: Callable[[SandboxKind], Schema | None]) -> str:
    found = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": {f"/{place}/{kind.plural}/{{name}}": {"patch": _patch(kind)} for kind in kinds},
        "components": {"schemas": _schemas(kinds, schema_of)},
    }
    return json.dumps(found)


def _patch(kind: SandboxKind) -> dict[str, Any]:
    return {
        "parameters": [
            {"name": name, "in": "query"} for name in ("fieldValidation", "dryRun", "fieldManager", "force")
        ],
        "responses": {},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": _identity(kind),
    }


def _identity(kind: SandboxKind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _place(kind: SandboxKind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def _schemas(kinds: tuple[SandboxKind, ...], schema_of: Callable[[SandboxKind], Schema | None]) -> dict[str, Schema]:
    """The schemas of kinds, and of all classes that they are made of."""
    found: dict[str, Schema] = {}
    for kind in kinds:
        stated = schema_of(kind) if kind.is_custom else None
        model = builtin.model_name(kind)
        if stated is not None:
            _collect(_META, found)
            found[f"{'.'.join(reversed(kind.group.split('.')))}.{kind.version}.{kind.kind}"] = _custom(kind, stated)
        elif not kind.is_custom and model != "object":
            _collect(model, found)
            found[_name(model)] = {**found[_name(model)], "x-kubernetes-group-version-kind": [_identity(kind)]}
    return found


def _custom(kind: SandboxKind, stated: Schema) -> Schema:
    plain = dict.fromkeys(("apiVersion", "kind"), _PLAIN["str"])
    properties = {**plain, **(stated.get("properties") or {}), "metadata": _of_form(_META)}
    return {**stated, "properties": properties, "x-kubernetes-group-version-kind": [_identity(kind)]}


def _collect(model: str, found: dict[str, Schema]) -> None:
    if model in _SHARED:
        name, shared = _SHARED[model]
        found[name] = shared
        return
    made = _of_class(model)
    if made is None or _name(model) in found:
        return
    schema, others = made
    found[_name(model)] = schema
    for other in others:
        _collect(other, found)


@functools.cache
def _of_class(model: str) -> tuple[Schema, tuple[str, ...]] | None:
    """(schema, the forms of its fields without lists and maps) of a class; None for what is none."""
    described = builtin.described(model)
    if described is None:
        return None
    about, fields = described
    schema: Schema = {
        "type": "object",
        "description": about,
        "properties": {it.name: {**_of_field(it), "description": it.description} for it in fields},
    }
    required = [it.name for it in fields if it.is_required]
    return ({**schema, "required": required} if required else schema), tuple(_innermost(it.form) for it in fields)


def _of_field(field: builtin.Field) -> Schema:
    schema = _of_form(field.form)
    if not field.choice:
        return schema
    if schema["type"] == "array":
        return {**schema, "items": {**schema["items"], "enum": list(field.choice)}}
    return {**schema, "enum": list(field.choice)}


def _of_form(form: str) -> Schema:
    wrapping, inner = builtin.unwrapped(form)
    if wrapping == "list":
        return {"type": "array", "items": _of_form(inner)}
    if wrapping == "map":
        return {"type": "object", "additionalProperties": _of_form(inner)}
    if form in _PLAIN:
        return dict(_PLAIN[form])
    if form not in _SHARED and builtin.described(form) is None:
        return {"type": "object"}
    # As the API server writes it: a reference beside a description needs this wrapping.
    return {"allOf": [{"$ref": f"#/components/schemas/{_name(form)}"}]}


def _innermost(form: str) -> str:
    wrapping, inner = builtin.unwrapped(form)
    return _innermost(inner) if wrapping else form


def _name(model: str) -> str:
    """The name of a class's schema; kubectl shows what follows its last dot."""
    if model in _SHARED:
        return _SHARED[model][0]
    found = _CLASS.fullmatch(model)
    if found is None:
        return model
    return f"io.k8s.{(found['group'] or 'api').lower()}.{found['version'].lower()}.{found['kind']}"
