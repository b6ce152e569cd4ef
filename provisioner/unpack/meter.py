"""What one bundle may cost, and the meter that stops it while it is read, not afterwards."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Protocol

from provisioner.errors import BundleTooLarge, UnsafePath

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
        if "\\" in name or any(unicodedata.category(one) == "Cc" for one in name):
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
