"""Which bundle may follow which, by the rules of OLM v1. PURE.

An entry follows what is installed if it replaces it, skips it by name, or its `skipRange` holds its version
(operator-controller, `catalogmetadata/filter/successors.go`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator

from semver import Version

from provisioner.catalogs.values import CatalogBundle, Channel, ChannelEntry, Package
from provisioner.sentences import some
from provisioner.versions import Comparison, precedence


def successors(channel: Channel, name: str, version: Version) -> tuple[ChannelEntry, ...]:
    """The entries of a channel that may follow an installed bundle, without itself, in the channel's order."""
    return tuple(
        entry
        for entry in channel.entries
        if entry.name != name
        and (
            entry.replaces == name
            or name in entry.skips
            or (entry.skip_range is not None and version in entry.skip_range)
        )
    )


def list_heads(channel: Channel) -> tuple[str, ...]:
    """The entries that no other entry replaces or skips by name: where a channel ends."""
    passed = {name for entry in channel.entries for name in (entry.replaces, *entry.skips) if name != entry.name}
    return tuple(entry.name for entry in channel.entries if entry.name not in passed)


def find_head(package: Package) -> CatalogBundle | None:
    """Where the default channel ends: of several heads the highest, and the highest bundle of all without a channel."""
    channel = package.channels.get(package.default_channel)
    names = list_heads(channel) if channel else tuple(package.bundles)
    heads = [package.bundles[name] for name in names if name in package.bundles]
    return max(heads, key=lambda one: one.rank, default=None)


def find_circle(channel: Channel) -> tuple[str, ...]:
    """Entries of a channel that replace each other in a circle, beginning with the first name; () where none do."""
    replaces = {entry.name: entry.replaces for entry in channel.entries}
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


def find_route(package: Package, channel: Channel, installed: CatalogBundle, wanted: str) -> tuple[str, ...] | None:
    """The fewest upgrades that lead from an installed bundle to another one; None where no edges lead there."""
    entries: dict[str, list[ChannelEntry]] = {}
    for entry in channel.entries:
        if entry.name in package.bundles:
            entries.setdefault(entry.name, []).append(entry)
    waiting = _Waiting([installed, *(package.bundles[name] for name in entries if name != installed.name)])
    leads_to: dict[str, str] = {}
    # From the end: what an entry follows is a piece of the versions in their order, which is left out once it was seen.
    pending = deque(waiting.take(wanted))
    while pending and installed.name not in waiting.taken:
        here = pending.popleft()
        for entry in entries.get(here, ()):
            before = list(waiting.take_before(entry))
            leads_to.update(dict.fromkeys(before, here))
            pending.extend(before)
    if installed.name not in waiting.taken:
        return None
    route = [installed.name]
    while route[-1] in leads_to:
        route.append(leads_to[route[-1]])
    return tuple(route[1:])


class _Waiting:
    """Bundles in the order of their versions, each of which is taken once: a package may have many thousands."""

    def __init__(self, bundles: Iterable[CatalogBundle]):
        found = sorted((precedence(bundle.version), bundle.name) for bundle in bundles)
        self._versions = [version for version, _ in found]
        self._names = [name for _, name in found]
        self._places = {name: at for at, name in enumerate(self._names)}
        self._next = list(range(len(found) + 1))
        self.taken: set[str] = set()

    def take(self, *names: str) -> Iterator[str]:
        """Those of these that are left."""
        for name in names:
            at = self._places.get(name)
            if at is not None and name not in self.taken:
                yield self._take(at)

    def take_before(self, entry: ChannelEntry) -> Iterator[str]:
        """What is left of what an entry follows."""
        yield from self.take(entry.replaces, *entry.skips)
        for comparisons in entry.skip_range.alternatives if entry.skip_range else ():
            for first, end in self._pieces(comparisons):
                at = self._left(first)
                while at < end:
                    yield self._take(at)
                    at = self._left(at)

    def _take(self, at: int) -> str:
        self._next[at] = at + 1
        self.taken.add(self._names[at])
        return self._names[at]

    def _left(self, at: int) -> int:
        """The first place from here on that was not taken."""
        while self._next[at] != at:
            self._next[at] = self._next[self._next[at]]
            at = self._next[at]
        return at

    def _pieces(self, comparisons: Iterable[Comparison]) -> Iterator[tuple[int, int]]:
        """The first place and the end of each piece for which all of these hold."""
        start, stop, gaps = 0, len(self._names), []
        for comparison in comparisons:
            version = precedence(comparison.version)
            low, high = bisect_left(self._versions, version), bisect_right(self._versions, version)
            if comparison.operator == "!=":
                gaps.append((low, high))
            if comparison.operator in ("=", ">=", ">"):
                start = max(start, high if comparison.operator == ">" else low)
            if comparison.operator in ("=", "<=", "<"):
                stop = min(stop, low if comparison.operator == "<" else high)
        for low, high in sorted(gaps):
            yield start, min(low, stop)
            start = max(start, high)
        yield start, stop


def list_contradictions(package: Package) -> Iterator[str]:
    """What contradicts itself in a package, in words, without what follows from what of it cannot be used."""
    there = package.bundles.keys() | package.unusable_bundles.keys()
    known = package.channels.keys() | package.unusable_channels.keys()
    if package.default_channel and package.default_channel not in known:
        yield f"its default channel {package.default_channel} does not exist"
    for channel in package.channels.values():
        missing = [entry.name for entry in channel.entries if entry.name not in there]
        if missing:
            yield f"channel {channel.name} names bundles that do not exist: {some(missing)}"
        if circle := find_circle(channel):
            yield f"entries of channel {channel.name} replace each other in a circle: {some(circle, 5)}"
        elif len(heads := list_heads(channel)) > 1:
            yield f"channel {channel.name} has several heads: {some(heads)}"
    by_version = defaultdict[tuple[str, str], list[str]](list)
    for bundle in package.bundles.values():
        by_version[str(bundle.version), bundle.release].append(bundle.name)
    if twins := sorted(name for names in by_version.values() if len(names) > 1 for name in names):
        yield f"several bundles have the same version: {some(twins)}"
    nowhere = sorted(
        package.bundles.keys() - {entry.name for channel in package.channels.values() for entry in channel.entries}
    )
    if nowhere and not package.unusable_channels:
        yield f"no channel has these bundles: {some(nowhere)}"
