"""Folders and files of this machine, for the command line only (S18). Links inside a folder are never followed."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from provisioner.errors import BadSource, BundleTooLarge, UnsafePath
from provisioner.source.egress import EgressPolicy
from provisioner.source.specs import Credentials, Fetched
from provisioner.values import Archive, Pin

VERSION_CONTROL = frozenset({".git", ".hg", ".svn"})
MAX_FILES = 100_000


@dataclass(frozen=True, slots=True)
class LocalSource:
    """A folder, an archive or a YAML file on this machine: for the command line only (S18)."""

    kind: ClassVar[str] = "local"

    path: str
    destination: str = ""

    def pinned(self, pin: Pin) -> LocalSource:
        return self

    def fetch(self, *, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int) -> Fetched:
        """The folder as a tar of names and contents, or the file as it is; pinned to the SHA-256 of that.

        Raises BadSource, UnsafePath naming the link or special file, and BundleTooLarge.
        """
        path = Path(self.path)
        if path.is_dir():
            data, name = _packed(path, max_bytes), ""
        elif path.is_file():
            data, name = _read(path, path.name, max_bytes), path.name
        else:
            raise BadSource(f"{path}: there is no such file or folder")
        pin = Pin(self.kind, self.path, f"sha256:{hashlib.sha256(data).hexdigest()}", self.destination)
        return Fetched(pin, (Archive(name, data),))


def _packed(folder: Path, max_bytes: int) -> bytes:
    packed, total = io.BytesIO(), 0
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for relative in sorted(_files(folder)):
            data = _read(folder / relative, relative, max_bytes - total, flags=os.O_NOFOLLOW)
            total += len(data)
            member = tarfile.TarInfo(relative)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def _files(folder: Path) -> Iterator[str]:
    """The files below `folder`, relative to it; what is neither file nor folder is refused."""
    found = 0
    for here, folders, files in os.walk(folder, onerror=_give_up):
        folders[:] = [name for name in folders if name not in VERSION_CONTROL]
        inside = Path(here).relative_to(folder)
        for name in folders:
            if (Path(here) / name).is_symlink():
                raise UnsafePath(f"{(inside / name).as_posix()} is a symbolic link; expected regular files only")
        for name in files:
            found += 1
            if found > MAX_FILES:
                raise BundleTooLarge(f"{folder}: has more than {MAX_FILES} files")
            if name not in VERSION_CONTROL:
                yield (inside / name).as_posix()


def _read(path: Path, shown: str, max_bytes: int, *, flags: int = 0) -> bytes:
    """The contents of a regular file; a pipe is not waited for."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnsafePath(f"{shown} is a special file; expected regular files only")
            data = file.read(max_bytes + 1)
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            raise UnsafePath(f"{shown} is a symbolic link; expected regular files only") from exc
        raise BadSource(f"{shown}: cannot be read: {exc.strerror}") from exc
    if len(data) > max_bytes:
        raise BundleTooLarge(f"{shown}: more than {max_bytes} bytes in all (max_bytes, PRATIQUE_MAX_BUNDLE_MIB)")
    return data


def _give_up(error: OSError) -> None:
    raise BadSource(f"{error.filename}: cannot be read: {error.strerror}") from error
