"""The size of a picture is read from its head, in each way to write one."""

from __future__ import annotations

import struct

import pytest

from provisioner.catalogs.icons.points import points_of

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 300, 200)
JPEG = b"\xff\xd8" + b"\xff\xe0\0\x04ab" + b"\xff\xff\xdb\0\x02" + b"\xff\xc2\0\x0b\x08" + struct.pack(">HH", 200, 300)
LOSSY = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 300, 200)
LOSSLESS = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", 299 | 199 << 14)
EXTENDED = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0" + (299).to_bytes(3, "little") + (199).to_bytes(3, "little")


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        pytest.param(PNG, "image/png", id="png"),
        pytest.param(b"GIF89a" + struct.pack("<HH", 300, 200), "image/gif", id="gif"),
        pytest.param(JPEG, "image/jpeg", id="jpeg"),
        pytest.param(LOSSY, "image/webp", id="lossy webp"),
        pytest.param(LOSSLESS, "image/webp", id="lossless webp"),
        pytest.param(EXTENDED, "image/webp", id="extended webp"),
    ],
)
def test_the_size_is_read_without_drawing_and_half_a_head_says_nothing(data: bytes, media_type: str) -> None:
    assert points_of(data, media_type) == 300 * 200
    assert [points_of(data[:size], media_type) for size in range(len(data) - 4)] == [0] * (len(data) - 4)


@pytest.mark.parametrize(
    "data", [b"\xff\xd8\xff\xe0\0\0" * 20, b"\xff\xd8" + b"\xff" * 200, b"\xff\xd8\xff\xda\0\x02ab"]
)
def test_a_jpeg_without_a_frame_has_no_size(data: bytes) -> None:
    assert points_of(data, "image/jpeg") == 0


def test_what_is_no_picture_has_no_size() -> None:
    assert points_of(PNG, "image/svg+xml") == 0
