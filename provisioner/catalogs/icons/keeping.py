"""Which icons of packages are kept, and why others are not. PURE."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.catalogs.icons.points import points_of
from provisioner.catalogs.icons.raster import can_be_drawn
from provisioner.catalogs.icons.svg import SVG, svg_refusal
from provisioner.catalogs.texts import line_of

MAX_ICON_BYTES = 128 * 1024
# A browser draws four bytes a point, of every icon of a list at once.
MAX_ICON_POINTS = 2048 * 2048
# Of all icons of a catalog: to judge one that has as many as it may takes a tenth of a second.
MAX_POINTS = 512 * MAX_ICON_POINTS
# Pictures that are nothing but points, each with how its bytes begin. An SVG can hold more (svg).
RASTER = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
KEPT = frozenset({*RASTER, SVG})


@dataclass(frozen=True, slots=True)
class PackageIcon:
    """A picture of its media type, which browsers can draw: points, or an SVG that is never to stand in a page."""

    data: bytes
    media_type: str


class PointsLeft:
    """How many points the icons of one catalog may still have together."""

    def __init__(self) -> None:
        self._left = MAX_POINTS

    def take(self, points: int) -> bool:
        """Whether there was room for them."""
        self._left -= points
        return self._left >= 0


def told_icon(icon: Mapping[str, Any]) -> dict[str, str]:
    """Of an icon that is too large only so much that this is seen."""
    media_type, data = icon.get("mediatype"), icon.get("base64data")
    return {
        "type": line_of(media_type.lower()) if isinstance(media_type, str) else "",
        "data": "".join(data.split())[: MAX_ICON_BYTES * 2] if isinstance(data, str) else "",
    }


def kept_icon(told: Mapping[str, str], has_room: Callable[[int], bool]) -> tuple[PackageIcon | None, str]:
    """The icon that `told_icon` found, else why it is not kept; `has_room` is asked for the points of it."""
    media_type = told["type"]
    if media_type not in KEPT:
        return None, f"its type is {media_type or 'not said'}; only {', '.join(sorted(KEPT))} are kept"
    try:
        data = base64.b64decode(told["data"], validate=True)
    except (binascii.Error, ValueError):
        return None, "it is no base64"
    if len(data) > MAX_ICON_BYTES:
        return None, f"it has more than {MAX_ICON_BYTES} bytes"
    refusal = svg_refusal(data) if media_type == SVG else _raster_refusal(data, media_type, has_room)
    return (None, refusal) if refusal else (PackageIcon(data, media_type), "")


def _raster_refusal(data: bytes, media_type: str, has_room: Callable[[int], bool]) -> str:
    """Why a picture of points is not kept; "" where it is."""
    if not data.startswith(RASTER[media_type]) or (media_type == "image/webp" and data[8:12] != b"WEBP"):
        return f"its bytes are no {media_type}"
    if points_of(data, media_type) > MAX_ICON_POINTS:
        return f"it has more than {MAX_ICON_POINTS} points"
    if not has_room(points_of(data, media_type)):
        return f"the icons of this catalog have more than {MAX_POINTS} points together"
    return "" if can_be_drawn(data, media_type) else "its bytes are damaged, so that no browser can draw it"
