"""Discovery and OpenAPI v3: what the sandbox says of the kinds that it serves.

Schemas say types, choices, descriptions and what is required; how lists are merged they leave to what kubectl knows.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from provisioner.sandbox import builtin
from provisioner.sandbox.builtin import INT_OR_STRING, QUANTITY
from provisioner.sandbox.kinds import REVIEWS, VERBS, SandboxKind

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+pratique.sandbox",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "sandbox",
}


# What `kubectl get all` shows.
_IN_ALL = {
    "pods", "replicationcontrollers", "services", "daemonsets.apps", "deployments.apps", "replicasets.apps",
    "statefulsets.apps", "jobs.batch", "cronjobs.batch", "horizontalpodautoscalers.autoscaling",
}  # fmt: skip


def groups(kinds: Iterable[SandboxKind]) -> dict[str, list[str]]:
    """Versions by group, the built-in order kept; the preferred one first."""
    found: dict[str, list[str]] = {}
    for kind in (*kinds, *REVIEWS):
        if kind.version not in found.setdefault(kind.group, []):
            found[kind.group].append(kind.version)
    return {group: sorted(versions, key=by_stability) for group, versions in found.items()}


def aggregated(kinds: list[SandboxKind], *, core: bool) -> dict[str, Any]:
    """apidiscovery.k8s.io/v2: everything of /api or of /apis in one document."""
    items = []
    for group, versions in groups(kinds).items():
        if (group == "") != core:
            continue
        listed = []
        for version in versions:
            served = [kind for kind in (*kinds, *REVIEWS) if (kind.group, kind.version) == (group, version)]
            resources = [_describe_resource(kind) for kind in served]
            listed.append({"version": version, "freshness": "Current", "resources": resources})
        about = {"creationTimestamp": None, **({"name": group} if group else {})}
        items.append({"metadata": about, "versions": listed})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _describe_resource(kind: SandboxKind) -> dict[str, Any]:
    found: dict[str, Any] = {
        "resource": kind.plural,
        "responseKind": _identity(kind),
        "scope": "Namespaced" if kind.is_namespaced else "Cluster",
        "singularResource": kind.kind.lower(),
        "verbs": ["create"] if kind in REVIEWS else list(VERBS),
    }
    if kind.short_names:
        found["shortNames"] = list(kind.short_names)
    if kind.resource in _IN_ALL:
        found["categories"] = ["all"]
    below = {"status": _identity(kind)} if kind.has_status else {}
    if kind.has_scale:
        below["scale"] = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    if kind.resource == "serviceaccounts":
        below["token"] = {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}
    found["subresources"] = [
        {
            "subresource": name,
            "responseKind": answer,
            "verbs": ["create"] if name == "token" else ["get", "patch", "update"],
        }
        for name, answer in below.items()
    ]
    return found


def by_stability(version: str) -> tuple[int, int, str]:
    """Kubernetes' order: v2, v1, v1beta1, v1alpha1."""
    digits = "".join(letter if letter.isdigit() else " " for letter in version).split()
    rank = 2 if "alpha" in version else 1 if "beta" in version else 0
    return (rank, -int(digits[0]) if digits else 0, version)


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
    QUANTITY: ("io.k8s.apimachinery.pkg.api.resource.Quantity", {"oneOf": [{"type": "string"}, {"type": "number"}]}),
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
    group, version = ("", parts[2]) if parts[1] == "api" else (parts[2], parts[3])
    chosen = tuple(kind for kind in kinds if (kind.group, kind.version) == (group, version))
    if any(kind.is_custom for kind in chosen):
        return _describe_kinds(place, chosen, schema_of)
    return _describe_built_in(place, chosen)


@functools.cache
def _describe_built_in(place: str, kinds: tuple[SandboxKind, ...]) -> str:
    """Made once: these documents are large, read for every report, and never change."""
    return _describe_kinds(place, kinds, lambda _: None)


def _describe_kinds(
    place: str, kinds: tuple[SandboxKind, ...], schema_of: Callable[[SandboxKind], Schema | None]
) -> str:
    """The operations that kubectl looks for, and the schemas of the kinds and of all classes that they are made of."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Schema] = {}
    for kind in kinds:
        named = {"x-kubernetes-group-version-kind": _identity(kind)}
        options = [{"name": name, "in": "query"} for name in ("fieldValidation", "dryRun", "fieldManager", "force")]
        patch = {"parameters": options, "responses": {}, "x-kubernetes-action": "patch", **named}
        paths[f"/{place}/{kind.plural}/{{name}}"] = {"patch": patch}
        stated, model = schema_of(kind) if kind.is_custom else None, builtin.model_name(kind)
        listed = {"x-kubernetes-group-version-kind": [_identity(kind)]}
        if stated is not None:
            _collect(_META, schemas)
            plain = dict.fromkeys(("apiVersion", "kind"), _PLAIN["str"])
            properties = {**plain, **(stated.get("properties") or {}), "metadata": _of_form(_META)}
            name = f"{'.'.join(reversed(kind.group.split('.')))}.{kind.version}.{kind.kind}"
            schemas[name] = {**stated, "properties": properties, **listed}
        elif not kind.is_custom and model != "object":
            _collect(model, schemas)
            schemas[_schema_name(model)] = {**schemas[_schema_name(model)], **listed}
    about = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return json.dumps({"openapi": "3.0.0", "info": about, "paths": paths, "components": {"schemas": schemas}})


def _identity(kind: SandboxKind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _collect(model: str, found: dict[str, Schema]) -> None:
    if model in _SHARED:
        name, shared = _SHARED[model]
        found[name] = shared
        return
    made = _of_class(model)
    if made is None or _schema_name(model) in found:
        return
    schema, others = made
    found[_schema_name(model)] = schema
    for other in others:
        _collect(other, found)


@functools.cache
def _of_class(model: str) -> tuple[Schema, tuple[str, ...]] | None:
    """(schema, the forms of its fields without lists and maps) of a class; None for what is none."""
    described = builtin.described(model)
    if described is None:
        return None
    about, fields = described
    schema: Schema = {"type": "object", "description": about, "properties": {}}
    for field in fields:
        stated = {**_of_form(field.form), "description": field.description}
        if field.choice and stated["type"] == "array":
            stated["items"] = {**stated["items"], "enum": list(field.choice)}
        elif field.choice:
            stated["enum"] = list(field.choice)
        schema["properties"][field.name] = stated
    required = [field.name for field in fields if field.is_required]
    return ({**schema, "required": required} if required else schema), tuple(_innermost(field.form) for field in fields)


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
    return {"allOf": [{"$ref": f"#/components/schemas/{_schema_name(form)}"}]}


def _innermost(form: str) -> str:
    wrapping, inner = builtin.unwrapped(form)
    return _innermost(inner) if wrapping else form


def _schema_name(model: str) -> str:
    """The name of a class's schema; kubectl shows what follows its last dot."""
    if model in _SHARED:
        return _SHARED[model][0]
    found = _CLASS.fullmatch(model)
    if found is None:
        return model
    return f"io.k8s.{(found['group'] or 'api').lower()}.{found['version'].lower()}.{found['kind']}"
