"""Small bundles for journeys, as files of an image's layer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.support.servers.registry import Registry


def app(name: str, version: str, *, replicas: int = 1, secret_reader: bool = False) -> dict[str, bytes]:
    """A Deployment with its ServiceAccount and ConfigMap; `secret_reader` adds a frightening ClusterRole."""
    labels = {"app.kubernetes.io/name": name}
    digest = hashlib.sha256(f"{name}{version}".encode()).hexdigest()
    container = {"name": name, "image": f"registry.example.com/{name}@sha256:{digest}"}
    objects = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"version": version}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"serviceAccountName": name, "containers": [container]},
                },
            },
        },
    ]
    return {f"manifests/{number:02}.yaml": yaml.safe_dump(obj).encode() for number, obj in enumerate(objects)} | (
        _roles(name) if secret_reader else {}
    )


def _roles(name: str) -> dict[str, bytes]:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}],
    }
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
    }
    return {"manifests/90.yaml": yaml.safe_dump_all([role, binding]).encode()}


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(
    group: str,
    kind: str,
    *versions: str,
    schema: Mapping[str, Any] = ANYTHING,
    stored: str = "",
    scope: str = "Namespaced",
    **spec: Any,
) -> dict[str, Any]:
    """A CRD that serves these versions (v1), of which `stored` (the first) is stored."""
    named = versions or ("v1",)
    served = [
        {
            "name": version,
            "served": True,
            "storage": version == (stored or named[0]),
            "schema": {"openAPIV3Schema": schema},
        }
        for version in named
    ]
    plural = f"{kind.lower()}s"
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": served, **spec},
    }


def with_spec(properties: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The schema of a kind whose spec has these fields."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties, **more}}}


def manifests(*objects: Mapping[str, Any]) -> dict[str, bytes]:
    """One file of these objects."""
    return {"manifests/all.yaml": yaml.safe_dump_all(objects).encode()}


def folder(path: Path) -> dict[str, bytes]:
    """A folder of the corpus, as it stands."""
    return {f"manifests/{file.name}": file.read_bytes() for file in sorted(path.rglob("*.yaml"))}


def image(registry: Registry, name: str, files: dict[str, bytes], tag: str = "latest") -> dict[str, object]:
    """Push the files and return the source that names them by digest."""
    digest = registry.push(f"{registry.host}/{name}:{tag}", files)
    return {"kind": "image", "image": {"ref": f"{registry.host}/{name}@{digest}"}}
