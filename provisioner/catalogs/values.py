"""What a catalog says, without the manifests and icons that its bundles carry along."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from semver import Version

from provisioner.escaping import visible
from provisioner.render.registry.needs import Need, UnjudgedNeed, need_of_property
from provisioner.versions import VersionRange, is_release, range_of, release_order

# The number of the rules by which catalogs and indexes are read into these values and into what packages say of
# themselves. Raise it with every change of those rules: what was read by a lower number is read again.
READING = 3


@dataclass(frozen=True, slots=True)
class CatalogBundle:
    """One version of a package (`olm.bundle`, or a chart). `needs` are constraints that only OLM v0 resolves,
    by their types, `needed` the same in words, and `requires` what they ask for: each the type and the value as JSON.

    It is fetched as an `image`, or as the archive at `url`, which hashes to `checksum` where the catalog says so. In
    OLM, build metadata is the release of a version; in that of a chart (`is_chart`) it has no order. `kubernetes` is
    the range of Kubernetes versions that it is for, in its publisher's words; "" where that is not said.
    """

    name: str
    image: str
    version: Version
    release: str = ""
    apis: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    url: str = ""
    checksum: str = ""
    is_chart: bool = False
    needed: tuple[str, ...] = ()
    kubernetes: str = ""
    requires: tuple[str, ...] = ()

    @property
    def other_needs(self) -> list[Need]:
        """What it needs beside itself, as it says."""
        if self.needs and not self.requires:  # of an edition that was stored before it was kept
            why = "its catalog was read before such needs were kept; it is read again"
            return [UnjudgedNeed(visible(words), why) for words in self.needed]
        return [need_of_property(*json.loads(text)) for text in self.requires]

    @property
    def content(self) -> str:
        """What the version stands for, as exactly as the catalog says it; "" where it says nothing."""
        return self.image or self.checksum or self.url

    @property
    def can_be_pinned(self) -> bool:
        """Whether what is fetched can be held to a digest, without which nothing is deployed."""
        return bool(self.image or self.checksum)

    @property
    def rank(self) -> tuple[Version, tuple[tuple[int, int, str], ...]]:
        """By which bundles of one package are ordered: the version, then the release of the same version."""
        release = self.release or ("" if self.is_chart else self.version.build or "")
        return self.version, release_order(release)

    @property
    def pin(self) -> str:
        """The version by which a range names this one alone among the releases of the same version."""
        can_name = not self.version.build and is_release(self.release)
        return f"{self.version}+{self.release}" if can_name else str(self.version)


@dataclass(frozen=True, slots=True)
class ChannelEntry:
    """One bundle in a channel, and the installed bundles that it may follow."""

    name: str
    replaces: str = ""
    skips: tuple[str, ...] = ()
    skip_range: VersionRange | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    """A line of versions (`olm.channel`)."""

    name: str
    entries: tuple[ChannelEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Deprecation:
    """What its publisher no longer supports: the whole package, a channel or a bundle. `name` is "" for the package."""

    schema: str
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Package:
    """A package (`olm.package`) with its channels and bundles, each by name.

    Those that the catalog has and that cannot be used are in `unusable_channels` and `unusable_bundles`, with why.
    """

    name: str
    default_channel: str = ""
    description: str = ""
    channels: Mapping[str, Channel] = field(default_factory=dict)
    bundles: Mapping[str, CatalogBundle] = field(default_factory=dict)
    deprecations: tuple[Deprecation, ...] = ()
    unusable_channels: Mapping[str, str] = field(default_factory=dict)
    unusable_bundles: Mapping[str, str] = field(default_factory=dict)
    _deprecated: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def is_chart(self) -> bool:
        """Whether its versions are those of a chart, which follow each other by their order and not by edges."""
        return any(bundle.is_chart for bundle in self.bundles.values())

    def deprecation_of(self, bundle: str) -> str | None:
        """Why a bundle is deprecated; None where it is not. A package may have thousands of both."""
        if not self._deprecated:
            for deprecation in self.deprecations:
                if deprecation.schema == "olm.bundle":
                    self._deprecated.setdefault(deprecation.name, deprecation.message)
        return self._deprecated.get(bundle)


@dataclass(frozen=True, slots=True)
class CatalogProblem:
    """Something in a catalog that cannot be used, and where it stands."""

    where: str
    words: str

    def __str__(self) -> str:
        return f"{self.where}: {self.words}"


def is_about(where: str, package: str) -> bool:
    """Whether a problem at this place is about a package or chart of this name."""
    return where in (f"package {package}", f"chart {package!a}") or where.startswith(f"package {package}, ")


@dataclass(frozen=True, slots=True)
class Catalog:
    """All packages of a catalog by name, and what is wrong in it."""

    packages: Mapping[str, Package]
    problems: tuple[CatalogProblem, ...] = ()


def pack_package(package: Package) -> dict[str, Any]:
    """The document of `unpacked_package`. Lists, not mappings, as a package has thousands of entries."""
    return {
        "name": package.name,
        "defaultChannel": package.default_channel,
        "description": package.description,
        "channels": [
            [
                channel.name,
                [
                    [entry.name, entry.replaces, entry.skips, entry.skip_range.text if entry.skip_range else ""]
                    for entry in channel.entries
                ],
            ]
            for channel in package.channels.values()
        ],
        "bundles": [
            [
                *(bundle.name, bundle.image, str(bundle.version), bundle.release, bundle.apis, bundle.needs),
                *(bundle.url, bundle.checksum, bundle.is_chart, bundle.needed, bundle.kubernetes),
                bundle.requires,
            ]
            for bundle in package.bundles.values()
        ],
        "deprecations": [
            [deprecation.schema, deprecation.name, deprecation.message] for deprecation in package.deprecations
        ],
        "unusableChannels": dict(package.unusable_channels),
        "unusableBundles": dict(package.unusable_bundles),
    }


def unpack_package(document: Mapping[str, Any]) -> Package:
    channels = {
        channel: Channel(
            channel,
            tuple(
                ChannelEntry(name, replaces, tuple(skips), range_of(skip_range) if skip_range else None)
                for name, replaces, skips, skip_range in entries
            ),
        )
        for channel, entries in document["channels"]
    }
    return Package(
        document["name"],
        document["defaultChannel"],
        document["description"],
        channels,
        {bundle[0]: _unpack_bundle(bundle) for bundle in document["bundles"]},
        tuple(Deprecation(*deprecation) for deprecation in document["deprecations"]),
        document.get("unusableChannels", {}),
        document.get("unusableBundles", {}),
    )


def _unpack_bundle(parts: list[Any]) -> CatalogBundle:
    # An edition that was stored before there was more ends earlier.
    name, image, version, release, apis, needs, url, checksum, *rest = parts
    since: list[Any] = [False, needs, "", ()]
    is_chart, needed, kubernetes, requires = [*rest, *since[len(rest) :]]
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
        requires=tuple(requires),
    )


_WRITTEN = {"~": "~0", "/": "~1"}
_MEANT = {"~0": "~", "~1": "/", "~2": "."}
# As in a JSON Pointer (RFC 6901): OLM refuses only an empty name, so a name can hold slashes, which servers take for
# the end of the part even where they are percent-encoded, or be one or two dots, which browsers resolve (~2).
_ESCAPE = re.compile("~[012]")
_FOLDERS = (".", "..")


def package_to_address(name: str) -> str:
    """What stands for the package in an address, before it is percent-encoded."""
    if name in _FOLDERS:
        return "~2" * len(name)
    return "".join(_WRITTEN.get(letter, letter) for letter in name)


def package_of_address(part: str) -> str:
    """The name of the package that such a part stands for; a tilde that begins no escape is itself."""
    return _ESCAPE.sub(lambda found: _MEANT[found[0]], part)
