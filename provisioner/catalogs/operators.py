"""What an `olm.bundle` says of its operator: as the property olm.csv.metadata, or in the ClusterServiceVersion itself.

Older catalogs carry all manifests of a bundle along, each as a property olm.bundle.object in base64.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.errors import BadBundle
from provisioner.render import YamlLimits, YamlMeter, load_documents

KIND = "ClusterServiceVersion"
# No object of a cluster is larger.
MAX_OBJECT_BYTES = 2 * 1024 * 1024
MOST_OBJECTS = 500
MAX_NODES = 200_000


def operator_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields that olm.csv.metadata has; none where the bundle says nothing that can be read."""
    listed = document.get("properties")
    properties = [one for one in (listed if isinstance(listed, list) else []) if isinstance(one, dict)]
    for one in properties:
        if one.get("type") == "olm.csv.metadata" and isinstance(one.get("value"), dict):
            return dict(one["value"])
    return next(map(_told, _objects(properties)), {})


def _told(found: Mapping[str, Any]) -> Mapping[str, Any]:
    meta, spec = found.get("metadata"), found.get("spec")
    annotations = meta.get("annotations") if isinstance(meta, dict) else None
    return {**(spec if isinstance(spec, dict) else {}), "annotations": annotations}


def _objects(properties: list[dict[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The ClusterServiceVersions among the manifests."""
    carried = [one.get("value") for one in properties if one.get("type") == "olm.bundle.object"]
    meter = YamlMeter(YamlLimits(max_file_bytes=MAX_OBJECT_BYTES, max_nodes=MAX_NODES))
    for value in carried[:MOST_OBJECTS]:
        data = value.get("data") if isinstance(value, dict) else None
        if isinstance(data, str) and len(data) <= MAX_OBJECT_BYTES * 2:
            yield from _decoded(data, meter)


def _decoded(data: str, meter: YamlMeter) -> Iterator[Mapping[str, Any]]:
    try:
        text = base64.b64decode(data, validate=True)
        if KIND.encode() not in text:
            return
        values = [one.value for one in load_documents(text, name="olm.bundle.object", meter=meter)]
    except (binascii.Error, ValueError, BadBundle):
        return
    yield from (one for one in values if isinstance(one, dict) and one.get("kind") == KIND)
