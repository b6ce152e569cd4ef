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
_SUB_GROUPS = {
    "Scale": {"group": "autoscaling", "version": "v1"},
    "TokenRequest": {"group": "authentication.k8s.io", "version": "v1"},
}


def resource_list(kinds: Iterable[SandboxKind], group: str, version: str) -> dict[str, Any]:
    resources: list[dict[str, Any]] = []
    for kind in kinds:
        if (kind.group, kind.version) == (group, version):
            resources.append(
                {
                    "name": kind.plural,
                    "singularName": kind.kind.lower(),
                    "namespaced": kind.is_namespaced,
                    "kind": kind.kind,
                    "verbs": list(VERBS),
                    **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
                    **({"categories": ["all"]} if kind.resource in _IN_ALL else {}),
                }
            )
            resources += [
                {
                    "name": f"{kind.plural}/{name}",
                    "singularName": "",
                    "namespaced": kind.is_namespaced,
                    **_SUB_GROUPS.get(sub, {}),
                    "kind": sub,
                    "verbs": ["create"] if name == "token" else ["get", "patch", "update"],
                }
                for name, sub in _subresources(kind)
            ]
    resources += [
        {"name": plural, "singularName": name.lower(), "namespaced": is_namespaced, "kind": name, "verbs": ["create"]}
        for review_group, plural, name, is_namespaced in REVIEWS
        if (review_group, "v1") == (group, version)
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": resources,
    }


def groups(kinds: Iterable[SandboxKind]) -> dict[str, list[str]]:
    """Versions by group, the built-in order kept; the preferred one first."""
    found: dict[str, list[str]] = {}
    for group, version in [(kind.group, kind.version) for kind in kinds] + [(it[0], "v1") for it in REVIEWS]:
        if version not in found.setdefault(group, []):
            found[group].append(version)
    return {group: sorted(versions, key=by_stability) for group, versions in found.items()}


def group_list(kinds: list[SandboxKind]) -> dict[str, Any]:
    return {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [_group(name, versions) for name, versions in groups(kinds).items() if name],
    }


def aggregated(kinds: list[SandboxKind], *, core: bool) -> dict[str, Any]:
    """apidiscovery.k8s.io/v2: everything of /api or of /apis in one document."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
                "versions": [
                    {
                        "version": version,
                        "freshness": "Current",
                        "resources": [
                            _aggregated(kind) for kind in kinds if (kind.group, kind.version) == (name, version)
                        ]
                        + [_review(*it) for it in REVIEWS if (it[0], "v1") == (name, version)],
                    }
                    for version in versions
                ],
            }
            for name, versions in groups(kinds).items()
            if (name == "") == core
        ],
    }


def _group(name: str, versions: list[str]) -> dict[str, Any]:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def group(name: str, kinds: list[SandboxKind]) -> dict[str, Any] | None:
    versions = groups(kinds).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)} if versions else None


def _aggregated(kind: SandboxKind) -> dict[str, Any]:
    return {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.is_namespaced else "Cluster",
        "singularResource": kind.kind.lower(),
        "verbs": list(VERBS),
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        **({"categories": ["all"]} if kind.resource in _IN_ALL else {}),
        "subresources": [
            {
                "subresource": name,
                "responseKind": {"group": kind.group, "version": kind.version, **_SUB_GROUPS.get(sub, {}), "kind": sub},
                "verbs": ["create"] if name == "token" else ["get", "patch", "update"],
            }
            for name, sub in _subresources(kind)
        ],
    }


def _review(review_group: str, plural: str, name: str, is_namespaced: bool) -> dict[str, Any]:
    return {
        "resource": plural,
        "responseKind": {"group": review_group, "version": "v1", "kind": name},
        "scope": "Namespaced" if is_namespaced else "Cluster",
        "singularResource": name.lower(),
        "verbs": ["create"],
    }


def _subresources(kind: SandboxKind) -> list[tuple[str, str]]:
    found = [("status", kind.kind)] if kind.has_status else []
    found += [("scale", "Scale")] if kind.has_scale else []
    return found + ([("token", "TokenRequest")] if (kind.group, kind.plural) == ("", "serviceaccounts") else [])


def by_stability(version: str) -> tuple[int, int, str]:
    """Kubernetes' order: v2, v1, v1beta1, v1alpha1."""
    digits = "".join(one if one.isdigit() else " " for one in version).split()
    rank = 2 if "alpha" in version else 1 if "beta" in version else 0
    return (rank, -int(digits[0]) if digits else 0, version)


def of_group(kinds: list[SandboxKind], parts: list[str]) -> dict[str, Any] | None:
    """/api/v1, /apis/<group> and /apis/<group>/<version>."""
    if parts == ["api", "v1"]:
        return resource_list(kinds, "", "v1")
    if parts[0] != "apis":
        return None
    if len(parts) == 2:
        return group(parts[1], kinds)
    is_known = len(parts) == 3 and parts[2] in groups(kinds).get(parts[1], [])
    return resource_list(kinds, parts[1], parts[2]) if is_known else None


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
        "properties": {field.name: {**_of_field(field), "description": field.description} for field in fields},
    }
    required = [field.name for field in fields if field.is_required]
    return ({**schema, "required": required} if required else schema), tuple(_innermost(field.form) for field in fields)


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
