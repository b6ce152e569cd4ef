"""A package as a JSON document, to be stored whole and read back whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semver import Version

from provisioner.catalogs.values import CatalogBundle, Channel, ChannelEntry, Deprecation, Package
from provisioner.versions import range_of


def packed_package(package: Package) -> dict[str, Any]:
    """The document of `unpacked_package`. Lists, not mappings, as a package has thousands of entries."""
    return {
        "name": package.name,
        "defaultChannel": package.default_channel,
        "description": package.description,
        "channels": [[one.name, [_packed_entry(it) for it in one.entries]] for one in package.channels.values()],
        "bundles": [_packed_bundle(one) for one in package.bundles.values()],
        "deprecations": [[one.schema, one.name, one.message] for one in package.deprecations],
        "unusableChannels": dict(package.unusable_channels),
        "unusableBundles": dict(package.unusable_bundles),
    }


def _packed_entry(one: ChannelEntry) -> list[Any]:
    return [one.name, one.replaces, one.skips, one.skip_range.text if one.skip_range else ""]


def _packed_bundle(one: CatalogBundle) -> list[Any]:
    named = [one.name, one.image, str(one.version), one.release, one.apis, one.needs]
    return [*named, one.url, one.checksum, one.is_chart, one.needed, one.kubernetes]


def unpacked_package(document: Mapping[str, Any]) -> Package:
    return Package(
        document["name"],
        document["defaultChannel"],
        document["description"],
        {name: Channel(name, tuple(map(_entry, entries))) for name, entries in document["channels"]},
        {one[0]: _bundle(one) for one in document["bundles"]},
        tuple(Deprecation(*one) for one in document["deprecations"]),
        document.get("unusableChannels", {}),
        document.get("unusableBundles", {}),
    )


def _entry(parts: list[Any]) -> ChannelEntry:
    name, replaces, skips, skip_range = parts
    return ChannelEntry(name, replaces, tuple(skips), range_of(skip_range) if skip_range else None)


def _bundle(parts: list[Any]) -> CatalogBundle:
    # An edition that was stored before there was more ends earlier.
    name, image, version, release, apis, needs, url, checksum, *rest = parts
    since: list[Any] = [False, needs, ""]
    is_chart, needed, kubernetes = [*rest, *since[len(rest) :]]
    return CatalogBundle(
        name,
        image,
        Version.parse(version),
        release,
        tuple(apis),
        tuple(needs),
        url,
        checksum,
        is_chart=is_chart,
        needed=tuple(needed),
        kubernetes=kubernetes,
    )
