"""Pages of catalogs: the list, one catalog with its condition, the search over all, and a package that is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals import access
from approvals.access import ReadableCatalogs
from approvals.bundle_spec import parse_catalog_source
from approvals.catalogs.editions import list_catalogs, package_rows, with_icon_types
from approvals.catalogs.history import package_last_seen
from approvals.catalogs.schedule import authors_by_part, read_interval
from approvals.catalogs.search import MOST_WORDS, best_matches, matching_keywords, search_excerpts, search_packages
from approvals.models import Catalog, CatalogPackage
from approvals.selectors import followed_sources, keyset
from approvals.selectors.keyset import ListOrder
from approvals.web import rendering
from approvals.web.access_decorators import of_catalog, person, signed_in
from approvals.web.rendering import Followed, note_too_old, page, page_of, part_of
from provisioner.sentences import number

# By the code of a problem, whose own words say what happened; codes that are not here say what to do themselves.
NEXT_STEPS = {
    "bad-source": "Correct the source of the Catalog.",
    "bundle-too-large": "Have an operator raise PRATIQUE_MAX_CATALOG_MIB, or name a smaller catalog.",
    "digest-mismatch": "Have its publisher say which content is meant, and pin that.",
    "forbidden-address": "Have an operator allow this address, or name another source.",
    "invalid-archive": "Have its publisher correct the archive.",
    "invalid-manifest": "Have its publisher correct the content.",
    "source-unavailable": "Check that the source exists, and that Pratique can reach it and may read it.",
    "unreachable": "Check that the source exists, and that Pratique can reach it.",
}


@dataclass(frozen=True, slots=True)
class CatalogCondition:
    """A label with its tone, why, and the next step; "" where there is nothing to say.

    `is_passing`: it becomes another one by itself, soon.
    """

    tone: str
    label: str
    cause: str = ""
    next_step: str = ""
    is_passing: bool = False


def catalog_condition(catalog: Catalog) -> CatalogCondition:
    edition, next_step = catalog.edition, NEXT_STEPS.get(catalog.problem_code, "")
    if catalog.problem and edition is None:
        return CatalogCondition("bad", "not read", catalog.problem, next_step)
    if catalog.problem:
        still = "What was read before is still offered."
        return CatalogCondition("warn", "source unavailable", catalog.problem, f"{next_step} {still}".strip())
    if edition is None and catalog.reading_since is None:
        cause = "Catalogs are read in turn, a few at once; its packages appear when it was read."
        return CatalogCondition("info", "waiting to be read", cause, is_passing=True)
    if edition is None:
        cause = "It is read for the first time; its packages appear when that is done."
        return CatalogCondition("info", "being read", cause, is_passing=True)
    if edition.problem_count:
        found = number(edition.problem_count, "problem")
        cause = "What is wrong in its content is left out or doubtful; the other packages are not affected."
        return CatalogCondition("warn", f"{found} in it", cause, "Its publisher can correct it.")
    return CatalogCondition("good", "read")


ROWS = 50
FOLLOWERS = 20
PROBLEMS = 50
SECONDS = 2


@require_safe
@signed_in
def show_catalogs(http: HttpRequest) -> HttpResponse:
    """Those that the viewer may get, by cluster; of the other clusters, what would let them."""
    access.check_fresh(person(http))
    readable = access.readable_catalogs(person(http))
    note_too_old(http, [cluster.name for cluster, answer in readable.answers if answer.is_too_old])
    search, cluster = _search_text(http), http.GET.get("cluster", "")
    rows = list_catalogs(readable.keys, search=search, cluster=cluster)
    window = page_of(http, rows, ListOrder.of(rows), size=ROWS)
    shown = keyset.in_order(rows, window.keys)
    facts = {
        "window": window,
        "rows": [(catalog, catalog_condition(catalog)) for catalog in shown],
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
def show_catalog(http: HttpRequest, catalog: Catalog) -> HttpResponse:
    """One catalog: what is in it, where it comes from, and who takes what of it."""
    return page(http, "catalogs/catalog.html", {"catalog": catalog, "part": _catalog_part(http, catalog)})


@require_safe
@of_catalog
@rendering.by_itself
def refresh_catalog(http: HttpRequest, catalog: Catalog) -> HttpResponse:
    """The same without its title, for a page that was opened while the catalog was read for the first time."""
    return rendering.again(http, _catalog_part(http, catalog))


def _catalog_part(http: HttpRequest, catalog: Catalog) -> Followed:
    condition, search = catalog_condition(catalog), _search_text(http)
    address = reverse("catalog-again", args=(catalog.cluster.name, catalog.name))
    found = package_rows(catalog, search).order_by("name")
    window = page_of(http, found, ListOrder.of(found), size=ROWS)
    shown = keyset.in_order(with_icon_types(found), window.keys)
    counts = followed_sources.follower_counts(catalog=catalog, packages=[package.name for package in shown])
    reading = access.may_read(person(http), catalog.cluster)
    followers = followed_sources.package_followers(catalog=catalog, limit=FOLLOWERS + 1) if reading.allowed else []
    problems = catalog.edition.problems if catalog.edition and catalog.edition.problem_count else []
    facts = {
        "catalog": catalog,
        "condition": condition,
        "writers": _list_writers(catalog),
        "interval": _interval_words(catalog),
        "problems": problems[:PROBLEMS],
        "problems_left": len(problems) - PROBLEMS,
        "search": search,
        "most_words": MOST_WORDS,
        "has_more_words": len(search.split()) > MOST_WORDS,
        "window": window,
        "rows": [(package, counts.get(package.name, 0) if reading.allowed else None) for package in shown],
        "count": keyset.counted(found) if search else None,
        "reading": reading,
        "followers": followers[:FOLLOWERS],
        "has_more_followers": len(followers) > FOLLOWERS,
    }
    return Followed(
        name="catalog",
        address=f"{address}?{urlencode({'search': search})}" if search else address,
        seconds=SECONDS if condition.is_passing else 0,
        body=part_of(http, "catalogs/_content.html", facts),
    )


def _interval_words(catalog: Catalog) -> str:
    """How often its source is checked, and why that is not what its spec says; "" for never."""
    counts, asked = read_interval(catalog), parse_catalog_source(catalog.spec).interval_seconds
    if not counts:
        return ""
    words = f"every {followed_sources.interval_words(counts)}"
    if asked and asked < counts:
        words += f" (its spec says {followed_sources.interval_words(asked)}; the operator allows no shorter interval)"
    return f"{words}, less often after failures" if catalog.problem else words


def _search_text(http: HttpRequest) -> str:
    return http.GET.get("search", "").strip()[:100]


def _list_writers(catalog: Catalog) -> list[str]:
    """Who wrote the parts of its source; empty where of any part nobody can tell."""
    found = authors_by_part(catalog.authors, catalog.spec) or {}
    return sorted({str(writer.get("username") or "") for writer in found.values()})


MAX_SEARCH = 100


@dataclass(frozen=True, slots=True)
class FoundPackage:
    """A package that was found. Where its names and summary lack a word, `excerpt` is where in its description it is,
    and `keywords` are those that have it."""

    package: CatalogPackage
    excerpt: str
    keywords: list[str]


@require_safe
@signed_in
def show_search(http: HttpRequest) -> HttpResponse:
    """The form, and what was found: first what is named so, last what only its keywords say, each with its catalog."""
    access.check_fresh(person(http))
    readable = access.readable_catalogs(person(http))
    note_too_old(http, [cluster.name for cluster, answer in readable.answers if answer.is_too_old])
    search, cluster = http.GET.get("search", "").strip()[:MAX_SEARCH], http.GET.get("cluster", "")
    facts = {
        "search": search,
        "cluster": cluster,
        "clusters": [one for one, _ in readable.answers],
        "unasked": [answer for _, answer in readable.answers if not answer.could_ask],
        "catalog_count": len(readable.keys),
        "most_words": MOST_WORDS,
        "has_more_words": len(search.split()) > MOST_WORDS,
        **(_found_packages(http, readable, search, cluster) if search else {}),
    }
    return page(http, "catalogs/search.html", facts)


def _found_packages(http: HttpRequest, readable: ReadableCatalogs, search: str, cluster: str) -> dict[str, Any]:
    rows = search_packages(readable.keys, search, cluster=cluster)
    named = best_matches(rows, search)
    others = rows.exclude(pk__in=named)
    window = page_of(http, others, ListOrder.of(others), size=ROWS)
    first = [] if window.previous else named
    shown = keyset.in_order(rows, [*first, *window.keys])
    excerpts = search_excerpts(shown, search)
    return {
        "window": window,
        "rows": [
            FoundPackage(package, excerpts.get(package.pk, ""), matching_keywords(package, search)) for package in shown
        ],
        "count": keyset.counted(rows),
    }


def show_missing_package(http: HttpRequest, catalog: Catalog, package: str) -> HttpResponse:
    """The page with the status 404, for who may get the catalog."""
    reading = access.may_read(person(http), catalog.cluster)
    rows = (
        followed_sources.package_followers(catalog=catalog, package=package, limit=FOLLOWERS + 1)
        if reading.allowed
        else []
    )
    facts = {
        "catalog": catalog,
        "condition": catalog_condition(catalog),
        "name": package,
        "last_seen": package_last_seen(catalog, package),
        "reading": reading,
        "followers": rows[:FOLLOWERS],
        "has_more_followers": len(rows) > FOLLOWERS,
    }
    return page(http, "catalogs/no_package.html", facts, status=404)
