"""Whether a browser draws a picture, by its bytes: where it cannot, pages would show a sign for a broken picture. PURE.

A PNG is inflated, in pieces that are thrown away. Of the other formats the parts that a decoder needs are looked for,
each with its length: browsers draw a JPEG or GIF as far as it goes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator

_PIECE_BYTES = 64 * 1024
# Of each kind of colour, the values that a point has, and how many bits these may have.
_COLOURS = {
    0: (1, (1, 2, 4, 8, 16)),
    2: (3, (8, 16)),
    3: (1, (1, 2, 4, 8)),
    4: (2, (8, 16)),
    6: (4, (8, 16)),
}
_PALETTE_COLOUR = 3
# Of each pass over an interlaced picture, where it begins and how far its points are apart: across and down.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
# Start of frame of the codings that browsers draw: baseline, extended and progressive.
_JPEG_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
_JPEG_TABLES = frozenset({0xC4, 0xDB})
_JPEG_SCAN = 0xDA
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
_GIF_EXTENSION, _GIF_IMAGE = 0x21, 0x2C
_WEBP_FRAME_HEAD = 16


def can_be_drawn(data: bytes, media_type: str) -> bool:
    """Whether `data`, which begins as a picture of this type does, goes on as one."""
    look = _LOOKS.get(media_type)
    try:
        return look(data) if look else False
    except (struct.error, IndexError, zlib.error):
        return False


def _png(data: bytes) -> bool:
    chunks = list(_png_chunks(data))
    names = [name for name, _ in chunks]
    if names[0] != b"IHDR" or names[-1] != b"IEND":
        return False
    width, height, depth, colour, packing, filtering, interlacing = struct.unpack(">IIBBBBB", chunks[0][1])
    values, depths = _COLOURS.get(colour, (0, ()))
    if depth not in depths or packing or filtering or interlacing > 1 or not (width and height):
        return False
    if colour == _PALETTE_COLOUR and b"PLTE" not in names:
        return False
    passes = _PASSES if interlacing else ((0, 0, 1, 1),)
    size = sum(_pass_bytes(width - x, height - y, dx, dy, values * depth) for x, y, dx, dy in passes)
    return _inflated_bytes(b"".join(body for name, body in chunks if name == b"IDAT"), size) == size


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Up to the end, or to the first one that a decoder needs and whose sum is wrong."""
    at, name = 8, b""
    while name != b"IEND":
        length, name = struct.unpack_from(">I4s", data, at)
        body = data[at + 8 : at + 8 + length]
        (told,) = struct.unpack_from(">I", data, at + 8 + length)
        if told != zlib.crc32(name + body) and name.isupper():
            return
        yield name, body
        at += 12 + length


def _pass_bytes(across: int, down: int, step_across: int, step_down: int, bits: int) -> int:
    """The bytes of the points of one pass, each row of which begins with the one that says how it is filtered."""
    columns, rows = -(-max(across, 0) // step_across), -(-max(down, 0) // step_down)
    return rows * (1 + -(-columns * bits // 8)) if columns else 0


def _inflated_bytes(packed: bytes, most: int) -> int:
    """How many bytes this becomes, counted to a little more than `most`; -1 where it ends before its end."""
    stream, found = zlib.decompressobj(), 0
    left = packed
    while found <= most and (piece := stream.decompress(left, _PIECE_BYTES)):
        found += len(piece)
        left = stream.unconsumed_tail
    return found if found > most or stream.eof else -1


def _jpeg(data: bytes) -> bool:
    """Whether the tables and the frame come before the first scan, and something after its head."""
    at, seen = 2, set[int]()
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # which fills up
            at += 1
            continue
        if marker in _JPEG_BARE:
            at += 2
            continue
        (length,) = struct.unpack_from(">H", data, at + 2)
        at += 2 + max(length, 2)
        if marker == _JPEG_SCAN:
            return bool(seen & _JPEG_FRAMES) and seen >= _JPEG_TABLES and at < len(data)
        seen.add(marker)
    return False


def _gif(data: bytes) -> bool:
    """Whether the first image is whole, and within the screen whose points were counted: browsers enlarge that."""
    screen = struct.unpack_from("<HH", data, 6)
    at = 13 + _gif_table_bytes(data[10])
    while data[at] == _GIF_EXTENSION:
        at = _past_blocks(data, at + 2)
    if data[at] != _GIF_IMAGE:
        return False
    left, top, width, height, flags = struct.unpack_from("<HHHHB", data, at + 1)
    points_at = at + 10 + _gif_table_bytes(flags)
    is_coded = 1 <= data[points_at] <= 11
    is_inside = 0 < width <= screen[0] - left and 0 < height <= screen[1] - top
    return is_coded and is_inside and _past_blocks(data, points_at + 1) > points_at + 2


def _gif_table_bytes(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _past_blocks(data: bytes, at: int) -> int:
    while length := data[at]:
        at += 1 + length
    return at + 1


def _webp(data: bytes) -> bool:
    (length,) = struct.unpack_from("<I", data, 4)
    return 8 + length <= len(data) and _has_webp_frame(data[12 : 8 + length])


def _has_webp_frame(chunks: bytes, *, is_of_frame: bool = False) -> bool:
    """Whether one of these chunks is an image; those of a frame hold no further frames."""
    at, found = 0, False
    while at < len(chunks) - 8:
        name, length = struct.unpack_from("<4sI", chunks, at)
        body = chunks[at + 8 : at + 8 + length]
        if len(body) < length:
            return False
        if name == b"ANMF" and not is_of_frame:
            found |= _has_webp_frame(body[_WEBP_FRAME_HEAD:], is_of_frame=True)
        found |= name == b"VP8 " and len(body) > 10 and body[3:6] == b"\x9d\x01\x2a"
        found |= name == b"VP8L" and len(body) > 5 and body[0] == 0x2F
        at += 8 + length + length % 2
    return found


_LOOKS: dict[str, Callable[[bytes], bool]] = {
    "image/gif": _gif,
    "image/jpeg": _jpeg,
    "image/png": _png,
    "image/webp": _webp,
}
