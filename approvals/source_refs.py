"""The sources of a BundleDeployment's spec as it is written, and what they name in the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.errors import BadSource
from provisioner.values import ObjectRef

KINDS = ("image", "git", "http", "configMap")


def read_by(spec: Mapping[str, Any]) -> list[ObjectRef]:
    """Every Secret and ConfigMap that the sources name: who asks must be allowed to get each of them (S08)."""
    found = []
    for number, source in enumerate(listed_sources(spec)):
        where, body = f"spec.sources[{number}]", body_of(source)
        if source.get("kind") == "configMap":
            found.append(named("ConfigMap", body, spec, f"{where}.configMap"))
        elif secret := (body.get("auth") or {}).get("secret"):
            found.append(named("Secret", secret, spec, f"{where}.{source['kind']}.auth.secret"))
    return list(dict.fromkeys(found))


def listed_sources(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(spec.get("sources") or [])


def body_of(source: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the field of its kind says; a kind is a free name, and that of another field means nothing."""
    kind = source.get("kind")
    return source.get(kind) or {} if kind in KINDS else {}


def named(kind: str, name: Mapping[str, Any], spec: Mapping[str, Any], where: str) -> ObjectRef:
    """The object of the core group that a reference means; without a namespace that of the installation."""
    namespace = str(name.get("namespace") or spec.get("installNamespace") or "")
    return ObjectRef("", "v1", kind, namespace, needed(name, "name", where))


def needed(body: Mapping[str, Any], key: str, where: str) -> str:
    if not body.get(key):
        raise BadSource(f"{where} has no {key}")
    return str(body[key])
