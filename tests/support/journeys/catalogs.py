"""Catalogues made of the corpus: bundles in the registry, and the documents that offer them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from provisioner.values import AccessRequest, Identity
from tests.support.folders import CORPUS
from tests.support.journeys.station import SEEDER, Station, binding, group
from tests.support.kubernetes import live
from tests.support.provisioner.catalogs import channel, package
from tests.support.servers.registry import Registry

# Of the corpus, with CRDs that Kubernetes still serves: each version replaces the one before.
KIALI = "kiali"


def documents(registry: Registry, name: str, versions: Iterable[str], **fields: Any) -> list[dict[str, Any]]:
    """A package with these versions of the corpus in one channel, by the edges that their publisher wrote.

    `fields` are for each bundle: `properties`, further ones.
    """
    found = [_bundle(registry, name, version, **fields) for version in versions]
    entries = [entry for _, entry in found]
    return [package(name, defaultChannel="stable"), channel("stable", *entries, of=name), *(one for one, _ in found)]


def _bundle(
    registry: Registry, of: str, version: str, *, properties: Iterable[dict[str, Any]] = ()
) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = CORPUS / "bundles" / of / version
    csv = next(_csv(file) for file in sorted((folder / "manifests").iterdir()) if "clusterserviceversion" in file.name)
    files = {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
    digest = registry.push(f"{registry.host}/catalogued-{of}:{version}", files)
    name = csv["metadata"]["name"]
    about = {"type": "olm.package", "value": {"packageName": of, "version": version}}
    bundle = {
        "schema": "olm.bundle",
        "name": name,
        "package": of,
        "image": f"{registry.host}/catalogued-{of}@{digest}",
        "properties": [about, *properties],
    }
    entry = {"name": name}
    if replaces := csv["spec"].get("replaces"):
        entry["replaces"] = replaces
    if skip_range := csv["metadata"].get("annotations", {}).get("olm.skipRange"):
        entry["skipRange"] = skip_range
    return bundle, entry


def _csv(file: Path) -> dict[str, Any]:
    found = yaml.safe_load(file.read_text())
    assert isinstance(found, dict)
    return found


def let_read(station: Station, catalog: str) -> None:
    """Rita's group may get this catalogue."""
    rule = {"apiGroups": ["core.rukpak.io"], "resources": ["catalogs"], "resourceNames": [catalog], "verbs": ["get"]}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": f"get-{catalog}"}}
    for one in ({**role, "rules": [rule]}, binding(f"get-{catalog}", f"get-{catalog}", group("requesters"))):
        station.api.apply(one, field_manager=SEEDER)
    asked = AccessRequest("get", "core.rukpak.io", "catalogs", name=catalog)
    live.until_may(station.api, Identity("rita", ("requesters",)), asked)


def source(catalog: str, of: str, **more: Any) -> dict[str, Any]:
    return {"kind": "catalog", "catalog": {"name": catalog, "package": of, **more}}
