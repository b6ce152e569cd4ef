"""Untrusted archives into a bounded tree in memory: nothing is written, followed or run (promise 10).

Beside the packed archive, memory holds the unpacked tree, twice the largest file, and for zstd the window of at most
128 MiB. A format is one file and one line in `_entries`.
"""

from __future__ import annotations

import io
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from backports.zstd import ZstdError

from provisioner.errors import BadBundle, InvalidArchive, UnsafePath
from provisioner.unpack.meter import (
    GZIP_MAGIC,
    ZSTD_MAGIC,
    GzipStream,
    InMemory,
    Keeper,
    Metered,
    OnDisk,
    ReadableLayer,
    UnpackLimits,
    UnpackMeter,
    zstd_stream,
)
from provisioner.unpack.tar import BLOCK, is_tar, tar_entries
from provisioner.unpack.zip import MAGICS, zip_entries
from provisioner.values import Archive, Tree

T = TypeVar("T")
WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
TEXT_SUFFIXES = (".yaml", ".yml", ".json")
# Formats that people try, by their first bytes: the answer is which one it is, not "unknown".
UNREAD = {b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"7z\xbc\xaf": "7z", b"Rar!": "rar", b"\x04\x22\x4d\x18": "lz4"}


@dataclass(slots=True)
class _Layer(Generic[T]):
    """One archive: what it brings, and what it takes away from those below it."""

    files: dict[str, T] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    emptied: set[str] = field(default_factory=set)

    def hides(self, path: str) -> bool:
        """Whether a file `path` of a lower layer is seen no longer: whited out, or in the way of something new."""
        if path in self.gone or path in self.folders:
            return True
        return any(
            folder in self.gone or folder in self.emptied or folder in self.files for folder in ("", *_folders(path))
        )


def unpack(
    archives: Iterable[Archive], *, limits: UnpackLimits | None = None, meter: UnpackMeter | None = None
) -> Tree:
    """The regular files of all archives, later ones over earlier ones, whiteouts applied as image layers mean them.

    Where there are other archives under the same limits, they share one `meter`.
    Raises UnsafePath and InvalidArchive naming the entry, and BundleTooLarge naming the limit, while reading: a bomb
    is never held unpacked.
    """
    files = _unpacked(archives, meter or UnpackMeter(limits or UnpackLimits()), InMemory())
    if not files:
        raise InvalidArchive("the archive holds no files")
    return Tree(files)


def unpack_to(
    folder: Path, archives: Iterable[Archive], *, wanted: Callable[[str], bool], limits: UnpackLimits
) -> dict[str, Path]:
    """As `unpack`, with each file that is `wanted`, by its name, in a file of its own below `folder`, by its path.

    Archives may come one by one: memory holds one of them, and no file. Whiteouts are always asked for. What is not
    wanted is passed over, be it a link or a device: an image may hold a whole operating system beside it. There may be
    no file at all.
    """

    def is_wanted(name: str) -> bool:
        return name.rpartition("/")[2].startswith(WHITEOUT) or wanted(name)

    return _unpacked(archives, UnpackMeter(limits), OnDisk(folder, is_wanted))


def _unpacked(archives: Iterable[Archive], meter: UnpackMeter, keeper: Keeper[T]) -> dict[str, T]:
    files: dict[str, T] = {}
    for archive in archives:
        layer = _layer(archive, meter, keeper)
        _check_collisions(layer.files, layer.folders)
        for path in [known for known in files if layer.hides(known)]:
            del files[path]
        files.update(layer.files)
    _check_collisions(files, ())
    return dict(sorted(files.items()))


def _layer(archive: Archive, meter: UnpackMeter, keeper: Keeper[T]) -> _Layer[T]:
    layer = _Layer[T]()
    for path, data in _archive_entries(archive, meter, keeper):
        folder, _, name = path.rpartition("/")
        if data is None:
            layer.folders.update((path, *_folders(path)) if path else ())
        elif name == OPAQUE:
            layer.emptied.add(folder)
        elif name.startswith(WHITEOUT):
            target = name.removeprefix(WHITEOUT)
            if target in ("", ".", ".."):
                raise UnsafePath(f"{path}: a whiteout of no file")
            layer.gone.add(f"{folder}/{target}" if folder else target)
        elif path in layer.files:
            raise InvalidArchive(f"{path} is in the archive twice")
        else:
            layer.files[path] = data
            layer.folders.update(_folders(path))
    return layer


def _folders(path: str) -> list[str]:
    """The folders above `path`, the innermost first, without the root."""
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(len(parts) - 1, 0, -1)]


def _archive_entries(archive: Archive, meter: UnpackMeter, keeper: Keeper[T]) -> Iterator[tuple[str, T | None]]:
    """The entries of one archive, told apart by what the bytes are; every error says which archive it was."""
    what, data = archive.name or "the archive", archive.data
    try:
        if data[:4] in MAGICS:
            yield from zip_entries(data, meter, keeper)
            return
        stream: ReadableLayer | None = None
        if data[:2] == GZIP_MAGIC:
            stream = GzipStream(data, meter.limits)
        elif data[:4] == ZSTD_MAGIC:
            stream = zstd_stream(data)
        elif is_tar(data[:BLOCK]):
            stream = io.BytesIO(data)  # which shares the bytes
        if stream is not None:
            yield from tar_entries(Metered(stream, meter, len(data)), meter, keeper)
            return
        path = meter.path_of(archive.name)
        if not path.lower().endswith(TEXT_SUFFIXES):
            known = next((name for magic, name in UNREAD.items() if data.startswith(magic)), "")
            found = f"it is {known}" if known else "it is no archive that is read, and has no suffix of a text"
            raise InvalidArchive(f"{found}; expected tar, tar.gz, tar.zst, zip, YAML or JSON")
        meter.count(path)
        meter.check_file(len(data), path)
        meter.take(len(data), path)
        yield path, keeper.keep(path, [data])
    except (zipfile.BadZipFile, zlib.error, ZstdError, EOFError) as exc:
        raise InvalidArchive(f"{what}: it is damaged or cut off: {exc}") from exc
    except (NotImplementedError, RuntimeError, ValueError, OverflowError) as exc:  # what zipfile says of odd archives
        raise InvalidArchive(f"{what}: it cannot be read: {exc}") from exc
    except BadBundle as exc:
        raise type(exc)(f"{what}: {exc}") from exc


def _check_collisions(files: Iterable[str], folders: Iterable[str]) -> None:
    """Two names that some file system takes for one, and a file where another one needs a folder."""
    names = sorted(files)
    above: dict[str, str] = {_folded(folder): folder for folder in folders}
    for path in names:
        above.update({_folded(folder): folder for folder in _folders(path)})
    known: dict[str, str] = {}
    for path in names:
        key = _folded(path)
        if key in known:
            raise UnsafePath(f"{path} and {known[key]} differ only in case or in how letters are composed")
        if key in above:
            raise InvalidArchive(f"{path} is a file, and {above[key]} a folder")
        known[key] = path


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


__all__ = ["GZIP_MAGIC", "UnpackLimits", "UnpackMeter", "unpack", "unpack_to"]
