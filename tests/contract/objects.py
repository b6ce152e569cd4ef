"""The objects that the contract tests send."""

from __future__ import annotations

from typing import Any

LABELS = {"app": "web"}


def config(name: str = "settings", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def web(image: str = "example.com/web:1", **container: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": {"containers": [{"name": "web", "image": image, **container}]},
            },
        },
    }


def crd(group: str) -> dict[str, Any]:
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {"size": {"type": "integer", "maximum": 5}, "colour": {"type": "string", "default": "red"}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
                }
            ],
        },
    }


def binding(role: str, user: str, kind: str = "ClusterRole") -> dict[str, Any]:
    api = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{api}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": f"{role}-{user}"},
        "roleRef": {"apiGroup": api, "kind": kind, "name": role},
        "subjects": [{"apiGroup": api, "kind": "User", "name": user}],
    }


def role(name: str, *rules: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name},
        "rules": list(rules),
    }
