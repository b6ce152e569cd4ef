"""From the kubeconfig of who starts the demo to one of the service's own, with fewer rights."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from provisioner.cluster.client.kubeconfig import read_kubeconfig


def with_token(kubeconfig: str, token: str) -> dict[str, Any]:
    """A kubeconfig for the cluster of the current context, its CA inline, whose only user has this bearer token."""
    document = read_kubeconfig(kubeconfig, trusted=True)
    context = _named(document["contexts"], document["current-context"])["context"]
    cluster = dict(_named(document["clusters"], context["cluster"])["cluster"])
    path = cluster.pop("certificate-authority", None)
    if path and not cluster.get("certificate-authority-data"):
        cluster["certificate-authority-data"] = base64.b64encode(Path(path).read_bytes()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "service",
        "clusters": [{"name": "service", "cluster": cluster}],
        "users": [{"name": "service", "user": {"token": token}}],
        "contexts": [{"name": "service", "context": {"cluster": "service", "user": "service"}}],
    }


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["name"] == name)
