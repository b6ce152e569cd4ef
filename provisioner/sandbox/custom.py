"""Custom kinds: what a CustomResourceDefinition serves, and what its schemas make of objects."""

from __future__ import annotations

from typing import Any

from provisioner.sandbox import fields
from provisioner.sandbox.calls import StatusRefusal, invalid
from provisioner.sandbox.kinds import SandboxKind
from provisioner.sandbox.store import ObjectStore
from provisioner.schema import accepts_update, admit, validate_crd

GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"


def kinds(store: ObjectStore) -> list[SandboxKind]:
    """Every served version of every CRD, the newest first."""
    return [
        SandboxKind(
            crd["spec"]["group"],
            version["name"],
            crd["spec"]["names"]["plural"],
            crd["spec"]["names"]["kind"],
            crd["spec"]["scope"] == "Namespaced",
            tuple(crd["spec"]["names"].get("shortNames") or ()),
            "status" in (version.get("subresources") or {}),
            "scale" in (version.get("subresources") or {}),
            is_custom=True,
            has_generation=True,
        )
        for crd in store.all(GROUP, PLURAL)
        for version in crd["spec"]["versions"]
        if version.get("served")
    ]


def definition(store: ObjectStore, kind: SandboxKind) -> tuple[dict[str, Any], dict[str, Any]]:
    """(CRD, its version) of a custom kind."""
    crd = store.get((GROUP, PLURAL, "", f"{kind.plural}.{kind.group}"))
    if crd is None:
        raise StatusRefusal(404, "NotFound", "the server could not find the requested resource")
    version = next(version for version in crd["spec"]["versions"] if version["name"] == kind.version)
    return crd, version


def schema_of(version: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return found or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def schema(store: ObjectStore, kind: SandboxKind) -> dict[str, Any] | None:
    """The schema of a custom kind; None for a built-in one."""
    return schema_of(definition(store, kind)[1]) if kind.is_custom else None


def topology(store: ObjectStore, kind: SandboxKind) -> fields.Topology:
    return fields.of_schema(schema_of(definition(store, kind)[1])) if kind.is_custom else fields.of_kind(kind)


def admitted(
    store: ObjectStore, kind: SandboxKind, obj: dict[str, Any], old: dict[str, Any] | None
) -> tuple[dict[str, Any], list[str]]:
    """(object pruned and defaulted, pruned paths); raises StatusRefusal 422 in the API server's words."""
    _, version = definition(store, kind)
    before = {**old, "apiVersion": kind.api_version} if old else None
    admission = admit(schema_of(version), obj, old=before)
    if admission.refusals:
        causes = [(error.path, error.message) for error in admission.refusals]
        raise invalid(f"{kind.kind}.{kind.group}", str(obj["metadata"].get("name", "")), causes)
    return dict(admission.after), list(admission.pruned)


def converted(store: ObjectStore, kind: SandboxKind, obj: dict[str, Any]) -> dict[str, Any]:
    """An object as another served version shows it: strategy None, so only pruned and defaulted."""
    return dict(admit(schema_of(definition(store, kind)[1]), obj).after)


def check_definition(obj: dict[str, Any], old: dict[str, Any] | None) -> dict[str, Any]:
    """A CRD with defaults and, new or changed, the conditions that say it is served; raises StatusRefusal 422."""
    spec = obj.get("spec") or {}
    names = dict(spec.get("names") or {})
    if "kind" in names:
        names = {"singular": names["kind"].lower(), "listKind": f"{names['kind']}List", **names}
    wished = {**obj, "spec": {**spec, "names": names, "conversion": spec.get("conversion") or {"strategy": "None"}}}
    errors = accepts_update(old, wished) if old else validate_crd(wished)
    causes = [(error.path, error.message) for error in errors if not error.is_unknown]
    if causes:
        raise invalid("CustomResourceDefinition.apiextensions.k8s.io", str(obj["metadata"]["name"]), causes)
    return wished


def established(obj: dict[str, Any], old: dict[str, Any] | None, now: str) -> dict[str, Any]:
    """The status that the API server's controllers would set."""
    storage = next((version["name"] for version in obj["spec"]["versions"] if version.get("storage")), "")
    stored = list(((old or {}).get("status") or {}).get("storedVersions") or [])
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    known = ((old or {}).get("status") or {}).get("conditions")
    return {
        **obj,
        "status": {
            "conditions": known or conditions,
            "acceptedNames": obj["spec"]["names"],
            "storedVersions": stored if storage in stored else [*stored, storage],
        },
    }
