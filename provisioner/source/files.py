"""Files that are there already: of a ConfigMap that was read, or of this machine, for the command line only (S18).

Links inside a folder are never followed.
"""

from __future__ import annotations

import base64
import binascii
import errno
import hashlib
import io
import json
import os
import stat
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from provisioner.errors import BadSource, BundleTooLarge, UnsafePath
from provisioner.source.egress import EgressPolicy
from provisioner.source.source_type import (
    Credentials,
    Fetched,
    SourceField,
    SourceType,
    parse_reference,
    reference_words,
)
from provisioner.values import Archive, JsonObject, ObjectRef, Pin


def tar_of(files: Iterable[tuple[str, bytes]]) -> bytes:
    """The files, each a path and its contents, as a tar that is unpacked under the same bounds as every archive."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, data in files:
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


@dataclass(frozen=True, slots=True)
class ConfigMapSource(SourceType):
    """A ConfigMap as it was read: `files` are its data and binaryData by key."""

    kind = "configMap"
    label = "ConfigMap"
    fields = (
        SourceField(
            "config_map",
            "ConfigMap",
            "namespace/name, or a name in the install namespace. Each key is a file.",
            is_needed=True,
            is_reference=True,
        ),
    )

    namespace: str
    name: str
    uid: str
    resource_version: str
    files: Mapping[str, bytes] = field(repr=False)
    destination: str = ""

    @classmethod
    def of(cls, config_map: JsonObject, *, destination: str = "") -> ConfigMapSource:
        """The source that a live ConfigMap is: each key of data and binaryData one file. Raises BadSource."""
        ref, meta = ObjectRef.of(config_map), config_map.get("metadata") or {}
        files = {str(key): str(text).encode() for key, text in (config_map.get("data") or {}).items()}
        for key, text in (config_map.get("binaryData") or {}).items():
            try:
                files[str(key)] = base64.b64decode(str(text), validate=True)
            except (binascii.Error, ValueError) as exc:
                raise BadSource(f"{ref}: the key {key} of its binaryData is no base64") from exc
        uid, version = str(meta.get("uid") or ""), str(meta.get("resourceVersion") or "")
        return cls(ref.namespace, ref.name, uid, version, files, destination)

    @staticmethod
    def to_spec(given: Mapping[str, str]) -> dict[str, Any]:
        return {"namespace": "", **parse_reference(given["config_map"])}

    @staticmethod
    def to_form(body: JsonObject) -> dict[str, Any]:
        return {"config_map": reference_words(body)}

    @classmethod
    def place_words(cls, body: JsonObject, namespace: str) -> str:
        return reference_words({"namespace": body.get("namespace") or namespace, "name": body.get("name")})

    def pinned(self, pin: Pin) -> ConfigMapSource:
        return self

    def fetch(self, *, egress: EgressPolicy, credentials: Credentials | None, max_bytes: int) -> Fetched:
        """The files as a tar, pinned to the ConfigMap's uid, its resourceVersion and the SHA-256 of every file.

        Raises BadSource for one without files, and BundleTooLarge.
        """
        reference = f"{self.namespace}/{self.name}"
        if not self.files:
            words = "holds no files; expected manifests as keys of its data or binaryData"
            raise BadSource(f"ConfigMap {reference}: {words}")
        total = sum(map(len, self.files.values()))
        if total > max_bytes:
            words = f"has {total} bytes; the limit is {max_bytes} (max_bytes, PRATIQUE_MAX_BUNDLE_MIB)"
            raise BundleTooLarge(f"ConfigMap {reference}: {words}")
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()}
        identity = json.dumps([self.uid, self.resource_version, hashes], sort_keys=True)
        digest = f"sha256:{hashlib.sha256(identity.encode()).hexdigest()}"
        pin = Pin(self.kind, reference, digest, self.destination)
        return Fetched(pin, (Archive("", tar_of(sorted(self.files.items()))),))


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
            data, name = tar_of(_contents(path, max_bytes)), ""
        elif path.is_file():
            data, name = _read_regular_file(path, path.name, max_bytes), path.name
        else:
            is_other = path.exists()
            raise BadSource(
                f"{path}: expected a folder or an archive file, and it is a pipe or a device: save it to a file first"
                if is_other
                else f"{path}: there is no such file or folder"
            )
        pin = Pin(self.kind, self.path, f"sha256:{hashlib.sha256(data).hexdigest()}", self.destination)
        return Fetched(pin, (Archive(name, data),))


def _contents(folder: Path, max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """The files below `folder` by their paths, at most `max_bytes` in all; one at a time is held in memory."""
    left = max_bytes
    for relative in sorted(_files(folder)):
        data = _read_regular_file(folder / relative, relative, left, flags=os.O_NOFOLLOW)
        left -= len(data)
        yield relative, data


def _files(folder: Path) -> Iterator[str]:
    """The files below `folder`, relative to it; what is neither file nor folder is refused."""
    found = 0

    def give_up(error: OSError) -> None:
        raise BadSource(f"{error.filename}: cannot be read: {error.strerror}") from error

    for here, folders, files in os.walk(folder, onerror=give_up):
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


def _read_regular_file(path: Path, shown: str, max_bytes: int, *, flags: int = 0) -> bytes:
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
