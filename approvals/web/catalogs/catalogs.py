"""Catalogs: which there are, how each stands, and what one offers to whom."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals import access, catalogs
from approvals.models import Catalog
from approvals.selectors import followed_sources, keyset
from approvals.selectors.keyset import ListOrder
from approvals.source_refs import interval_seconds
from approvals.web import rendering
from approvals.web.access_decorators import of_catalog, person, signed_in
from approvals.web.catalogs.condition import CatalogCondition, condition_of
from approvals.web.rendering import Followed, note_too_old, page, page_of, part_of

ROWS = 50
FOLLOWERS = 20
PROBLEMS = 50
SECONDS = 2


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    """Those that the viewer may get, by cluster; of the other clusters, what would let them."""
    access.check_fresh(person(http))
    readable = access.readable_catalogs(person(http))
    note_too_old(http, [cluster.name for cluster, answer in readable.answers if answer.is_too_old])
    search, cluster = _search(http), http.GET.get("cluster", "")
    rows = catalogs.catalog_rows(readable.keys, search=search, cluster=cluster)
    window = page_of(http, rows, ListOrder.of(rows), size=ROWS)
    shown = keyset.in_order(rows, window.keys)
    facts = {
        "window": window,
        "rows": [(one, condition_of(one)) for one in shown],
        "search": search,
        "cluster": cluster,
        "clusters": [one for one, _ in readable.answers],
        "unasked": [answer for _, answer in readable.answers if not answer.could_ask],
        "refusals": [(one, it) for one, it in readable.answers if it.could_ask and not it.allowed and not it.refused],
        "has_any": bool(readable.keys),
    }
    return page(http, "catalogs/catalogs.html", facts)


@require_safe
@of_catalog
def show(http: HttpRequest, catalog: Catalog) -> HttpResponse:
    """One catalog: what is in it, where it comes from, and who takes what of it."""
    return page(http, "catalogs/catalog.html", {"catalog": catalog, "part": _part(http, catalog)})


@require_safe
@of_catalog
@rendering.by_itself
def again(http: HttpRequest, catalog: Catalog) -> HttpResponse:
    """The same without its title, for a page that was opened while the catalog was read for the first time."""
    return rendering.again(http, _part(http, catalog))


def _part(http: HttpRequest, catalog: Catalog) -> Followed:
    condition, search = condition_of(catalog), _search(http)
    address = reverse("catalog-again", args=(catalog.cluster.name, catalog.name))
    return Followed(
        name="catalog",
        address=f"{address}?{urlencode({'search': search})}" if search else address,
        seconds=SECONDS if condition.is_passing else 0,
        body=part_of(http, "catalogs/_content.html", _facts(http, catalog, condition, search)),
    )


def _facts(http: HttpRequest, catalog: Catalog, condition: CatalogCondition, search: str) -> dict[str, Any]:
    found = catalogs.package_rows(catalog, search).order_by("name")
    window = page_of(http, found, ListOrder.of(found), size=ROWS)
    shown = keyset.in_order(catalogs.with_icons(found), window.keys)
    counts = followed_sources.follower_counts(catalog=catalog, packages=[one.name for one in shown])
    reading = access.may_read(person(http), catalog.cluster)
    followers = followed_sources.package_followers(catalog=catalog, limit=FOLLOWERS + 1) if reading.allowed else []
    problems = catalog.edition.problems if catalog.edition and catalog.edition.problem_count else []
    return {
        "catalog": catalog,
        "condition": condition,
        "writers": _writers(catalog),
        "interval": _interval(catalog),
        "problems": problems[:PROBLEMS],
        "problems_left": len(problems) - PROBLEMS,
        "search": search,
        "most_words": catalogs.MOST_WORDS,
        "has_more_words": len(search.split()) > catalogs.MOST_WORDS,
        "window": window,
        "rows": [(one, counts.get(one.name, 0) if reading.allowed else None) for one in shown],
        "count": keyset.counted(found) if search else None,
        "reading": reading,
        "followers": followers[:FOLLOWERS],
        "has_more_followers": len(followers) > FOLLOWERS,
    }


def _interval(catalog: Catalog) -> str:
    """How often its source is checked, and why that is not what its spec says; "" for never."""
    counts, asked = catalogs.interval(catalog), interval_seconds(catalog.spec)
    if not counts:
        return ""
    words = f"every {followed_sources.interval_words(counts)}"
    if asked and asked < counts:
        words += f" (its spec says {followed_sources.interval_words(asked)}; the operator allows no shorter interval)"
    return f"{words}, less often after failures" if catalog.problem else words


def _search(http: HttpRequest) -> str:
    return http.GET.get("search", "").strip()[:100]


def _writers(catalog: Catalog) -> list[str]:
    """Who wrote the parts of its source; empty where of any part nobody can tell."""
    found = catalogs.authors_by_part(catalog.authors, catalog.spec) or {}
    return sorted({str(one.get("username") or "") for one in found.values()})
