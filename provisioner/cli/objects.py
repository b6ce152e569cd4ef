"""`--objects FILE|DIR`: what is stored in a cluster, as somebody saved it. Bounded, and strict about its form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from provisioner.cli.usage import Usage
from provisioner.errors import BundleTooLarge, InvalidManifest
from provisioner.render import YamlLimits, YamlMeter, load_documents
from provisioner.review.base.facts import Stored
from provisioner.review.crd_diff import kinds_told, objects_of

SUFFIXES = (".yaml", ".yml", ".json")
# What people save of a large cluster: several times what a bundle may hold.
MAX_BYTES = 256 * 1024 * 1024
MAX_FILES = 10_000
LIMITS = YamlLimits(max_file_bytes=MAX_BYTES, max_documents=200_000, max_nodes=8_000_000, max_characters=MAX_BYTES)
_HOW = "expected what `kubectl get KIND -A -o yaml` prints"


def stored_in(place: Path) -> Stored:
    """All objects of a file, or of the files of a folder and of those in it, and the kinds of which they tell.

    Raises Usage for a place that holds no file to read, InvalidManifest for what is no object, with its file, and
    BundleTooLarge past MAX_FILES files or MAX_BYTES bytes in all.
    """
    documents: list[Any] = []
    meter, left = YamlMeter(LIMITS), MAX_BYTES
    for file in _files(place):
        text = _read(file, left)
        left -= len(text)
        found = [one.value for one in load_documents(text, name=str(file), meter=meter)]
        for one in found:
            _check(one, str(file))
        documents += found
    return Stored(tuple(objects_of(documents)), kinds_told(documents))


def _files(place: Path) -> list[Path]:
    if not place.exists():
        raise Usage(f"{place}: no such file or folder")
    if not place.is_dir():
        return [place]
    found: list[Path] = []
    for one in place.rglob("*"):
        if one.suffix in SUFFIXES and one.is_file():
            found.append(one)
        if len(found) > MAX_FILES:
            raise BundleTooLarge(f"{place}: more than {MAX_FILES:,} files")
    if not found:
        raise Usage(f"{place}: no file in this folder ends with {', '.join(SUFFIXES)}")
    return sorted(found)


def _read(file: Path, most: int) -> bytes:
    try:
        with file.open("rb") as opened:
            text = opened.read(most + 1)
    except OSError as exc:
        raise Usage(f"{file}: cannot be read ({exc.strerror})") from exc
    if len(text) > most:
        raise BundleTooLarge(f"{file}: more than {MAX_BYTES // 1024**2} MiB of objects in all")
    return text


def _check(document: object, file: str) -> None:
    """Whatever is passed over would count as not stored, which makes a report say less."""
    for one in _members(document):
        meta = one.get("metadata") if isinstance(one, Mapping) else None
        is_named = isinstance(meta, Mapping) and isinstance(meta.get("name"), str) and bool(meta["name"])
        if not isinstance(one, Mapping) or not all(isinstance(one.get(key), str) for key in ("apiVersion", "kind")):
            raise InvalidManifest(f"{file}: holds something without apiVersion and kind; {_HOW}")
        if not is_named:
            raise InvalidManifest(f"{file}: a {one['kind']} has no metadata.name; {_HOW}")


def _members(document: object) -> Iterator[object]:
    if isinstance(document, Mapping) and str(document.get("kind", "")).endswith("List") and "items" in document:
        held = document["items"]
        if not isinstance(held, list):
            yield document["items"]
            return
        for one in held:
            yield from _members(one)
    else:
        yield document
