"""The demo's bundles as archives: the same bytes on every run, so that their checksums can stand in specs."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path


def pack(folder: Path, into: Path) -> None:
    """Write `<name>-<version>.tar.gz` for every bundle below `folder`."""
    into.mkdir(parents=True, exist_ok=True)
    for name, archive in _archives(folder).items():
        (into / name).write_bytes(archive)


def checksums(folder: Path) -> dict[str, str]:
    """The sha256, by file name, of what `pack` writes."""
    return {name: f"sha256:{hashlib.sha256(archive).hexdigest()}" for name, archive in _archives(folder).items()}


def _archives(folder: Path) -> dict[str, bytes]:
    versions = sorted(path for path in folder.glob("*/*") if path.is_dir())
    return {f"{version.parent.name}-{version.name}.tar.gz": _archive(version) for version in versions}


def _archive(folder: Path) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream, tarfile.open(fileobj=stream, mode="w") as tar:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size = path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(entry, file)
    return packed.getvalue()
