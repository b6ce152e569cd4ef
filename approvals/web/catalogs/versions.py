"""The versions of a channel as the page of a package has them: what each may follow, where it runs, how to get it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from approvals import services
from approvals.catalogs import ContentChange
from approvals.models import Catalog
from approvals.selectors.followed_sources import PackageFollower
from approvals.web.catalogs.drawing import ListedEntry, lack_of
from provisioner.catalogs import CatalogOffer, Channel, Choice, Package, PackageWish, choose
from provisioner.sentences import some
from provisioner.versions import Precedence, constraint_of, precedence

MOST_NAMED, MOST_NEEDED = 3, 10


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """One version of a channel. `version` is "" where the catalog has no such bundle, or none that can be used, and
    `lacks` says which of both. `needed` is what it needs beside itself, without `needed_left` more.

    `replaces`, `skips` and `skip_range` are what it may follow, `runs_in` the deployments of it that the viewer may
    see. `install` is the address of the form with this version filled in, `comparison` that of what it would change;
    where one of them is "", `why_not` says why.
    """

    bundle: str
    version: str
    release: str
    is_head: bool
    replaces: str
    skips: str
    skip_range: str
    content: str
    deprecation: str | None
    change: ContentChange | None
    runs_in: tuple[str, ...]
    install: str
    comparison: str
    why_not: str
    lacks: str = ""
    needed: tuple[str, ...] = ()
    needed_left: int = 0
    is_chart: bool = False


@dataclass(frozen=True, slots=True)
class PackageShown:
    """A package of a catalog in one of its channels, with what is known beside: changes of content by the bundle,
    and who follows it."""

    catalog: Catalog
    package: Package
    channel: Channel
    changes: Mapping[str, ContentChange]
    followers: tuple[PackageFollower, ...]
    may_install: bool

    @property
    def is_of_charts(self) -> bool:
        """Whether its versions follow each other because they are higher, which nobody published."""
        return services.format_offered(self.catalog) == "helm"

    def install_at(self, version: str = "") -> str:
        """The address of the form with this version filled in; without one, whichever the channel offers."""
        wish = {
            "cluster": self.catalog.cluster.name,
            "catalog": self.catalog.name,
            "package": self.package.name,
            "channel": self.channel.name,
            "version": version,
        }
        return f"{reverse('deployment-new')}?{urlencode({key: value for key, value in wish.items() if value})}"

    def compared_at(self, version: str, bundle: str) -> str:
        """The address of what this version would change: compared with the only other one that runs, or nothing."""
        running = {one.bundle for one in self.followers if one.bundle}
        wish = {"from": running.pop() if len(running) == 1 and bundle not in running else "", "to": version}
        address = reverse("catalog-changes", args=[self.catalog.cluster.name, self.catalog.name, self.package.name])
        return f"{address}?{urlencode({key: value for key, value in wish.items() if value})}"

    def _taken_by(self, version: str) -> str:
        """The bundle that the form takes with this version filled in."""
        wish = PackageWish(self.package.name, (self.channel.name,), constraint_of(version))
        found = choose(wish, [CatalogOffer(self.catalog.name, self.package)])
        return found.bundle.name if isinstance(found, Choice) else ""

    def versions(self, entries: Iterable[ListedEntry], head: str) -> list[ShownVersion]:
        alike = Counter(precedence(one.version) for one in self.package.bundles.values())
        return [self._one(one, is_head=one.entry.name == head, alike=alike) for one in entries]

    def _one(self, one: ListedEntry, *, is_head: bool, alike: Counter[Precedence]) -> ShownVersion:
        entry, bundle = one.entry, one.bundle
        offered = bundle if bundle and self.may_install and is_installable(one) else None
        is_alone = offered is None or alike[precedence(offered.version)] == 1
        taken = "" if offered is None or is_alone else self._taken_by(offered.pin)
        is_other = bool(taken) and taken != entry.name
        needed = bundle.needed if bundle else ()
        return ShownVersion(
            bundle=entry.name,
            version=str(bundle.version) if bundle else "",
            release=bundle.release if bundle else "",
            is_head=is_head,
            replaces=entry.replaces,
            skips=some(entry.skips, MOST_NAMED),
            skip_range=str(entry.skip_range or ""),
            content=bundle.content if bundle else "",
            deprecation=self.package.deprecation_of(entry.name),
            change=self.changes.get(entry.name),
            runs_in=tuple(it.deployment.name for it in self.followers if it.bundle == entry.name),
            install=self.install_at(offered.pin) if offered and not is_other else "",
            comparison=self.compared_at(offered.pin if is_alone else offered.name, offered.name) if offered else "",
            why_not=f"A new deployment that names this version takes {taken}." if is_other else self._why_not(one),
            lacks=lack_of(self.package, one),
            needed=needed[:MOST_NEEDED],
            needed_left=max(0, len(needed) - MOST_NEEDED),
            is_chart=self.is_of_charts,
        )

    def _why_not(self, one: ListedEntry) -> str:
        if one.bundle is None and (why := self.package.unusable_bundles.get(one.entry.name)):
            return f"It cannot be used: {why}."
        if one.bundle is None:
            return "The catalog has no bundle of this name."
        if one.bundle.can_be_pinned:
            return ""
        if one.bundle.url:
            return "The catalog has no digest of this chart. Name its URL and its checksum as a source of kind http."
        return "It has no image. Choose another version, or ask its publisher."


def is_installable(one: ListedEntry) -> bool:
    return one.bundle is not None and one.bundle.can_be_pinned


def channel_of(package: Package, wanted: str) -> Channel | None:
    """The channel of this name; else the default one, else the first; None where there is none at all."""
    channels = package.channels
    return channels.get(wanted) or channels.get(package.default_channel) or next(iter(channels.values()), None)


def deprecation_of(package: Package, schema: str, name: str = "") -> str | None:
    """Why the package, or a channel of it, is deprecated; None where it is not."""
    names = (name,) if name else ("", package.name)
    return next((one.message for one in package.deprecations if one.schema == schema and one.name in names), None)
