"""Which icons of packages are kept, and why others are not. Nothing here draws them. PURE.

A page shows an icon as `<img>`, where browsers run no script and fetch nothing. What is left to bound is what drawing
it costs the browser: a PNG of 31 KB can have 256 million points, which stops a page for a quarter of a minute, so the
size in points is read from the head. What an SVG draws only a browser can tell: lists of packages leave SVGs out.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.catalogs.texts import line_of

SVG = "image/svg+xml"
MAX_ICON_BYTES = 128 * 1024
# A browser draws four bytes a point.
MAX_ICON_POINTS = 2048 * 2048
# Start of frame of each coding of JPEG; between them are tables (C4, C8, CC).
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# Without a length: restarts, and a marker that stands alone.
_JPEG_BARE = frozenset(range(0xD0, 0xD8)) | {0x01}
_GIF_EXTENSION, _GIF_IMAGE = 0x21, 0x2C


@dataclass(frozen=True, slots=True)
class PackageIcon:
    """A picture of its media type: points, or an SVG that is never to stand in a page."""

    data: bytes
    media_type: str


def told_icon(icon: Mapping[str, Any]) -> dict[str, str]:
    """The type and data of a package's icon; of one that is too large only so much that this is seen."""
    media_type, data = icon.get("mediatype"), icon.get("base64data")
    return {
        "type": line_of(media_type.lower()) if isinstance(media_type, str) else "",
        "data": "".join(data.split())[: MAX_ICON_BYTES * 2] if isinstance(data, str) else "",
    }


def kept_icon(told: Mapping[str, str]) -> tuple[PackageIcon | None, str]:
    """The icon that `told_icon` found, or why it is not kept."""
    media_type = told["type"]
    if media_type not in KEPT:
        return None, f"its type is {media_type or 'not said'}; only {', '.join(sorted(KEPT))} are kept"
    try:
        data = base64.b64decode(told["data"], validate=True)
    except (binascii.Error, ValueError):
        return None, "it is no base64"
    if len(data) > MAX_ICON_BYTES:
        return None, f"it has more than {MAX_ICON_BYTES} bytes"
    if media_type == SVG:
        is_svg = data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"<svg" in data
        return (PackageIcon(data, media_type), "") if is_svg else (None, f"its bytes are no {media_type}")
    begins, read_size = _RASTER[media_type]
    try:
        width, height = read_size(data) if data.startswith(begins) else (0, 0)
    except (struct.error, IndexError):
        width = height = 0
    if not width * height:
        return None, f"its bytes are no {media_type}"
    if width * height > MAX_ICON_POINTS:
        return None, f"it has more than {MAX_ICON_POINTS} points"
    return PackageIcon(data, media_type), ""


def _png_size(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", data, 16)
    return width, height


def _gif_size(data: bytes) -> tuple[int, int]:
    """The size of the screen with its first image, to which browsers enlarge it."""
    screen = struct.unpack_from("<HH", data, 6)
    at = 13 + (3 << (data[10] & 7) + 1 if data[10] & 0x80 else 0)
    while data[at] == _GIF_EXTENSION:
        at += 2
        while length := data[at]:
            at += 1 + length
        at += 1
    left, top, width, height = struct.unpack_from("<HHHH", data, at + 1)
    return (max(screen[0], left + width), max(screen[1], top + height)) if data[at] == _GIF_IMAGE else (0, 0)


def _webp_size(data: bytes) -> tuple[int, int]:
    if data[8:12] != b"WEBP":
        return 0, 0
    kind = data[12:16]
    if kind == b"VP8X":
        low_width, high_width, low_height, high_height = struct.unpack_from("<HBHB", data, 24)
        return 1 + (high_width << 16 | low_width), 1 + (high_height << 16 | low_height)
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # which fills up
            at += 1
        elif marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        elif marker in _JPEG_BARE:
            at += 2
        else:
            (length,) = struct.unpack_from(">H", data, at + 2)
            at += 2 + max(length, 2)
    return 0, 0


# How the bytes of each type begin, and how its size is read.
_RASTER: dict[str, tuple[tuple[bytes, ...], Callable[[bytes], tuple[int, int]]]] = {
    "image/gif": ((b"GIF87a", b"GIF89a"), _gif_size),
    "image/jpeg": ((b"\xff\xd8\xff",), _jpeg_size),
    "image/png": ((b"\x89PNG\r\n\x1a\n",), _png_size),
    "image/webp": ((b"RIFF",), _webp_size),
}
KEPT = frozenset({*_RASTER, SVG})
