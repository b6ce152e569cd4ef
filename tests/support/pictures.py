"""Small pictures that every browser draws, in each format that a catalog's icon may have."""

from __future__ import annotations

import base64
import struct
import zlib

# Eight by eight points of one grey: a table of one code each for what is the same as before, and for the end of a block.
JPEG_TABLES = (
    b"\xff\xdb\0\x43\0"
    + b"\1" * 64
    + b"".join(b"\xff\xc4\0\x14" + kind + b"\1" + bytes(15) + b"\0" for kind in (b"\0", b"\x10"))
)
JPEG_FRAME = b"\xff\xc0\0\x0b\x08\0\x08\0\x08\1\1\x11\0"
JPEG_SCAN = b"\xff\xda\0\x08\1\1\0\0\x3f\0"
JPEG = b"\xff\xd8" + JPEG_TABLES + JPEG_FRAME + JPEG_SCAN + b"\x3f\xff\xd9"
GIF = base64.b64decode("R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==")
LOSSY = base64.b64decode("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")
LOSSLESS = base64.b64decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")
TRANSPARENT = base64.b64decode(
    "UklGRkoAAABXRUJQVlA4WAoAAAAQAAAAAAAAAAAAQUxQSAwAAAARBxAR/Q9ERP8DAABWUDggGAAAABQBAJ0BKgEAAQAAAP4AAA3AAP7mtQAAAA=="
)
MOVING = base64.b64decode(
    "UklGRlIAAABXRUJQVlA4WAoAAAASAAAAAAAAAAAAQU5JTQYAAAD/////AABBTk1GJgAAAAAAAAAAAAAAAAAAAGQAAABWUDhMDQAAAC8AAAAQBxAREYiI"
    "/gcA"
)
PNG_HEAD = b"\x89PNG\r\n\x1a\n"
BLUE = b"\x1f\x6f\xeb\xff"


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def png(width: int, height: int, *, points: bytes = b"") -> bytes:
    """In 8 bits of each of red, green, blue and opacity; without `points` all of them are one blue."""
    row = b"\0" + BLUE * width
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    packed = zlib.compress(points or row * height)
    return PNG_HEAD + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


PICTURES = {
    "png": (png(40, 40), "image/png"),
    "jpeg": (JPEG, "image/jpeg"),
    "gif": (GIF, "image/gif"),
    "lossy webp": (LOSSY, "image/webp"),
    "lossless webp": (LOSSLESS, "image/webp"),
    "transparent webp": (TRANSPARENT, "image/webp"),
    "moving webp": (MOVING, "image/webp"),
}


def svg(body: str, **attributes: str) -> bytes:
    """An SVG of 40 by 40 with this in it."""
    more = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"{more}>{body}</svg>'.encode()
