"""How many points a picture has, by its head and without drawing it: few bytes can become a very large one. PURE."""

from __future__ import annotations

import struct
from collections.abc import Callable

# Start of frame of each coding; between them are tables (C4, C8, CC).
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# Without a length: restarts, and a marker that is there for itself.
_BARE = frozenset(range(0xD0, 0xD8)) | {0x01}


def points_of(data: bytes, media_type: str) -> int:
    """Width times height; 0 where the head does not say, so that nothing draws it."""
    read = _READERS.get(media_type)
    try:
        width, height = read(data) if read else (0, 0)
    except (struct.error, IndexError):
        return 0
    return width * height


def _png(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", data, 6)
    return width, height


def _webp(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        low_width, high_width, low_height, high_height = struct.unpack_from("<HBHB", data, 24)
        return 1 + (high_width << 16 | low_width), 1 + (high_height << 16 | low_height)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


def _jpeg(data: bytes) -> tuple[int, int]:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # which fills up
            at += 1
        elif marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        elif marker in _BARE:
            at += 2
        else:
            (length,) = struct.unpack_from(">H", data, at + 2)
            at += 2 + max(length, 2)
    return 0, 0


_READERS: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/png": _png,
    "image/webp": _webp,
}
