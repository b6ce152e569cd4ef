"""One search over the packages of all catalogs that the viewer may read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals import access, catalogs
from approvals.access import ReadableCatalogs
from approvals.models import CatalogPackage
from approvals.selectors import keyset
from approvals.selectors.keyset import ListOrder
from approvals.web.access_decorators import person, signed_in
from approvals.web.rendering import note_too_old, page, page_of

ROWS = 50
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
def index(http: HttpRequest) -> HttpResponse:
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
        "most_words": catalogs.MOST_WORDS,
        "has_more_words": len(search.split()) > catalogs.MOST_WORDS,
        **(_found(http, readable, search, cluster) if search else {}),
    }
    return page(http, "catalogs/search.html", facts)


def _found(http: HttpRequest, readable: ReadableCatalogs, search: str, cluster: str) -> dict[str, Any]:
    rows = catalogs.packages_found(readable.keys, search, cluster=cluster)
    named = catalogs.named_so(rows, search)
    others = rows.exclude(pk__in=named)
    window = page_of(http, others, ListOrder.of(others), size=ROWS)
    first = [] if window.previous else named
    shown = keyset.in_order(rows, [*first, *window.keys])
    excerpts = catalogs.excerpts(shown, search)
    return {
        "window": window,
        "rows": [FoundPackage(one, excerpts.get(one.pk, ""), catalogs.keywords_found(one, search)) for one in shown],
        "count": keyset.counted(rows),
    }
