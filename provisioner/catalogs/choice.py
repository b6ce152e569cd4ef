"""Which bundle a wish takes, among several catalogs (operator-controller, `resolve/catalog.go`). PURE.

What is not deprecated comes first, then the higher version; of the releases of one version those that no other one
skips, then the higher release. Each catalog offers its best one so. Of several catalogs those whose best one is not
deprecated come first, then the one of the highest priority. Where several have that, nothing is chosen: which one is
asked would be chance.

A pre-release of a chart is taken where the wish names a channel or versions that hold it, as Helm does, or where one
runs already. Those of operators stand in the channels that their publishers mean for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from semver import Version

from provisioner.catalogs.edges import find_route, successors
from provisioner.catalogs.values import CatalogBundle, Channel, Package
from provisioner.sentences import some
from provisioner.values import ChosenBundle, UpgradeStep
from provisioner.versions import VersionRange, constraint_of

_EVERY_VERSION = constraint_of(">=0-0")


class UpgradeEdges(StrEnum):
    """Whether only the edges of the catalog are followed, or any version may follow."""

    CATALOG_PROVIDED = "CatalogProvided"
    SELF_CERTIFIED = "SelfCertified"


@dataclass(frozen=True, slots=True)
class PackageWish:
    """What is wanted: a package, of these channels (all where none is named), within a range of versions."""

    package: str
    channels: tuple[str, ...] = ()
    versions: VersionRange | None = None
    edges: UpgradeEdges = UpgradeEdges.CATALOG_PROVIDED


@dataclass(frozen=True, slots=True)
class Installed:
    """The bundle that runs."""

    name: str
    version: Version
    release: str = ""


@dataclass(frozen=True, slots=True)
class CatalogOffer:
    """What one catalog has of the package; `package` is None where it has none of that name."""

    catalog: str
    package: Package | None
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """The bundle to take, from where, and what its publisher says against it. `channels` are those that lead to it.

    `passed_over` are the other catalogs that have what is wanted, in the order in which they would be taken.
    """

    catalog: str
    bundle: CatalogBundle
    channels: tuple[str, ...]
    deprecation: str | None = None
    priority: int = 0
    passed_over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoChoice:
    """Why nothing is chosen: a code, and words."""

    code: str
    words: str


def choose(wish: PackageWish, offers: Iterable[CatalogOffer], installed: Installed | None = None) -> Choice | NoChoice:
    """The one bundle that a wish takes now, which may be the installed one."""
    having = [(offer, offer.package) for offer in offers if offer.package is not None]
    if not having:
        return NoChoice("no-package", f"no catalog has the package {wish.package}")
    found: list[Choice] = []
    for offer, package in having:
        channels = _list_candidates(wish, package, installed)
        bundles = [package.bundles[name] for name in channels]
        if not bundles:
            continue
        said, order = package.deprecation_of, _choice_order(wish, package, channels)
        # A deprecated bundle only where nothing else is left.
        best = max(bundles, key=lambda bundle: (said(bundle.name) is None, order(bundle)))
        found.append(Choice(offer.catalog, best, tuple(sorted(channels[best.name])), said(best.name), offer.priority))
    if not found:
        return NoChoice("no-bundle", _explain_none(wish, [package for _, package in having], installed))
    found.sort(key=lambda choice: (_catalog_rank(choice), choice.catalog))
    first, *others = found
    equals = [choice.catalog for choice in found if _catalog_rank(choice) == _catalog_rank(first)]
    if len(equals) > 1:
        words = f"several catalogs of priority {first.priority} have the package {wish.package}: {some(equals, 10)}"
        return NoChoice("ambiguous", f"{words}; name one of them, or give one of them a higher spec.priority")
    return replace(first, passed_over=tuple(map(_describe_place, others)))


def _catalog_rank(choice: Choice) -> tuple[bool, int]:
    """By which catalogs are ordered, the first one first."""
    return choice.deprecation is not None, -choice.priority


def _describe_place(choice: Choice) -> str:
    why = ", deprecated there" if choice.deprecation is not None else ""
    return f"{choice.catalog} (priority {choice.priority}{why})"


def explain_catalog(bundle: ChosenBundle) -> str:
    """Why it is taken from this catalog, in words; "" where the source names the catalog."""
    if not bundle.is_selected:
        return ""
    others = f", before {some(bundle.passed_over, 5)}" if bundle.passed_over else "; no other selected catalog has it"
    return f"priority {bundle.priority}{others}"


def _list_candidates(wish: PackageWish, package: Package, installed: Installed | None) -> dict[str, list[str]]:
    """The names of the bundles that may be taken, each with the channels that lead to it."""
    found: dict[str, list[str]] = {}
    for channel in _wished_channels(wish, package):
        names = [entry.name for entry in channel.entries]
        if installed is not None and wish.edges is UpgradeEdges.CATALOG_PROVIDED:
            following = {entry.name for entry in successors(channel, installed.name, installed.version)}
            names = [name for name in names if name in following or _is_installed(package, name, installed)]
        for name in names:
            bundle = package.bundles.get(name)
            if bundle is not None and _is_in_wish(wish, bundle, installed.version if installed else None):
                found.setdefault(name, []).append(channel.name)
    return found


def _is_in_wish(wish: PackageWish, bundle: CatalogBundle, before: Version | None) -> bool:
    """Whether the wish holds this version where the other one was taken before."""
    if wish.versions is not None:
        return wish.versions.takes(bundle.version, bundle.release)
    if wish.channels or not (bundle.is_chart and bundle.version.prerelease):
        return True
    return (
        before is not None
        and bool(before.prerelease)
        and before.finalize_version() == bundle.version.finalize_version()
    )


def _choice_order(
    wish: PackageWish, package: Package, names: Iterable[str]
) -> Callable[[CatalogBundle], tuple[Version, bool, object]]:
    """By which the bundles of these names are taken, the last one first."""
    known = {name: package.bundles[name] for name in names}
    passed = {
        skipped
        for channel in _wished_channels(wish, package)
        for entry in channel.entries
        if (by := known.get(entry.name)) is not None
        for skipped in (entry.replaces, *entry.skips)
        if skipped in known and skipped != by.name and known[skipped].version == by.version
    }

    def place(bundle: CatalogBundle) -> tuple[Version, bool, object]:
        version, release = bundle.rank
        return version, bundle.name not in passed, release

    return place


def _wished_channels(wish: PackageWish, package: Package) -> list[Channel]:
    return [channel for channel in package.channels.values() if not wish.channels or channel.name in wish.channels]


def _is_installed(package: Package, name: str, installed: Installed) -> bool:
    """Whether the bundle of this name runs. It may go on under another name, but not beside the one that it had: two of
    one version are two contents, and the second one follows only by an edge.

    Versions compare as equal whatever their build metadata is, so their words are compared.
    """
    bundle = package.bundles.get(name)
    if bundle is None or (name != installed.name and installed.name in package.bundles):
        return False
    return (str(bundle.version), bundle.release) == (str(installed.version), installed.release)


def _explain_none(wish: PackageWish, packages: Sequence[Package], installed: Installed | None) -> str:
    known = sorted({name for package in packages for name in package.channels})
    absent = [name for name in wish.channels if name not in known]
    if absent and len(absent) == len(wish.channels):
        unusable = [why for package in packages for name in absent if (why := package.unusable_channels.get(name))]
        if unusable:
            return unusable[0]
        return f"package {wish.package} has no channel {some(absent)}; it has {some(known, 10) or 'none'}"
    is_chart = any(package.is_chart for package in packages)
    every = replace(wish, versions=_EVERY_VERSION)
    if (
        is_chart
        and wish.versions is None
        and not wish.channels
        and (found := _version_words(every, packages, installed))
    ):
        words = f"package {wish.package} has no release"
        if installed is not None and wish.edges is UpgradeEdges.CATALOG_PROVIDED:
            words += f" that is as high as {installed.version}, which runs, or higher"
        how = "name one in catalog.version to take it (>=0-0 takes the highest)"
        return f"{words}; these are pre-releases: {found}; {how}"
    words = f"package {wish.package} has no {'version' if is_chart else 'bundle'}"
    if wish.versions is not None:
        words += f" in {wish.versions}"
    if wish.channels:
        words += f" in channel {some(wish.channels)}"
    if installed is None or wish.edges is not UpgradeEdges.CATALOG_PROVIDED:
        return f"{words}; it has {_version_words(every, packages, None) or 'none'}"
    if is_chart:
        words += f" that is as high as {installed.version}, which runs, or higher"
        return f"{words}; these are: {_version_words(every, packages, installed) or 'none'}"
    words += f" that may follow {installed.name} ({installed.version}) by the catalog's edges"
    return f"{words}; these may: {_version_words(every, packages, installed) or 'none'}"


def _version_words(wish: PackageWish, packages: Sequence[Package], installed: Installed | None) -> str:
    """The versions that there are for a wish, the highest first, as people read them."""
    found = [package.bundles[name] for package in packages for name in _list_candidates(wish, package, installed)]
    names = [str(bundle.version) for bundle in sorted(found, key=lambda one: one.rank, reverse=True)]
    return some(list(dict.fromkeys(names)), 10)


def newer_not_taken(wish: PackageWish, package: Package, chosen: CatalogBundle) -> str:
    """The highest version above the one that is chosen, and why it is not taken; "" where there is none."""
    anywhere = replace(wish, versions=_EVERY_VERSION, edges=UpgradeEdges.SELF_CERTIFIED)
    bundles = [package.bundles[name] for name in _list_candidates(anywhere, package, None)]
    order = _choice_order(
        anywhere, package, {bundle.name: None for bundle in (*bundles, chosen) if bundle.name in package.bundles}
    )
    highest = max(bundles, key=order, default=chosen)
    if order(highest) <= order(chosen):
        return ""
    if not _is_in_wish(wish, highest, chosen.version):
        if wish.versions is None:
            return f"{highest.version} is a pre-release: name it in catalog.version to take it"
        if highest.version.prerelease:
            return (
                f"{highest.version} is a pre-release, which {wish.versions} does not take: name it in catalog.version "
                "to take it"
            )
        return f"{highest.version} is not in {wish.versions}: change catalog.version to take it"
    if package.deprecation_of(highest.name) is not None:
        return f"{highest.version} is deprecated: name it in catalog.version to take it"
    if package.is_chart:
        return f"{highest.version} is higher, and may follow after {chosen.version}"
    ways = (find_route(package, channel, chosen, highest.name) for channel in package.channels.values())
    if any(ways):
        return f"no edge leads to {highest.version} from what runs; it may follow after {chosen.version}"
    words = "upgradeConstraintPolicy SelfCertified would take it, and reviewers are told"
    return f"no edge leads to {highest.version} from what runs: {words}"


def upgrade_step(
    package: Package, channels: Iterable[str], bundle: CatalogBundle, installed: Installed | None
) -> UpgradeStep:
    """Whether an edge of one of these channels leads from what runs, a bundle of the same package, to this one."""
    if installed is None:
        return UpgradeStep.FIRST
    if _is_installed(package, bundle.name, installed):
        return UpgradeStep.SAME
    following = {
        entry.name
        for name in channels
        if name in package.channels
        for entry in successors(package.channels[name], installed.name, installed.version)
    }
    return UpgradeStep.FOLLOWS if bundle.name in following else UpgradeStep.LEAVES


def list_deprecations(package: Package, channel: str, bundle: str) -> tuple[str, ...]:
    """What the publisher says against the package, this channel and this bundle, each with what it is about."""
    names = {"olm.package": package.name, "olm.channel": channel, "olm.bundle": bundle}
    return tuple(
        f"{known.schema.removeprefix('olm.')} {names[known.schema]}: {known.message or 'no reason is given'}"
        for known in package.deprecations
        if known.schema in names and (known.name == names[known.schema] or known.schema == "olm.package")
    )
