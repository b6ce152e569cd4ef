"""What a person's kubectl is given, and what it may find in place of Pratique."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.support.kubernetes.endpoint import Endpoint

# As a cluster has it where RukPak is installed.
RUKPAKS_OWN = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "bundledeployments.core.rukpak.io"},
    "spec": {
        "group": "core.rukpak.io",
        "scope": "Cluster",
        "names": {"kind": "BundleDeployment", "plural": "bundledeployments", "singular": "bundledeployment"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def kubeconfig(endpoint: Endpoint, folder: Path, user: str = "admin", **changed: str) -> Path:
    """A file for kubectl, of one user."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{user}.yaml"
    endpoint.write(path)
    config = yaml.safe_load(path.read_text())
    config["current-context"] = user
    for entry in config["users"]:
        entry["user"] |= {name: text for name, text in changed.items() if name == "token"}
    for entry in config["clusters"]:
        entry["cluster"] |= {name: text for name, text in changed.items() if name == "server"}
    path.write_text(yaml.safe_dump(config))
    return path
