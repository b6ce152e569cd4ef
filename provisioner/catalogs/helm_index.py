"""Reads the index of a Helm repository as a catalog: charts are packages, and versions follow each other by SemVer.

A chart has no publisher who says what may follow what, so any higher version may follow a lower one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any
from urllib.parse import urljoin

from provisioner.catalogs.file_based import MAX_NAME, CatalogFile, CatalogLimits
from provisioner.catalogs.presentation import PresentationShelf, chart_kubernetes
from provisioner.catalogs.values import (
    Catalog,
    CatalogBundle,
    CatalogProblem,
    Channel,
    ChannelEntry,
    Deprecation,
    Package,
)
from provisioner.errors import BundleTooLarge, InvalidManifest, InvalidRange
from provisioner.render import YamlLimits, YamlMeter, load_documents
from provisioner.versions import precedence, range_of, version_of

STABLE, EVERY = "stable", "prerelease"
CHART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", re.ASCII)
DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
MAX_URL = 1024
MAX_VERSION = 128
MAX_INDEX_BYTES = 64 * 1024 * 1024
MAX_NODES = 5_000_000


def read_helm_index(
    files: Iterable[CatalogFile],
    *,
    address: str,
    limits: CatalogLimits | None = None,
    shelf: PresentationShelf | None = None,
) -> Catalog:
    """The charts of an index.yaml that lies at `address`, which its relative URLs are joined to.

    A version that cannot be used is a problem of the catalog. Raises InvalidManifest for what is no index, or has no
    version that can be used, as an index that is just being made anew; and BundleTooLarge past a limit.
    """
    return _Index(address, limits or CatalogLimits(), shelf).read(files)


def chart_addresses(
    file: CatalogFile, *, address: str, wanted: Collection[tuple[str, str]]
) -> dict[tuple[str, str], tuple[str, str]]:
    """Where the `wanted` charts, by name and version, are by an index at `address`: the URL of each, and the SHA-256 of
    its archive, "" where the index has none. What it does not have, or says no address of, is left out.

    Raises as `read_helm_index` does for what is no index.
    """
    names = {name for name, _ in wanted}
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for name, listed in _index_entries(file):
        for entry in listed if name in names and isinstance(listed, list) else ():
            version = str(entry.get("version") or "") if isinstance(entry, dict) else ""
            spellings = {(name, spelled) for spelled in (version, f"v{version}", version.removeprefix("v"))}
            key = next((one for one in wanted if one in spellings), None)
            if key is not None and key not in found and (url := _chart_url(address, entry)):
                found[key] = url, _checksum(entry)
    return found


class _Index:
    def __init__(self, address: str, limits: CatalogLimits, shelf: PresentationShelf | None):
        self._address = address
        self._limits = limits
        self._shelf = shelf
        self._problems: list[CatalogProblem] = []
        self._versions = 0

    def read(self, files: Iterable[CatalogFile]) -> Catalog:
        packages: dict[str, Package] = {}
        for file in files:
            for name, listed in _index_entries(file):
                if not CHART.fullmatch(name) or not isinstance(listed, list):
                    self._complain(name, "is no chart with a list of versions")
                    continue
                if found := self._package(name, listed):
                    packages[name] = found
        if not packages:
            why = f"; {self._problems[0]}" if self._problems else ""
            raise InvalidManifest(f"this is no catalog: expected a chart with a version, found none{why}")
        return Catalog(dict(sorted(packages.items())), tuple(self._problems))

    def _package(self, name: str, listed: list[Any]) -> Package | None:
        bundles: dict[str, CatalogBundle] = {}
        deprecated: list[str] = []
        for entry in listed:
            self._versions += 1
            if self._versions > self._limits.max_documents:
                raise BundleTooLarge(f"{self._address}: more than {self._limits.max_documents} versions")
            bundle = self._bundle(name, entry)
            if bundle is None:
                continue
            if bundle.name in bundles:
                self._complain(name, f"version {bundle.version} is there twice; the first one counts")
                continue
            bundles[bundle.name] = bundle
            deprecated += [bundle.name] if entry.get("deprecated") is True else []
            if self._shelf:
                self._shelf.put_chart(name, bundle.name, entry)
        newest = sorted(bundles.values(), key=lambda one: one.rank, reverse=True)
        most = self._limits.max_channel_entries
        if len(newest) > most:
            self._complain(name, f"has {len(newest)} versions; the newest {most} count")
            newest = newest[:most]
        return _chart_package(name, newest, deprecated) if newest else None

    def _bundle(self, chart: str, entry: Any) -> CatalogBundle | None:
        """One version with where it is fetched; None, and a problem, where that cannot be said."""
        told = entry.get("version") if isinstance(entry, dict) else None
        if not isinstance(told, str) or len(told) > MAX_VERSION:
            self._complain(chart, "has a version that says no version")
            return None
        try:
            version = version_of(told)
        except InvalidRange as exc:
            self._complain(chart, str(exc))
            return None
        if not (url := _chart_url(self._address, entry)):
            self._complain(chart, f"version {version} has no address to fetch it from")
            return None
        name = f"{chart}-{version}"
        if len(name) > MAX_NAME:
            self._complain(chart, f"version {version} has a name of more than {MAX_NAME} characters with it")
            return None
        bundle = CatalogBundle(name, "", version, is_chart=True, kubernetes=chart_kubernetes(entry))
        if url.startswith("oci://"):
            return replace(bundle, image=url.removeprefix("oci://"))
        return replace(bundle, url=url, checksum=_checksum(entry))

    def _complain(self, chart: str, words: str) -> None:
        name = chart if CHART.fullmatch(chart) else chart[:80]
        if len(self._problems) < self._limits.max_problems:
            self._problems.append(CatalogProblem(f"chart {name!a}", words))


def _chart_url(address: str, entry: dict[str, Any]) -> str:
    """Where a version is fetched from, "" where that cannot be said."""
    urls = entry.get("urls")
    try:
        url = urljoin(address, urls[0]) if isinstance(urls, list) and urls and isinstance(urls[0], str) else ""
    except ValueError:
        return ""
    is_usable = url.startswith(("https://", "http://", "oci://")) and len(url) <= MAX_URL and url.isprintable()
    return url if is_usable else ""


def _checksum(entry: dict[str, Any]) -> str:
    digest = DIGEST.fullmatch(str(entry.get("digest") or ""))
    return f"sha256:{digest[1]}" if digest else ""


def _index_entries(file: CatalogFile) -> Iterator[tuple[str, Any]]:
    with file.open() as stream:
        text = stream.read(MAX_INDEX_BYTES + 1)
    if len(text) > MAX_INDEX_BYTES:
        raise BundleTooLarge(f"{file.name}: an index of more than {MAX_INDEX_BYTES} bytes")
    bounds = YamlLimits(max_file_bytes=MAX_INDEX_BYTES, max_characters=2 * MAX_INDEX_BYTES, max_nodes=MAX_NODES)
    documents = [document.value for document in load_documents(text, name=file.name, meter=YamlMeter(bounds))]
    index = documents[0] if len(documents) == 1 else None
    entries = index.get("entries") if isinstance(index, dict) else None
    if not isinstance(entries, dict):
        raise InvalidManifest(f"{file.name}: no index of a Helm repository: expected entries with charts")
    yield from entries.items()


def _chart_package(name: str, newest: list[CatalogBundle], deprecated: list[str]) -> Package:
    stable = [entry for entry in newest if not entry.version.prerelease]
    channels = {EVERY: _chart_channel(EVERY, newest)} | ({STABLE: _chart_channel(STABLE, stable)} if stable else {})
    # Helm takes a chart for deprecated where its latest version is.
    latest = (stable or newest)[0].name
    whole = [Deprecation("olm.package", "", "its latest version is deprecated")] if latest in deprecated else []
    each = [Deprecation("olm.bundle", chart, "its publisher marks it as deprecated") for chart in deprecated]
    bundles = {entry.name: entry for entry in newest}
    return Package(name, STABLE if stable else EVERY, "", dict(sorted(channels.items())), bundles, (*whole, *each))


def _chart_channel(name: str, newest: list[CatalogBundle]) -> Channel:
    """Each follows all that are lower; those that differ in build metadata alone do not follow each other.

    The first of them alone names the others that are next lower: a thousand builds of each of two versions would have a
    million names.
    """
    levels = [list(level) for _, level in groupby(newest, key=lambda one: precedence(one.version))]
    entries: list[ChannelEntry] = []
    for level, lower in zip(levels, [*levels[1:], []], strict=True):
        replaced, *skipped = [entry.name for entry in lower] or [""]
        for at, entry in enumerate(level):
            lower_range = range_of(f"<{entry.version}")
            entries.append(ChannelEntry(entry.name, replaced, () if at else tuple(skipped), skip_range=lower_range))
    return Channel(name, tuple(entries))
