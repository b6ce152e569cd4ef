"""How a package presents itself: its words and icon, as its publisher wrote them, none of it safe to show as it is.

They are large beside what choosing a version needs, so they wait in a file until the catalog is read to its end: only
then is it known which bundle speaks for the package.
"""

from __future__ import annotations

import base64
import binascii
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from provisioner.catalogs.edges import head_of
from provisioner.catalogs.facts import BundleFacts, facts_of_chart, facts_of_operator, packed_facts, unpacked_facts
from provisioner.catalogs.icon_bytes import can_be_drawn
from provisioner.catalogs.icon_points import points_of
from provisioner.catalogs.texts import MAX_LINE, cut, line_of
from provisioner.catalogs.values import Package

MAX_SUMMARY = 1_000
MAX_DESCRIPTION = 64 * 1024
MAX_ICON_BYTES = 128 * 1024
# A browser draws four bytes a point, of every icon of a list at once.
MAX_ICON_POINTS = 2048 * 2048
# Pictures that are nothing but points, each with how its bytes begin. An SVG can hold scripts and links.
RASTER = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


@dataclass(frozen=True, slots=True)
class PackageIcon:
    """A raster picture of its media type, which browsers can draw."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class PackagePresentation:
    """What a package says of itself. `no_icon`: why the icon that it brings is not kept, "" where it brings none."""

    display_name: str = ""
    summary: str = ""
    description: str = ""
    provider: str = ""
    icon: PackageIcon | None = None
    no_icon: str = ""
    facts: BundleFacts = field(default_factory=BundleFacts)


class PresentationShelf:
    """Keeps what packages and bundles say of themselves in a file of its own while a catalog is read."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        self._places: dict[tuple[str, str], tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _exc: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._file.close()

    def put_package(self, name: str, document: Mapping[str, Any]) -> None:
        """Keep the icon of an `olm.package`."""
        icon = document.get("icon")
        if isinstance(icon, dict):
            self._put((name, ""), {"icon": _told(icon)})

    def put_bundle(self, package: str, name: str, told: Mapping[str, Any]) -> None:
        """Keep the words of an `olm.bundle`, as `operator_of` has them."""
        if told:
            self._put((package, name), _words(told, facts_of_operator(told)))

    def put_chart(self, package: str, name: str, entry: Mapping[str, Any]) -> None:
        """Keep the words of a version of a chart."""
        maintainers = entry.get("maintainers")
        first = maintainers[0] if isinstance(maintainers, list) and maintainers else {}
        words = {"provider": first, "annotations": {"description": entry.get("description")}}
        self._put((package, name), _words(words, facts_of_chart(entry)))

    def of(self, package: Package) -> PackagePresentation:
        """As the head of the package's default channel has it; what that does not say, the package says."""
        head = head_of(package)
        words = self._get((package.name, head.name)) if head else {}
        icon, no_icon = _icon(self._get((package.name, "")).get("icon"))
        return PackagePresentation(
            display_name=words.get("name") or "",
            summary=words.get("summary") or _first_line(package.description),
            description=words.get("description") or package.description.replace("\0", "\ufffd"),
            provider=words.get("provider") or "",
            icon=icon,
            no_icon=no_icon,
            facts=unpacked_facts(words.get("facts") or {}),
        )

    def _put(self, key: tuple[str, str], record: Mapping[str, Any]) -> None:
        data = json.dumps(record).encode()
        self._places[key] = (self._file.seek(0, 2), len(data))
        self._file.write(data)

    def _get(self, key: tuple[str, str]) -> dict[str, Any]:
        if key not in self._places:
            return {}
        offset, size = self._places[key]
        self._file.seek(offset)
        found: dict[str, Any] = json.loads(self._file.read(size))
        return found


def _told(icon: Mapping[str, Any]) -> dict[str, str]:
    """Of an icon that is too large only so much that this is seen."""
    media_type, data = icon.get("mediatype"), icon.get("base64data")
    return {
        "type": media_type.strip().lower()[:MAX_LINE] if isinstance(media_type, str) else "",
        "data": "".join(data.split())[: MAX_ICON_BYTES * 2] if isinstance(data, str) else "",
    }


def _words(value: Mapping[str, Any], facts: BundleFacts) -> dict[str, Any]:
    annotations, provider = value.get("annotations"), value.get("provider")
    return {
        "name": line_of(value.get("displayName")),
        "summary": line_of(annotations.get("description") if isinstance(annotations, dict) else "", MAX_SUMMARY),
        "description": cut(value.get("description"), MAX_DESCRIPTION),
        "provider": line_of(provider.get("name") if isinstance(provider, dict) else ""),
        "facts": packed_facts(facts),
    }


def _first_line(text: str) -> str:
    return line_of(next((one.strip("# ") for one in text.splitlines() if one.strip("# ")), ""), MAX_SUMMARY)


def _icon(told: Mapping[str, str] | None) -> tuple[PackageIcon | None, str]:
    if not told or not told["data"]:
        return None, ""
    media_type, beginnings = told["type"], RASTER.get(told["type"], ())
    if not beginnings:
        return None, f"its type is {media_type or 'not said'}; only {', '.join(sorted(RASTER))} are kept"
    try:
        data = base64.b64decode(told["data"], validate=True)
    except (binascii.Error, ValueError):
        return None, "it is no base64"
    if len(data) > MAX_ICON_BYTES:
        return None, f"it has more than {MAX_ICON_BYTES} bytes"
    if not data.startswith(beginnings) or (media_type == "image/webp" and data[8:12] != b"WEBP"):
        return None, f"its bytes are no {media_type}"
    if points_of(data, media_type) > MAX_ICON_POINTS:
        return None, f"it has more than {MAX_ICON_POINTS} points"
    if not can_be_drawn(data, media_type):
        return None, "its bytes are damaged, so that no browser can draw it"
    return PackageIcon(data, media_type), ""
