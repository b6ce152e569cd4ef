"""500 objects of the usual kinds, in versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from provisioner.render import content_digest
from provisioner.values import Content, Manifest

RBAC = "rbac.authorization.k8s.io"
SHARES = {
    "ConfigMap": 150,
    "Secret": 100,
    "Service": 100,
    "ServiceAccount": 50,
    "Role": 50,
    "RoleBinding": 25,
    "Deployment": 25,
}
OBJECTS = sum(SHARES.values())


def objects(namespace: str, version: int = 1, *, changed: int | None = None, times: int = 1) -> list[dict[str, Any]]:
    """`times` OBJECTS in version 1, but evenly spread `changed` of them, by default all, in `version`."""
    names = [(kind, number) for kind, count in SHARES.items() for number in range(count * times)]
    every = len(names) // changed if changed else 1
    return [
        _object(kind, namespace, f"bench-{number:03}", version if index % every == 0 else 1)
        for index, (kind, number) in enumerate(names)
    ]


def content_of(namespace: str, version: int = 1, *, changed: int = OBJECTS) -> Content:
    wished = objects(namespace, version, changed=changed)
    manifests = tuple(Manifest(obj, f"{number:04}.yaml") for number, obj in enumerate(wished))
    digest = content_digest(manifests, install_namespace=namespace, service_account="")
    return Content(manifests, namespace, "", (), digest)


def _object(kind: str, namespace: str, name: str, version: int) -> dict[str, Any]:
    api_version, rest = _KINDS[kind](name, version)
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}, **rest}


def _config_map(name: str, version: int) -> tuple[str, Mapping[str, Any]]:
    return "v1", {"data": {f"key-{line}": "x" * 60 for line in range(10)} | {"version": str(version)}}


def _secret(name: str, version: int) -> tuple[str, Mapping[str, Any]]:
    return "v1", {"type": "Opaque", "data": {"token": "c2VjcmV0" * 4, "version": "AAA" + "ABCD"[version % 4]}}


def _service(name: str, version: int) -> tuple[str, Mapping[str, Any]]:
    ports = [{"name": "http", "port": 80, "targetPort": 8000 + version}, {"name": "metrics", "port": 9090}]
    return "v1", {"spec": {"selector": {"app": name}, "ports": ports}}


def _account(name: str, version: int) -> tuple[str, Mapping[str, Any]]:
    return "v1", {"automountServiceAccountToken": version % 2 == 0}


def _role(name: str, version: int) -> tuple[str, Mapping[str, Any]]:
    verbs = ["get", "list", "watch", "create", "update"][: 1 + version]
    return f"{RBAC}/v1", {"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]}


def _binding(name: str, version: int) -> tuple[str, Mapping[str, Any]]:
    subjects = [{"kind": "User", "apiGroup": RBAC, "name": f"{name}-{version}"}]
    return f"{RBAC}/v1", {"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name}, "subjects": subjects}


def _deployment(name: str, version: int) -> tuple[str, Mapping[str, Any]]:
    labels = {"app": name}
    container = {
        "name": "main",
        "image": f"example.com/{name}:{version}",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return "apps/v1", {"spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}}


_KINDS: dict[str, Callable[[str, int], tuple[str, Mapping[str, Any]]]] = {
    "ConfigMap": _config_map,
    "Secret": _secret,
    "Service": _service,
    "ServiceAccount": _account,
    "Role": _role,
    "RoleBinding": _binding,
    "Deployment": _deployment,
}
