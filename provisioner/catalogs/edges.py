"""Which bundle may follow which, by the rules of OLM v1. PURE.

An entry follows what is installed if it replaces it, skips it by name, or its `skipRange` holds its version
(operator-controller, `catalogmetadata/filter/successors.go`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from semver import Version

from provisioner.catalogs.values import CatalogBundle, Channel, ChannelEntry, Package
from provisioner.sentences import some


def successors(channel: Channel, name: str, version: Version) -> tuple[ChannelEntry, ...]:
    """The entries of a channel that may follow an installed bundle, without itself, in the channel's order."""
    return tuple(one for one in channel.entries if one.name != name and _follows(one, name, version))


def _follows(entry: ChannelEntry, name: str, version: Version) -> bool:
    return (
        entry.replaces == name or name in entry.skips or (entry.skip_range is not None and version in entry.skip_range)
    )


def heads_of(channel: Channel) -> tuple[str, ...]:
    """The entries that no other entry replaces or skips by name: where a channel ends."""
    passed = {name for one in channel.entries for name in (one.replaces, *one.skips) if name != one.name}
    return tuple(one.name for one in channel.entries if one.name not in passed)


def head_of(package: Package) -> CatalogBundle | None:
    """Where the default channel ends: of several heads the highest, and the highest bundle of all without a channel."""
    channel = package.channels.get(package.default_channel)
    names = heads_of(channel) if channel else tuple(package.bundles)
    heads = [package.bundles[name] for name in names if name in package.bundles]
    return max(heads, key=lambda one: one.rank, default=None)


def circle_of(channel: Channel) -> tuple[str, ...]:
    """Entries of a channel that replace each other in a circle, beginning with the first name; () where none do."""
    replaces = {one.name: one.replaces for one in channel.entries}
    settled: set[str] = set()
    for start in sorted(replaces):
        path: dict[str, None] = {}
        name = start
        while name in replaces and name not in settled and name not in path:
            path[name] = None
            name = replaces[name]
        if name in path:
            names = list(path)
            return tuple(names[names.index(name) :])
        settled.update(path)
    return ()


def route(package: Package, channel: Channel, installed: CatalogBundle, wanted: str) -> tuple[str, ...] | None:
    """The fewest upgrades that lead from an installed bundle to another one; None where no edges lead there."""
    came_from: dict[str, str] = {installed.name: ""}
    pending = deque([installed])
    while pending and wanted not in came_from:
        here = pending.popleft()
        for one in successors(channel, here.name, here.version):
            bundle = package.bundles.get(one.name)
            if bundle is not None and one.name not in came_from:
                came_from[one.name] = here.name
                pending.append(bundle)
    return tuple(_way_back(came_from, wanted)) if wanted in came_from else None


def _way_back(came_from: dict[str, str], wanted: str) -> list[str]:
    way = [wanted]
    while came_from[way[-1]]:
        way.append(came_from[way[-1]])
    return way[-2::-1]


def problems_of(package: Package) -> Iterator[str]:
    """What contradicts itself in a package, in words."""
    if package.default_channel and package.default_channel not in package.channels:
        yield f"its default channel {package.default_channel} does not exist"
    for channel in package.channels.values():
        missing = [one.name for one in channel.entries if one.name not in package.bundles]
        if missing:
            yield f"channel {channel.name} names bundles that do not exist: {some(missing)}"
        if circle := circle_of(channel):
            yield f"entries of channel {channel.name} replace each other in a circle: {some(circle, 5)}"
        elif len(heads := heads_of(channel)) > 1:
            yield f"channel {channel.name} has several heads: {some(heads)}"
    nowhere = sorted(package.bundles.keys() - {one.name for it in package.channels.values() for one in it.entries})
    if nowhere:
        yield f"no channel has these bundles: {some(nowhere)}"
