"""Catalogs of operator bundles: their images in the registry, and the documents that offer them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from tests.support.folders import CORPUS
from tests.support.provisioner.catalogs import channel, package
from tests.support.servers.registry import Registry

# Of the corpus, with CRDs that Kubernetes still serves: each version replaces the one before.
KIALI = "kiali"
# Small, and everything of it lies in a namespace: each version replaces the one before, 2.0.0 leaps over some.
HARBOUR = "harbour"
_EDGES: Mapping[str, Mapping[str, str]] = {
    "1.0.0": {},
    "1.1.0": {"replaces": "harbour.v1.0.0"},
    "1.2.0": {"replaces": "harbour.v1.1.0"},
    "2.0.0": {"replaces": "harbour.v1.2.0", "skipRange": ">=1.1.0 <2.0.0"},
}


def documents(
    registry: Registry, of: str, versions: Iterable[str], *, properties: Iterable[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """A package with these versions in one channel, by the edges that their publisher wrote.

    `properties` are further ones of each bundle.
    """
    listed, entries = [], []
    for version in versions:
        csv, files = _harbour(version) if of == HARBOUR else _of_corpus(of, version)
        name = csv["metadata"]["name"]
        digest = registry.push(f"{registry.host}/catalogd-{of}:{version}", files)
        about = {"type": "olm.package", "value": {"packageName": of, "version": version}}
        image = f"{registry.host}/catalogd-{of}@{digest}"
        bundle = {"schema": "olm.bundle", "name": name, "package": of, "image": image}
        listed.append({**bundle, "properties": [about, *properties]})
        edges = {
            "replaces": csv["spec"].get("replaces"),
            "skipRange": csv["metadata"].get("annotations", {}).get("olm.skipRange"),
        }
        entries.append({"name": name, **{key: value for key, value in edges.items() if value}})
    return [package(of, defaultChannel="stable"), channel("stable", *entries, of=of), *listed]


def _of_corpus(of: str, version: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    folder = CORPUS / "bundles" / of / version
    files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    (csv,) = (yaml.safe_load(text) for name, text in sorted(files.items()) if "clusterserviceversion" in name)
    assert isinstance(csv, dict)
    return csv, files


def operator_files(version: str = "1.0.0") -> dict[str, bytes]:
    """The files of HARBOUR in a version."""
    return _harbour(version)[1]


def _harbour(version: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    labels = {"app": HARBOUR}
    digest = hashlib.sha256(version.encode()).hexdigest()
    container = {"name": HARBOUR, "image": f"registry.example.com/harbour@sha256:{digest}"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    edges = _EDGES[version]
    csv = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"harbour.v{version}",
            "annotations": {"olm.skipRange": edges["skipRange"]} if "skipRange" in edges else {},
        },
        "spec": {
            "displayName": "Harbour",
            "version": version,
            "installModes": [{"type": "AllNamespaces", "supported": True}],
            "install": {"strategy": "deployment", "spec": {"deployments": [{"name": HARBOUR, "spec": deployment}]}},
            **({"replaces": edges["replaces"]} if "replaces" in edges else {}),
        },
    }
    prefix = "operators.operatorframework.io.bundle"
    annotations = {f"{prefix}.mediatype.v1": "registry+v1", f"{prefix}.package.v1": HARBOUR}
    return csv, {
        "manifests/harbour.clusterserviceversion.yaml": yaml.safe_dump(csv).encode(),
        "metadata/annotations.yaml": yaml.safe_dump({"annotations": annotations}).encode(),
    }


def harbour(version: str) -> dict[str, bytes]:
    """The files of the bundle harbour."""
    return _harbour(version)[1]


def source(catalog: str, of: str, **more: Any) -> dict[str, Any]:
    return {"kind": "catalog", "catalog": {"name": catalog, "package": of, **more}}
