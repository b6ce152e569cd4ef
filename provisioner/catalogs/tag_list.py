"""The tags of a repository of images as a catalog: one package, of which each tag that is a version is one.

They are written as the index of a Helm repository has versions, which is read then: the same edges hold.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

from provisioner.catalogs.fetching import FetchedCatalog
from provisioner.catalogs.reading import CatalogFile
from provisioner.source import EgressPolicy, ImageSource
from provisioner.values import Pin
from provisioner.versions import NUMBER

MAX_TAGS = 20_000
# Whole versions only: 1.2 is a tag that moves from one of them to the next. Helm writes `_` for `+`, which no tag has.
VERSION = re.compile(rf"v?({NUMBER}\.{NUMBER}\.{NUMBER}(?:-[0-9A-Za-z.-]+)?(?:_[0-9A-Za-z.-]+)?)", re.ASCII)


@contextmanager
def fetched_tags(source: ImageSource, *, egress: EgressPolicy) -> Iterator[FetchedCatalog]:
    """The tags of a repository, as files that `read_helm_index` reads; pinned to a digest of their list.

    Raises as `provisioner.source.fetch`.
    """
    text = tag_index(source.ref, source.tags(egress=egress, most=MAX_TAGS))
    pin = Pin(source.kind, source.ref, f"sha256:{hashlib.sha256(text).hexdigest()}")
    yield FetchedCatalog(pin, (CatalogFile("tags", lambda: io.BytesIO(text)),))


def tag_index(repository: str, tags: list[str]) -> bytes:
    """The index of a Helm repository with the versions among the tags; of two that mean the same, the first by name."""
    versions: dict[str, str] = {}
    for tag in sorted(tags):
        if found := VERSION.fullmatch(tag):
            versions.setdefault(found[1].replace("_", "+"), tag)
    listed = [{"version": version, "urls": [f"oci://{repository}:{tag}"]} for version, tag in versions.items()]
    return json.dumps({"entries": {repository.rpartition("/")[2]: listed}}).encode()
