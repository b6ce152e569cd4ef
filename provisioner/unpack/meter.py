"""What one bundle may cost, the meter that stops it while it is read, not afterwards, and where contents are kept.

Compressed streams are read piece by piece: gzip of many members, and zstd with a bounded window.
"""

from __future__ import annotations

import io
import itertools
import unicodedata
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from backports.zstd import DecompressionParameter, ZstdFile

from provisioner.errors import BundleTooLarge, InvalidArchive, UnsafePath

CHUNK_BYTES = 256 * 1024
# Below this nobody asks how well something was packed: a short file of spaces is no bomb.
FREE_BYTES = 16 * 1024 * 1024
# What an archive may spend on one entry beside its contents: headers, extended headers, padding.
OVERHEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """Bounds of one bundle, all layers together. `max_ratio` is unpacked to packed bytes, above the first 16 MiB."""

    max_bytes: int = 256 * 1024 * 1024
    max_file_bytes: int = 64 * 1024 * 1024
    max_entries: int = 20_000
    max_depth: int = 32
    max_name_bytes: int = 1024
    max_ratio: int = 200


class ReadableLayer(Protocol):
    def read(self, size: int, /) -> bytes: ...


class UnpackMeter:
    """Counts entries and bytes of all layers against the limits."""

    def __init__(self, limits: UnpackLimits):
        self.limits = limits
        self._bytes = 0
        self._entries = 0

    def count(self, name: str) -> None:
        """One more entry, a folder or a whiteout as well; raises BundleTooLarge."""
        self._entries += 1
        if self._entries > self.limits.max_entries:
            raise BundleTooLarge(f"{name}: more than {self.limits.max_entries} entries (the limit max_entries)")

    def take(self, size: int, path: str) -> None:
        """`size` bytes more of contents; raises BundleTooLarge."""
        self._bytes += size
        if self._bytes > self.limits.max_bytes:
            raise BundleTooLarge(
                f"{path}: more than {self.limits.max_bytes} bytes in all (the limit max_bytes, PRATIQUE_MAX_BUNDLE_MIB)"
            )

    def check_file(self, size: int, path: str) -> None:
        """Raise BundleTooLarge for a single file of `size` bytes that is over the limit."""
        if size > self.limits.max_file_bytes:
            raise BundleTooLarge(
                f"{path}: has {size} bytes or more; the limit max_file_bytes is {self.limits.max_file_bytes}"
            )

    def path_of(self, name: str) -> str:
        """The entry's path, relative and normal, "" for the root itself; raises UnsafePath.

        Two spellings of one path are two readings of it by those who get the files: only what tar itself writes, a
        leading ./ and the / after a folder, is taken off.
        """
        try:
            length = len(name.encode())
        except UnicodeEncodeError as exc:  # half a surrogate pair
            raise UnsafePath(f"{name[:80]!r}: its name is not UTF-8") from exc
        if length > self.limits.max_name_bytes:
            raise UnsafePath(
                f"{name[:80]!r}…: its name has {length} bytes; the limit max_name_bytes is {self.limits.max_name_bytes}"
            )
        if "\\" in name or any(unicodedata.category(letter) == "Cc" for letter in name):
            raise UnsafePath(f"{name!r}: its name holds a backslash or a control character")
        path = name.removeprefix("./").removesuffix("/")
        parts = path.split("/") if path not in ("", ".") else []
        if name.startswith("/") or ".." in parts:
            raise UnsafePath(f"{name!r}: its name is absolute or climbs; expected a path inside the bundle")
        if "" in parts or "." in parts:
            raise UnsafePath(f"{name!r}: its name has an empty part or a dot as one; expected the path without them")
        if len(parts) > self.limits.max_depth:
            raise UnsafePath(
                f"{name[:80]!r}: lies {len(parts)} folders deep; the limit max_depth is {self.limits.max_depth}"
            )
        return "/".join(parts)


