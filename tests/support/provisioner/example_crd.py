"""A CRD of ships."""

from __future__ import annotations

import copy
from typing import Any

from tests.support.provisioner.contents import an_object

TEXT = {"type": "string"}


def crd(properties: dict[str, Any], *versions: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    listed = [
        {"name": name, "served": True, "storage": at == 0, "schema": {"openAPIV3Schema": copy.deepcopy(schema)}}
        for at, name in enumerate(versions or ("v1",))
    ]
    names = {"kind": "Ship", "plural": "ships", "singular": "ship", "listKind": "ShipList"}
    spec = {"group": "harbour.example.com", "names": names, "scope": "Namespaced", "versions": listed}
    return an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "ships.harbour.example.com", spec=spec)
