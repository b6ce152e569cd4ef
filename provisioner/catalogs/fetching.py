"""Brings a catalog from its source into files of a folder that goes away again, one archive and piece at a time.

A catalog's image is often a whole operating system: a label says where in it the catalog is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from provisioner.catalogs.reading import CatalogFile
from provisioner.errors import BadSource, InvalidArchive
from provisioner.masking import masked
from provisioner.source import EgressPolicy, Source, opened
from provisioner.unpack import UnpackLimits, unpack_to
from provisioner.values import Pin

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
def fetched_catalog(
    source: Source, *, egress: EgressPolicy, limits: FetchLimits | None = None
) -> Iterator[FetchedCatalog]:
    """The catalog of a source, whose files are there as long as the context is.

    Raises as `provisioner.source.fetch` and `provisioner.unpack.unpack` do, before anything is handed out.
    """
    bounds = limits or FetchLimits()
    with tempfile.TemporaryDirectory(prefix="pratique-catalog-") as folder:
        with opened(source, egress=egress, max_bytes=bounds.max_packed_bytes) as found:
            root = _folder(found.labels.get(FOLDER_LABEL, ""), found.pin)
            wanted = partial(_is_wanted, root=root)
            try:
                kept = unpack_to(Path(folder), found.archives, wanted=wanted, limits=bounds.of_unpacking())
            except InvalidArchive as exc:
                raise type(exc)(f"{masked(found.pin.reference)}: {exc}") from exc
        files = {path: place for path, place in kept.items() if _is_wanted(path, root=root)}
        if not files:
            where = f" in its folder {root}" if root else ""
            raise BadSource(f"{masked(found.pin.reference)}: holds no files{where} that end in {', '.join(SUFFIXES)}")
        yield FetchedCatalog(found.pin, tuple(_file(path, place) for path, place in files.items()))


def _file(path: str, place: Path) -> CatalogFile:
    return CatalogFile(path, lambda: place.open("rb"))


def _folder(label: str, pin: Pin) -> str:
    parts = [part for part in label.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise BadSource(
            f"{masked(pin.reference)}: the label {FOLDER_LABEL} names {label[:200]!r}; expected a folder of the image"
        )
    return "/".join(parts)


def _is_wanted(path: str, *, root: str) -> bool:
    is_inside = not root or path.startswith(f"{root}/")
    return is_inside and path.lower().endswith(SUFFIXES)
