"""The size of an icon is read from its head, in each way to write one; a head that does not tell it is refused."""

from __future__ import annotations

import base64
import struct

import pytest

from provisioner.catalogs.presentation import MAX_ICON_BYTES, PackageIcon, check_icon
from tests.support.pictures import GIF, PICTURES, png, svg

LARGE, EDGE = 16_000, 2048
GIF_HEAD = b"GIF89a" + struct.pack("<HH", 1, 1) + b"\x80\0\0" + bytes(6)


def judged(data: bytes, media_type: str) -> tuple[PackageIcon | None, str]:
    return check_icon({"type": media_type, "data": base64.b64encode(data).decode()})


def headed(width: int, height: int) -> dict[str, tuple[bytes, str]]:
    """Heads of pictures of this size, in each way to write one."""
    size, less_one = struct.pack("<HH", width, height), (width - 1 | height - 1 << 14)
    of_webp = b"".join((value - 1).to_bytes(3, "little") for value in (width, height))
    frame = b"\xff\xc2\0\x0b\x08" + struct.pack(">HH", height, width)
    return {
        "png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height), "image/png"),
        "gif": (b"GIF89a" + size + bytes(3) + b"," + bytes(8), "image/gif"),
        "gif, which browsers enlarge": (GIF_HEAD + b"!\xf9\4" + bytes(5) + b"," + bytes(4) + size, "image/gif"),
        "jpeg": (b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xdb\0\x02" + frame, "image/jpeg"),
        "lossy webp": (b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + size, "image/webp"),
        "lossless webp": (b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + struct.pack("<I", less_one), "image/webp"),
        "extended webp": (b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + of_webp, "image/webp"),
    }


@pytest.mark.parametrize("form", headed(1, 1))
def test_a_picture_of_too_many_points_is_refused_in_each_form(form: str) -> None:
    data, media_type = headed(EDGE, EDGE)[form]
    assert judged(data, media_type) == (PackageIcon(data, media_type), "")
    # No WebP without an extended head has more than 16,384 points along an edge.
    assert judged(*headed(LARGE, LARGE)[form]) == (None, "it has more than 4194304 points")
    assert {judged(data[:size], media_type) for size in range(len(data) - 4)} == {
        (None, f"its bytes are no {media_type}")
    }


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b"\xff\xd8\xff\xe0\0\0" * 20, "image/jpeg"),
        (b"\xff\xd8" + b"\xff" * 200, "image/jpeg"),
        (b"\xff\xd8\xff\xda\0\x02ab", "image/jpeg"),
        (GIF_HEAD + bytes(30), "image/gif"),
        (b"RIFF....AVI VP8 " + bytes(30), "image/webp"),
        (GIF, "image/png"),
        (svg("<path/>"), "image/png"),
        (b"%PDF <svg", "image/svg+xml"),
        (b"<html/>", "image/svg+xml"),
    ],
)
def test_bytes_that_are_not_of_the_type_or_tell_no_size_are_refused(data: bytes, media_type: str) -> None:
    assert judged(data, media_type) == (None, f"its bytes are no {media_type}")


@pytest.mark.parametrize(("data", "media_type"), PICTURES.values(), ids=PICTURES)
def test_pictures_are_kept_up_to_so_many_bytes(data: bytes, media_type: str) -> None:
    assert judged(data, media_type) == (PackageIcon(data, media_type), "")
    whole = data + bytes(MAX_ICON_BYTES - len(data))
    assert judged(whole, media_type)[0] is not None
    assert judged(whole + b"\0", media_type) == (None, "it has more than 131072 bytes")


@pytest.mark.parametrize(
    "head",
    [b"", b"\xef\xbb\xbf", b"\n", b'<?xml version="1.0"?>\n<!-- a program -->\n'],
    ids=["bare", "BOM", "line", "XML"],
)
def test_an_svg_is_told_by_how_it_begins_whatever_it_holds(head: bytes) -> None:
    """It never stands in a page, so nothing in it is looked for."""
    data = head + svg("<script>alert(1)</script>", onload="x()")
    assert judged(data, "image/svg+xml") == (PackageIcon(data, "image/svg+xml"), "")


def test_a_type_that_is_not_kept_is_named() -> None:
    assert judged(png(1, 1), "image/x-icon")[1] == (
        "its type is image/x-icon; only image/gif, image/jpeg, image/png, image/svg+xml, image/webp are kept"
    )
