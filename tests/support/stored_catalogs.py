"""Catalogs that a cluster names, stored as if they had been read."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from django.utils import timezone

from approvals.catalogs.editions import store_edition
from approvals.models import Catalog, CatalogEdition, Cluster
from provisioner.catalogs.file_based import CatalogFile
from provisioner.catalogs.helm_index import read_helm_index
from tests.support.approvals.world import cluster
from tests.support.pictures import png
from tests.support.provisioner.catalogs import bundle, channel, deprecated, package


def with_words(described: dict[str, Any], **words: Any) -> dict[str, Any]:
    """The bundle with what it says of itself."""
    properties: Iterable[Any] = [*described["properties"], {"type": "olm.csv.metadata", "value": words}]
    return {**described, "properties": list(properties)}


PNG = png(40, 40)
HARBOUR = (
    package(defaultChannel="stable", icon={"mediatype": "image/png", "base64data": base64.b64encode(PNG).decode()}),
    bundle("1.0.0"),
    with_words(
        bundle("1.1.0"),
        displayName="Harbour Operator",
        description="# Harbour\n\nKeeps ships.",
        annotations={"description": "Keeps ships"},
        provider={"name": "Port Authority"},
        keywords=["moorings", "Ship to shore"],
    ),
    channel("stable", {"name": "harbour.v1.0.0"}, {"name": "harbour.v1.1.0", "replaces": "harbour.v1.0.0"}),
    channel("fast", {"name": "harbour.v1.1.0", "skips": ["harbour.v0.9.0"], "skipRange": ">=0.1.0 <1.1.0"}),
    deprecated("olm.bundle", "harbour.v1.0.0"),
)


def catalog(name: str = "port", *, of: Cluster | None = None, **fields: Any) -> Catalog:
    return Catalog.objects.create(
        cluster=of or cluster(),
        uid=f"uid-{name}",
        name=name,
        generation=1,
        resource_version="1",
        spec={"source": {"kind": "image", "image": {"ref": "example.com/catalog:latest"}}},
        seen_at=timezone.now(),
        **fields,
    )


def files(*documents: Any) -> Iterator[CatalogFile]:
    text = "\n".join(map(json.dumps, documents)).encode()
    yield CatalogFile("catalog.json", lambda: io.BytesIO(text))


def stored(row: Catalog, *documents: Any, digest: str = "sha256:one") -> CatalogEdition:
    return store_edition(row, digest, files(*documents))


def stored_charts(row: Catalog, *versions: str, is_digested: bool = True) -> CatalogEdition:
    """The catalog as it is once it has read an index of Helm with these versions of the chart harbour."""
    row.spec = {**row.spec, "format": "helm"}
    row.save(update_fields=["spec"])
    digest = {"digest": "1" * 64} if is_digested else {}
    entries = [{"version": one, "urls": [f"harbour-{one}.tgz"], **digest} for one in versions]
    text = json.dumps({"apiVersion": "v1", "entries": {"harbour": entries}}).encode()
    file = CatalogFile("index.yaml", lambda: io.BytesIO(text))
    read = partial(read_helm_index, address="https://charts.example.com/index.yaml")
    return store_edition(row, f"sha256:{'-'.join(versions)}", [file], read=read)


def offer(row: Catalog, *versions: str, image: str = "", deprecates: str = "") -> None:
    """The catalog as it is once it has these versions, each of which replaces the one before."""
    before = ["", *(f"harbour.v{one}" for one in versions)]
    entries = [{"name": f"harbour.v{one}", "replaces": old} for one, old in zip(versions, before, strict=False)]
    bundles = [bundle(one) for one in versions]
    if image:
        bundles[-1]["image"] = image
    said = [deprecated("olm.bundle", f"harbour.v{deprecates}")] if deprecates else []
    digest = f"sha256:{'-'.join(versions)}{image}{deprecates}"
    stored(row, package(), *bundles, channel("stable", *entries), *said, digest=digest)
