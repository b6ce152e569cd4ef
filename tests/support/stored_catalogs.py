"""Catalogues that a cluster names, stored as if they had been read."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.utils import timezone

from approvals import catalogs
from approvals.models import Catalog, CatalogEdition, Cluster
from provisioner.catalogs import CatalogFile
from tests.support.approvals.world import cluster


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
    return catalogs.store(row, digest, files(*documents))


def with_words(bundle: dict[str, Any], **words: Any) -> dict[str, Any]:
    """The bundle with what it says of itself."""
    properties: Iterable[Any] = [*bundle["properties"], {"type": "olm.csv.metadata", "value": words}]
    return {**bundle, "properties": list(properties)}