class Metered:
    """A stream of unpacked bytes, counted as they come, before anybody holds them all."""

    def __init__(self, stream: ReadableLayer, meter: UnpackMeter, packed_bytes: int):
        limits = meter.limits
        self._stream = stream
        self._limits = limits
        self._most = limits.max_bytes + limits.max_entries * OVERHEAD_BYTES + CHUNK_BYTES
        self._ratio_most = max(FREE_BYTES, limits.max_ratio * packed_bytes)
        self._seen = 0

    def read(self, size: int) -> bytes:
        """Exactly `size` bytes, fewer only at the end. Raises BundleTooLarge."""
        if size == 0:
            return b""
        first = self._some(size)
        if len(first) == size or not first:
            return first
        parts, left = [first], size - len(first)
        while left and (part := self._some(left)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _some(self, size: int) -> bytes:
        part = self._stream.read(min(size, CHUNK_BYTES))
        self._seen += len(part)
        if self._seen > self._ratio_most:
            raise BundleTooLarge(f"it unpacks to more than {self._limits.max_ratio} times its size (max_ratio)")
        if self._seen > self._most:
            raise BundleTooLarge(
                f"it unpacks to more than {self._limits.max_bytes} bytes (the limit max_bytes, PRATIQUE_MAX_BUNDLE_MIB)"
            )
        return part


T_co = TypeVar("T_co", covariant=True)


class Keeper(Protocol[T_co]):
    def wants(self, name: str) -> bool:
        """Whether an entry of this name is kept; the others are passed over."""

    def keep(self, path: str, pieces: Iterable[bytes]) -> T_co:
        """Keep the contents of a file."""


class InMemory:
    """Keeps everything, as bytes."""

    def wants(self, name: str) -> bool:
        return True

    def keep(self, path: str, pieces: Iterable[bytes]) -> bytes:
        return b"".join(pieces)


class OnDisk:
    """Keeps what is `wanted` as files of a folder, whose names are ours: nothing of the archive's reaches the disk."""

    def __init__(self, folder: Path, wanted: Callable[[str], bool]):
        self._folder = folder
        self._wanted = wanted
        self._numbers = itertools.count()

    def wants(self, name: str) -> bool:
        return self._wanted(name)

    def keep(self, path: str, pieces: Iterable[bytes]) -> Path:
        place = self._folder / str(next(self._numbers))
        with place.open("xb") as file:
            file.writelines(pieces)
        return place


GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# zstd --ultra -22 asks for 2^27 bytes; a frame that asks for more is refused before anything is reserved for it.
LARGEST_WINDOW_LOG = 27
FEED_BYTES = 16 * 1024


def zstd_stream(data: bytes) -> ReadableLayer:
    """The unpacked bytes of all frames; reading raises ZstdError or EOFError."""
    return ZstdFile(io.BytesIO(data), options={DecompressionParameter.window_log_max: LARGEST_WINDOW_LOG})


class GzipStream:
    """gzip with every member read, and nothing but zero bytes after the last one.

    Reading raises zlib.error, EOFError, and InvalidArchive for what follows the end. The number of members is bounded,
    because an empty one costs 20 bytes to send and a decoder to read; formats for lazy pulling have one per entry.
    """

    def __init__(self, data: bytes, limits: UnpackLimits):
        self._data = memoryview(data)
        self._at = 0
        self._members_left = 2 * limits.max_entries + 16
        self._decoder = zlib.decompressobj(wbits=31)

    def read(self, size: int, /) -> bytes:
        """At least one and at most `size` bytes; none at the end."""
        while True:
            if self._decoder.eof:
                if bytes(self._data[self._at : self._at + 2]) != GZIP_MAGIC:
                    if any(self._data[self._at :]):
                        raise InvalidArchive("something follows the end of the gzip stream")
                    return b""
                self._members_left -= 1
                if self._members_left < 0:
                    raise InvalidArchive("the gzip stream has more members than a bundle may have entries")
                self._decoder = zlib.decompressobj(wbits=31)
            piece = self._data[self._at : self._at + FEED_BYTES]
            if not piece and not self._decoder.unconsumed_tail:
                raise EOFError("the gzip stream ends too early")
            found = self._decoder.decompress(piece, size)
            # What the decoder did not use is read again: it lies in our own bytes.
            self._at += len(piece) - len(self._decoder.unconsumed_tail or self._decoder.unused_data)
            if found:
                return found
