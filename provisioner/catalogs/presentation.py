"""How a package presents itself: its words and icon, as its publisher wrote them, none of it safe to show as it is.

They are large beside what choosing a version needs, so they wait in a file until the catalog is read to its end: only
then is it known which bundle speaks for the package.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import islice
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from provisioner.catalogs.edges import find_head
from provisioner.catalogs.values import Package
from provisioner.json_values import mapping, maps

MAX_LINE = 253


def cut_text(value: object, most: int) -> str:
    """A text of at most this many characters, without the NUL that no database keeps; "" where it is no text."""
    text = value.replace("\0", "\ufffd") if isinstance(value, str) else ""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def cut_line(value: object, most: int = MAX_LINE) -> str:
    """The same on one line."""
    return cut_text(" ".join(value[: most * 4].split()) if isinstance(value, str) else "", most)


MOST_LINKS = 20
MOST_MAINTAINERS = 20
MOST_INSTALL_MODES = 8
MOST_KEYWORDS = 30
MAX_URL = 1024
MAX_WORD = 63
# In a chart's index, by the name that a link gets. Many charts say the same in both.
CHART_LINKS = (("home", "Home"), ("sources", "Source"))


@dataclass(frozen=True, slots=True)
class BundleLink:
    """A link that its publisher gives. Only http and https are kept, and no address that holds a user's name."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Maintainer:
    """Who maintains it; either may be ""."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class BundleFacts:
    """Each "" or empty where the bundle does not say it.

    `kubernetes` is the range of Kubernetes versions that it is for, as its publisher writes it; `install_modes` are
    those of OLM that it supports, such as AllNamespaces; `capability` is how much the operator does, such as Deep
    Insights; `app_version` is what a chart installs; `keywords` are words by which people may look for it.
    """

    kubernetes: str = ""
    install_modes: tuple[str, ...] = ()
    capability: str = ""
    maturity: str = ""
    app_version: str = ""
    keywords: tuple[str, ...] = ()
    links: tuple[BundleLink, ...] = ()
    maintainers: tuple[Maintainer, ...] = ()


def operator_facts(value: Mapping[str, Any]) -> BundleFacts:
    """Those of the property olm.csv.metadata, which has the fields of a ClusterServiceVersion's spec."""
    annotations, provider = mapping(value.get("annotations")), mapping(value.get("provider"))
    links = [(entry.get("name"), entry.get("url")) for entry in maps(value.get("links"))]
    return BundleFacts(
        kubernetes=operator_kubernetes(value),
        install_modes=tuple(islice(_list_install_modes(value.get("installModes")), MOST_INSTALL_MODES)),
        capability=cut_line(annotations.get("capabilities"), MAX_WORD),
        maturity=cut_line(value.get("maturity"), MAX_WORD),
        keywords=_unique_keywords(value.get("keywords")),
        links=_safe_links([*links, (provider.get("name"), provider.get("url"))]),
        maintainers=_list_maintainers(value.get("maintainers")),
    )


def chart_facts(entry: Mapping[str, Any]) -> BundleFacts:
    """Those of a version in the index of a Helm repository."""
    links = [
        (name, url)
        for key, name in CHART_LINKS
        for url in (entry[key] if isinstance(entry.get(key), list) else [entry.get(key)])
    ]
    return BundleFacts(
        kubernetes=chart_kubernetes(entry),
        app_version=cut_line(entry.get("appVersion"), MAX_WORD),
        keywords=_unique_keywords(entry.get("keywords")),
        links=_safe_links(links),
        maintainers=_list_maintainers(entry.get("maintainers")),
    )


def operator_kubernetes(value: Mapping[str, Any]) -> str:
    """The range of Kubernetes versions that an operator is for; "" where it does not say it."""
    least = cut_line(value.get("minKubeVersion"), MAX_WORD)
    return f">={least}" if least else ""


def chart_kubernetes(entry: Mapping[str, Any]) -> str:
    """The same of a chart, which says a range."""
    return cut_line(entry.get("kubeVersion"))


def pack_facts(facts: BundleFacts) -> dict[str, Any]:
    """The document of `unpacked_facts`, without what is not said."""
    return {name: value for name, value in asdict(facts).items() if value}


_FIELDS = {one.name for one in fields(BundleFacts)}


def unpack_facts(document: Mapping[str, Any]) -> BundleFacts:
    """Of an edition that was stored before there were facts, the document is empty; a later version may know more."""
    said = {name: document[name] for name in document.keys() & _FIELDS}
    said["install_modes"] = tuple(said.get("install_modes", ()))
    said["keywords"] = tuple(said.get("keywords", ()))
    said["links"] = tuple(BundleLink(**link) for link in said.get("links", ()))
    said["maintainers"] = tuple(Maintainer(**maintainer) for maintainer in said.get("maintainers", ()))
    return BundleFacts(**said)


