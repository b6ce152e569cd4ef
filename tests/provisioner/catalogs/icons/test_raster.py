"""Pictures that browsers draw, and the same ones damaged."""

from __future__ import annotations

import struct
import zlib

import pytest

from provisioner.catalogs.icons.raster import can_be_drawn
from tests.support.pictures import (
    BLUE,
    GIF,
    INTERLACED,
    JPEG,
    JPEG_FRAME,
    JPEG_SCAN,
    JPEG_TABLES,
    LOSSLESS,
    LOSSY,
    MOVING,
    PICTURES,
    PNG_HEAD,
    chunk,
    png,
)

WHOLE = png(8, 8)
END = chunk(b"IEND", b"")
FLIPPED = bytearray(WHOLE)
FLIPPED[-30] ^= 1


def headed(head: bytes, points: bytes = b"\0" + BLUE) -> bytes:
    return PNG_HEAD + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(points)) + END


DAMAGED = {
    "png: beginning": (PNG_HEAD, "image/png"),
    "png: without its end": (WHOLE[: -len(END)], "image/png"),
    "png: a bit flipped": (bytes(FLIPPED), "image/png"),
    "png: without points": (PNG_HEAD + WHOLE[8:33] + END, "image/png"),
    "png: too few points": (png(8, 8, points=b"\0" + BLUE), "image/png"),
    "png: too many points": (png(1, 1, points=(b"\0" + BLUE) * 2), "image/png"),
    "png: no stream": (PNG_HEAD + WHOLE[8:33] + chunk(b"IDAT", b"points") + END, "image/png"),
    "png: no size": (headed(struct.pack(">IIBBBBB", 0, 1, 8, 6, 0, 0, 0)), "image/png"),
    "png: no such colour": (headed(struct.pack(">IIBBBBB", 1, 1, 8, 5, 0, 0, 0)), "image/png"),
    "png: no such depth": (headed(struct.pack(">IIBBBBB", 1, 1, 4, 6, 0, 0, 0)), "image/png"),
    "png: no palette": (headed(struct.pack(">IIBBBBB", 1, 1, 8, 3, 0, 0, 0), b"\0\0"), "image/png"),
    "png: passes that are none": (headed(struct.pack(">IIBBBBB", 1, 1, 8, 6, 0, 0, 2)), "image/png"),
    "png: half a head": (headed(b"\0\0\0\1"), "image/png"),
    "png: an interlaced one that is not": (png(3, 3, points=INTERLACED), "image/png"),
    "gif: beginning": (GIF[:13], "image/gif"),
    "gif: half an image": (GIF[:-4], "image/gif"),
    "gif: without an image": (GIF[:19] + b";", "image/gif"),
    "gif: an image wider than the screen": (GIF.replace(b"\0\0\1\0\1\0\0\2", b"\0\0\2\0\1\0\0\2"), "image/gif"),
    "gif: an image below the screen": (GIF.replace(b",\0\0\0\0", b",\0\0\1\0"), "image/gif"),
    "jpeg: beginning": (JPEG[:20], "image/jpeg"),
    "jpeg: without tables": (b"\xff\xd8" + JPEG_FRAME + JPEG_SCAN + b"\x3f", "image/jpeg"),
    "jpeg: without a frame": (b"\xff\xd8" + JPEG_TABLES + JPEG_SCAN + b"\x3f", "image/jpeg"),
    "jpeg: without a scan": (b"\xff\xd8" + JPEG_TABLES + JPEG_FRAME + b"\xff\xd9", "image/jpeg"),
    "jpeg: a scan of nothing": (b"\xff\xd8" + JPEG_TABLES + JPEG_FRAME + JPEG_SCAN, "image/jpeg"),
    "jpeg: a coding that browsers lack": (JPEG.replace(b"\xff\xc0", b"\xff\xc9"), "image/jpeg"),
    "webp: cut off": (LOSSY[:-4], "image/webp"),
    "webp: half a chunk": (LOSSLESS.replace(b"\x0d\0\0\0", b"\xff\0\0\0"), "image/webp"),
    "webp: no frame": (LOSSY.replace(b"\x9d\x01\x2a", b"\0\0\0"), "image/webp"),
    "webp: a moving one of nothing": (MOVING.replace(b"ANMF", b"ANMX"), "image/webp"),
    "svg": (b"<svg/>", "image/svg+xml"),
}


@pytest.mark.parametrize(("data", "media_type"), PICTURES.values(), ids=PICTURES)
def test_what_browsers_draw_can_be_drawn(data: bytes, media_type: str) -> None:
    assert can_be_drawn(data, media_type)


@pytest.mark.parametrize(("data", "media_type"), DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_cannot(data: bytes, media_type: str) -> None:
    assert not can_be_drawn(data, media_type)


@pytest.mark.parametrize(("data", "media_type"), PICTURES.values(), ids=PICTURES)
def test_no_part_of_a_picture_is_too_strange_to_be_judged(data: bytes, media_type: str) -> None:
    for size in range(len(data)):
        can_be_drawn(data[:size], media_type)


def test_words_in_a_png_may_have_a_wrong_sum() -> None:
    words = bytearray(png(1, 1, tEXt=b"Author\0somebody"))
    words[words.index(b"somebody")] = 0x53
    assert can_be_drawn(bytes(words), "image/png")


def test_few_bytes_that_become_very_many_are_not_all_made() -> None:
    bomb = zlib.compress(bytes(64 * 1024 * 1024))
    head = struct.pack(">IIBBBBB", 8, 8, 8, 6, 0, 0, 0)
    assert not can_be_drawn(PNG_HEAD + chunk(b"IHDR", head) + chunk(b"IDAT", bomb) + END, "image/png")


def test_frames_within_frames_are_not_gone_into() -> None:
    """A whole catalog would not be read because of them."""
    chunks = LOSSLESS[12:]
    for _ in range(4_000):
        chunks = b"ANMF" + struct.pack("<I", 16 + len(chunks)) + bytes(16) + chunks
    nested = b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WEBP" + chunks
    assert not can_be_drawn(nested, "image/webp")
