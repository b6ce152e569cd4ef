"""A package of a catalog: what it is, which versions there are and what may follow what, and where it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals import access, services
from approvals.catalogs.editions import find_icon, find_package, find_presentation, list_package_problems
from approvals.catalogs.history import ContentChange, list_content_changes
from approvals.catalogs.search import catalogs_with_package
from approvals.models import Catalog
from approvals.selectors import followed_sources
from approvals.selectors.followed_sources import PackageFollower
from approvals.web.access_decorators import of_catalog, person
from approvals.web.catalogs.catalogs import show_missing_package
from approvals.web.catalogs.descriptions import render_description
from approvals.web.catalogs.edge_picture import ListedEntry, draw_edges, find_head_entry, missing_word, rank_entries
from approvals.web.rendering import page
from provisioner.catalogs.choice import CatalogOffer, Choice, PackageWish, choose
from provisioner.catalogs.edges import find_head
from provisioner.catalogs.presentation import BundleFacts
from provisioner.catalogs.values import Channel, Package
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
        running = {follower.bundle for follower in self.followers if follower.bundle}
        wish = {"from": running.pop() if len(running) == 1 and bundle not in running else "", "to": version}
        address = reverse("catalog-changes", args=[self.catalog.cluster.name, self.catalog.name, self.package.name])
        return f"{address}?{urlencode({key: value for key, value in wish.items() if value})}"

    def _taken_by(self, version: str) -> str:
        """The bundle that the form takes with this version filled in."""
        wish = PackageWish(self.package.name, (self.channel.name,), constraint_of(version))
        found = choose(wish, [CatalogOffer(self.catalog.name, self.package)])
        return found.bundle.name if isinstance(found, Choice) else ""

    def versions(self, entries: Iterable[ListedEntry], head: str) -> list[ShownVersion]:
        alike = Counter(precedence(bundle.version) for bundle in self.package.bundles.values())
        return [self._one(entry, is_head=entry.entry.name == head, alike=alike) for entry in entries]

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
            runs_in=tuple(follower.deployment.name for follower in self.followers if follower.bundle == entry.name),
            install=self.install_at(offered.pin) if offered and not is_other else "",
            comparison=self.compared_at(offered.pin if is_alone else offered.name, offered.name) if offered else "",
            why_not=f"A new deployment that names this version takes {taken}." if is_other else self._why_not(one),
            lacks=missing_word(self.package, one),
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


def choose_channel(package: Package, wanted: str) -> Channel | None:
    """The channel of this name; else the default one, else the first; None where there is none at all."""
    channels = package.channels
    return channels.get(wanted) or channels.get(package.default_channel) or next(iter(channels.values()), None)


def find_deprecation(package: Package, schema: str, name: str = "") -> str | None:
    """Why the package, or a channel of it, is deprecated; None where it is not."""
    names = (name,) if name else ("", package.name)
    return next(
        (
            deprecation.message
            for deprecation in package.deprecations
            if deprecation.schema == schema and deprecation.name in names
        ),
        None,
    )


VERSIONS = 50
FOLLOWERS, MOST_FOLLOWERS = 50, 500
CHANNELS = 200
PROBLEMS = 20
ALSO_IN, MOST_ASKED = 5, 20
ICON_SECONDS = 300
ICON_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
EDGE_KINDS = (("replaces", "replaces it"), ("skips", "skips it by name"), ("skipRange", "its skipRange holds it"))
# Nobody publishes what a chart may follow: newer versions follow.
CHART_KINDS = (
    ("replaces", "the next newer version"),
    ("skips", "the next newer version, after another build"),
    ("skipRange", "a newer version"),
)


@require_safe
@of_catalog
def show_package(http: HttpRequest, catalog: Catalog, *, package: str) -> HttpResponse:
    """One package in one of its channels, `?channel=`; the default one without."""
    found, words = find_package(catalog, package), find_presentation(catalog, package)
    if found is None or words is None:
        return show_missing_package(http, catalog, package)
    caller = person(http)
    reading = access.may_read(caller, catalog.cluster)
    also_in = _other_catalogs(http, catalog, found.name)
    creating = access.may(caller, catalog.cluster, "create", resource="bundledeployments")
    followers = (
        followed_sources.package_followers(catalog=catalog, package=found.name, limit=MOST_FOLLOWERS)
        if reading.allowed
        else []
    )
    changes = {change.bundle: change for change in list_content_changes(catalog, found.name)}
    wanted = http.GET.get("channel", "")
    channel = choose_channel(found, wanted)
    known = found.channels.keys() | found.unusable_channels.keys()
    unusable = found.unusable_channels.get(wanted or found.default_channel, "")
    said = tuple(f"{name} changed its content under version " for name in changes)
    facts = {
        "catalog": catalog,
        "package": found,
        "words": words,
        "has_facts": words.facts != BundleFacts(),
        "description": render_description(words.description) if words.description else None,
        "head": find_head(found),
        "deprecation": find_deprecation(found, "olm.package"),
        "problems": [problem for problem in list_package_problems(catalog, found.name) if not problem.startswith(said)][
            :PROBLEMS
        ],
        "changes": list(changes.values())[:PROBLEMS],
        "also_in": also_in[:ALSO_IN],
        "is_in_more": len(also_in) > ALSO_IN,
        "reading": reading,
        "creating": creating,
        "followers": followers[:FOLLOWERS],
        "followers_left": len(followers) - FOLLOWERS,
        "channels": list(found.channels)[:CHANNELS],
        "channels_left": len(found.channels) - CHANNELS,
        "is_unknown_channel": bool(wanted) and wanted not in known,
        "unusable": (wanted or found.default_channel, unusable) if unusable else None,
        "wanted": wanted,
    }
    if channel:
        may_install = reading.allowed and creating.allowed
        shown = PackageShown(catalog, found, channel, changes, tuple(followers), may_install)
        entries = rank_entries(shown.package, channel)
        rows = Paginator(entries, VERSIONS).get_page(http.GET.get("page"))
        running = {follower.bundle for follower in shown.followers if follower.bundle}
        facts |= {
            "channel": channel,
            "channel_deprecation": find_deprecation(shown.package, "olm.channel", channel.name),
            "picture": draw_edges(shown.package, channel, running),
            "rows": rows,
            "versions": shown.versions(rows.object_list, find_head_entry(entries, channel)),
            "edge_kinds": CHART_KINDS if shown.is_of_charts else EDGE_KINDS,
            "install": shown.install_at() if shown.may_install and any(map(is_installable, entries)) else "",
        }
    return page(http, "catalogs/package.html", facts)


@require_safe
@of_catalog
def show_icon(http: HttpRequest, catalog: Catalog, *, package: str) -> HttpResponse:
    """The picture of a package, from an address of its own, which pages name in `<img>` alone.

    Whoever opens it by itself sees a picture, too: an SVG may run, fetch and lead to nothing, whatever is in it.
    """
    found = find_icon(catalog, package)
    if found is None:
        raise Http404
    answer = HttpResponse(found.data, content_type=found.media_type)
    answer["Content-Security-Policy"] = ICON_POLICY
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Cache-Control"] = f"private, max-age={ICON_SECONDS}"
    return answer


def _other_catalogs(http: HttpRequest, catalog: Catalog, package: str) -> list[Catalog]:
    """Other catalogs of the cluster with a package of this name that the viewer may get: to each its own publisher."""
    identity = access.identity_of(person(http), catalog.cluster)
    if identity is None:
        return []
    asked = {
        access.catalog_question(one.name): one for one in catalogs_with_package(catalog, package, limit=MOST_ASKED)
    }
    answers = access.ask_each(identity, catalog.cluster, asked)
    return [one for question, one in asked.items() if answers[question].allowed]
