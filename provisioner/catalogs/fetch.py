"""Brings a catalog from its source into files of a folder that goes away again, one archive and piece at a time.

A catalog's image is often a whole operating system: a label says where in it the catalog is.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from pathlib import Path

from provisioner.catalogs.file_based import CatalogFile
from provisioner.errors import BadSource, InvalidArchive
from provisioner.masking import masked
from provisioner.source import EgressPolicy, ImageSource, Source, opened
from provisioner.unpack import UnpackLimits, unpack_to
from provisioner.values import Pin
from provisioner.versions import NUMBER

MIB = 1024 * 1024
# Of operator-framework: the folder of an image in which the catalog is.
FOLDER_LABEL = "operators.operatorframework.io.index.configs.v1"
SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """`max_packed_bytes` as it comes, all layers together, the largest of which memory holds; `max_bytes` unpacked."""

    max_packed_bytes: int = 512 * MIB
    max_bytes: int = 1024 * MIB
    max_entries: int = 200_000

    def of_unpacking(self) -> UnpackLimits:
        return UnpackLimits(
            max_bytes=self.max_bytes, max_file_bytes=self.max_bytes, max_entries=self.max_entries, max_depth=64
        )


@dataclass(frozen=True, slots=True)
class FetchedCatalog:
    """The files of a catalog, by name, and what its source was resolved to."""

    pin: Pin
    files: tuple[CatalogFile, ...]


@contextmanager
def fetch_catalog(
    source: Source, *, egress: EgressPolicy, limits: FetchLimits | None = None
) -> Iterator[FetchedCatalog]:
    """The catalog of a source, whose files are there as long as the context is.

    Raises as `provisioner.source.fetch` and `provisioner.unpack.unpack` do, before anything is handed out.
    """
    bounds = limits or FetchLimits()
    with tempfile.TemporaryDirectory(prefix="pratique-catalog-") as folder:
        with opened(source, egress=egress, max_bytes=bounds.max_packed_bytes) as found:
            label = found.labels.get(FOLDER_LABEL, "")
            parts = [part for part in label.split("/") if part not in ("", ".")]
            if ".." in parts:
                raise BadSource(
                    f"{masked(found.pin.reference)}: the label {FOLDER_LABEL} names {label[:200]!r}; expected a folder "
                    "of the image"
                )
            root = "/".join(parts)
            wanted = partial(_is_wanted, root=root)
            try:
                kept = unpack_to(Path(folder), found.archives, wanted=wanted, limits=bounds.of_unpacking())
            except InvalidArchive as exc:
                raise type(exc)(f"{masked(found.pin.reference)}: {exc}") from exc
        files = {path: place for path, place in kept.items() if _is_wanted(path, root=root)}
        if not files:
            where = f" in its folder {root}" if root else ""
            raise BadSource(f"{masked(found.pin.reference)}: holds no files{where} that end in {', '.join(SUFFIXES)}")
        opening = {path: partial(open, place, "rb") for path, place in files.items()}
        yield FetchedCatalog(found.pin, tuple(starmap(CatalogFile, opening.items())))


def _is_wanted(path: str, *, root: str) -> bool:
    is_inside = not root or path.startswith(f"{root}/")
    return is_inside and path.lower().endswith(SUFFIXES)


MAX_TAGS = 20_000
# Whole versions only: 1.2 is a tag that moves from one of them to the next. Helm writes `_` for `+`, which no tag has.
VERSION_TAG = re.compile(rf"v?({NUMBER}\.{NUMBER}\.{NUMBER}(?:-[0-9A-Za-z.-]+)?(?:_[0-9A-Za-z.-]+)?)", re.ASCII)


@contextmanager
def fetch_tags(source: ImageSource, *, egress: EgressPolicy) -> Iterator[FetchedCatalog]:
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
        if found := VERSION_TAG.fullmatch(tag):
            versions.setdefault(found[1].replace("_", "+"), tag)
    listed = [{"version": version, "urls": [f"oci://{repository}:{tag}"]} for version, tag in versions.items()]
    return json.dumps({"entries": {repository.rpartition("/")[2]: listed}}).encode()