def _list_install_modes(listed: object) -> Iterator[str]:
    for entry in maps(listed):
        name = cut_line(entry.get("type"), MAX_WORD)
        if name and entry.get("supported") is True:
            yield name


def _unique_keywords(listed: object) -> tuple[str, ...]:
    """Each once, in whatever letters it is written, in the publisher's order."""
    kept: dict[str, str] = {}
    for one in listed if isinstance(listed, list) else ():
        if word := cut_line(_strip_hidden(one), MAX_WORD):
            kept.setdefault(word.lower(), word)
        if len(kept) == MOST_KEYWORDS:
            break
    return tuple(kept.values())


def _strip_hidden(value: object) -> str:
    """The text without control, bidi and zero-width characters: nobody types them into a search."""
    text = value[: MAX_WORD * 4] if isinstance(value, str) else ""
    return "".join(one for one in text if one.isprintable() or one.isspace())


def _safe_links(told: Iterable[tuple[object, object]]) -> tuple[BundleLink, ...]:
    """Each address once, in the publisher's order."""
    kept: dict[str, BundleLink] = {}
    for name, url in told:
        if isinstance(url, str) and _is_safe_url(url := url.strip()):
            kept.setdefault(url, BundleLink(cut_line(name) or url, url))
    return tuple(islice(kept.values(), MOST_LINKS))


def _is_safe_url(url: str) -> bool:
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable() or set(url) & set(' "<>\\^`{|}'):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def _list_maintainers(listed: object) -> tuple[Maintainer, ...]:
    told = (Maintainer(cut_line(entry.get("name")), cut_line(entry.get("email"))) for entry in maps(listed))
    return tuple(
        islice((fromkey for fromkey in dict.fromkeys(told) if fromkey.name or fromkey.email), MOST_MAINTAINERS)
    )


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


def read_icon(icon: Mapping[str, Any]) -> dict[str, str]:
    """The type and data of a package's icon; of one that is too large only so much that this is seen."""
    media_type, data = icon.get("mediatype"), icon.get("base64data")
    return {
        "type": cut_line(media_type.lower()) if isinstance(media_type, str) else "",
        "data": "".join(data.split())[: MAX_ICON_BYTES * 2] if isinstance(data, str) else "",
    }


def check_icon(told: Mapping[str, str]) -> tuple[PackageIcon | None, str]:
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


MAX_SUMMARY = 1_000
MAX_DESCRIPTION = 64 * 1024


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
            self._put((name, ""), {"icon": read_icon(icon)})

    def put_bundle(self, package: str, name: str, told: Mapping[str, Any]) -> None:
        """Keep the words of an `olm.bundle`, as `operator_of` has them."""
        if told:
            self._put((package, name), _presentation_record(told, operator_facts(told)))

    def put_chart(self, package: str, name: str, entry: Mapping[str, Any]) -> None:
        """Keep the words of a version of a chart."""
        maintainers = entry.get("maintainers")
        first = maintainers[0] if isinstance(maintainers, list) and maintainers else {}
        words = {"provider": first, "annotations": {"description": entry.get("description")}}
        self._put((package, name), _presentation_record(words, chart_facts(entry)))

    def of(self, package: Package) -> PackagePresentation:
        """As the head of the package's default channel has it; what that does not say, the package says."""
        head = find_head(package)
        words = self._get((package.name, head.name)) if head else {}
        told = self._get((package.name, "")).get("icon")
        icon, no_icon = check_icon(told) if told and told["data"] else (None, "")
        lines = (line.strip("# ") for line in package.description.splitlines())
        first_line = next(filter(None, lines), "")
        return PackagePresentation(
            display_name=words.get("name") or "",
            summary=words.get("summary") or cut_line(first_line, MAX_SUMMARY),
            description=words.get("description") or package.description.replace("\0", "\ufffd"),
            provider=words.get("provider") or "",
            icon=icon,
            no_icon=no_icon,
            facts=unpack_facts(words.get("facts") or {}),
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


def _presentation_record(value: Mapping[str, Any], facts: BundleFacts) -> dict[str, Any]:
    annotations, provider = value.get("annotations"), value.get("provider")
    return {
        "name": cut_line(value.get("displayName")),
        "summary": cut_line(annotations.get("description") if isinstance(annotations, dict) else "", MAX_SUMMARY),
        "description": cut_text(value.get("description"), MAX_DESCRIPTION),
        "provider": cut_line(provider.get("name") if isinstance(provider, dict) else ""),
        "facts": pack_facts(facts),
    }
