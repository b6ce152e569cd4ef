"""The demo's bundles as archives: the same bytes on every run, so that their checksums can stand in specs."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from pathlib import Path


def pack(folder: Path, into: Path) -> dict[str, str]:
    """Write `<name>-<version>.tar.gz` for every bundle below `folder`; returns their sha256 by file name."""
    into.mkdir(parents=True, exist_ok=True)
    checksums = {}
    for version in sorted(path for path in folder.glob("*/*") if path.is_dir()):
        data = _archive(version)
        name = f"{version.parent.name}-{version.name}.tar.gz"
        (into / name).write_bytes(data)
        checksums[name] = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return checksums


def _archive(folder: Path) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as stream, tarfile.open(fileobj=stream, mode="w") as tar:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size = path.stat().st_size
            with path.open("rb") as file:
                tar.addfile(entry, file)
    return packed.getvalue()
