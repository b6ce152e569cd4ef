"""A package of a catalog: what it is, which versions there are and what may follow what, and where it runs."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals import access, catalogs
from approvals.models import Catalog
from approvals.selectors import followed_sources
from approvals.selectors.followed_sources import PackageFollower
from approvals.web.access_decorators import of_catalog, person
from approvals.web.catalogs.descriptions import shown_description
from approvals.web.catalogs.drawing import head_among, listed, picture_of
from approvals.web.catalogs.lacking import lacking
from approvals.web.catalogs.versions import PackageShown, channel_of, deprecation_of, is_installable
from approvals.web.rendering import page
from provisioner.catalogs import BundleFacts, Channel, Package, head_of

VERSIONS = 50
FOLLOWERS, MOST_FOLLOWERS = 50, 500
CHANNELS = 200
PROBLEMS = 20
ALSO_IN, MOST_ASKED = 5, 20
ICON_SECONDS = 300
ICON_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
EDGE_KINDS = (
    ("replaces", "replaces it"),
    ("skips", "skips it by name"),
    ("skipRange", "its skipRange holds it"),
)
# Nobody publishes what a chart may follow: newer versions follow.
CHART_KINDS = (
    ("replaces", "the next newer version"),
    ("skips", "the next newer version, after another build"),
    ("skipRange", "a newer version"),
)


@require_safe
@of_catalog
def show(http: HttpRequest, catalog: Catalog, *, package: str) -> HttpResponse:
    """One package in one of its channels, `?channel=`; the default one without."""
    found, words = catalogs.package(catalog, package), catalogs.presentation(catalog, package)
    if found is None or words is None:
        return lacking(http, catalog, package)
    caller = person(http)
    reading = access.may_read(caller, catalog.cluster)
    also_in = _also_in(http, catalog, found.name)
    creating = access.may(caller, catalog.cluster, "create", resource="bundledeployments")
    followers = _followers(catalog, found) if reading.allowed else []
    changes = {one.bundle: one for one in catalogs.changes_of(catalog, found.name)}
    wanted = http.GET.get("channel", "")
    channel = channel_of(found, wanted)
    known = found.channels.keys() | found.unusable_channels.keys()
    unusable = found.unusable_channels.get(wanted or found.default_channel, "")
    facts = {
        "catalog": catalog,
        "package": found,
        "words": words,
        "has_facts": words.facts != BundleFacts(),
        "description": shown_description(words.description) if words.description else None,
        "head": head_of(found),
        "deprecation": deprecation_of(found, "olm.package"),
        "problems": _problems(catalog, found, changes),
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
        facts |= _in_channel(http, shown, channel)
    return page(http, "catalogs/package.html", facts)


@require_safe
@of_catalog
def icon(http: HttpRequest, catalog: Catalog, *, package: str) -> HttpResponse:
    """The picture of a package, from an address of its own, which pages name in `<img>` alone.

    Whoever opens it by itself sees a picture, too: an SVG may run, fetch and lead to nothing, whatever is in it.
    """
    found = catalogs.icon(catalog, package)
    if found is None:
        raise Http404
    answer = HttpResponse(found.data, content_type=found.media_type)
    answer["Content-Security-Policy"] = ICON_POLICY
    answer["X-Content-Type-Options"] = "nosniff"
    answer["Cache-Control"] = f"private, max-age={ICON_SECONDS}"
    return answer


def _also_in(http: HttpRequest, catalog: Catalog, package: str) -> list[Catalog]:
    """Other catalogs of the cluster with a package of this name that the viewer may get: to each its own publisher."""
    identity = access.identity_of(person(http), catalog.cluster)
    if identity is None:
        return []
    asked = {access.catalog_question(one.name): one for one in catalogs.same_name(catalog, package, limit=MOST_ASKED)}
    answers = access.ask_each(identity, catalog.cluster, asked)
    return [one for question, one in asked.items() if answers[question].allowed]


def _followers(catalog: Catalog, package: Package) -> list[PackageFollower]:
    return followed_sources.package_followers(catalog=catalog, package=package.name, limit=MOST_FOLLOWERS)


def _problems(catalog: Catalog, package: Package, changes: dict[str, catalogs.ContentChange]) -> list[str]:
    """Without those of changed content, which stand by themselves for as long as they are known."""
    said = tuple(f"{name} changed its content under version " for name in changes)
    return [one for one in catalogs.package_problems(catalog, package.name) if not one.startswith(said)][:PROBLEMS]


def _in_channel(http: HttpRequest, shown: PackageShown, channel: Channel) -> dict[str, Any]:
    entries = listed(shown.package, channel)
    rows = Paginator(entries, VERSIONS).get_page(http.GET.get("page"))
    running = {one.bundle for one in shown.followers if one.bundle}
    return {
        "channel": channel,
        "channel_deprecation": deprecation_of(shown.package, "olm.channel", channel.name),
        "picture": picture_of(shown.package, channel, running),
        "rows": rows,
        "versions": shown.versions(rows.object_list, head_among(entries, channel)),
        "edge_kinds": CHART_KINDS if shown.is_of_charts else EDGE_KINDS,
        "install": shown.install_at() if shown.may_install and any(map(is_installable, entries)) else "",
    }
