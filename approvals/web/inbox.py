"""The inbox: what waits for me?"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals.lifecycle import State
from approvals.models import Cluster, Request
from approvals.selectors import inbox as lists
from approvals.selectors import keyset
from approvals.selectors import news as selector
from approvals.selectors.askers import Askers
from approvals.selectors.inbox import ORDER_OF_TAB, ORDERS, InboxFilter
from approvals.web import following
from approvals.web.access_decorators import person, readable, signed_in
from approvals.web.following import Followed
from approvals.web.paging import page_of
from approvals.web.rendering import page, part_of
from approvals.web.workspace import saved
from approvals.web.workspace.may_decide import Everywhere, Mine, rows_of
from approvals.web.workspace.news import askers_of
from provisioner.render import format_names
from provisioner.values import Severity

ROWS = 50
# Between two looks at a list that is open in a browser.
SECONDS = 30
# What a tab holds, and what an empty one says.
TABS = {
    "needs-me": (
        "Requests in review that you are allowed to decide, did not request yourself and have not decided yet.",
        "No request needs your decision.",
    ),
    "mine": (
        "Requests that you made, with what came of them. The newest is first.",
        "You have not made a request yet.",
    ),
    "open": ("Requests that are not settled yet, whoever has to act next.", "No open requests."),
    "applying": (
        "Approved requests that are waiting to be applied, being applied or rolled back.",
        "No request is being applied.",
    ),
    "decided": ("Requests that were approved, denied, withdrawn or replaced, or that expired.", "No decided requests."),
    "all": ("All requests on the clusters you can read.", "No requests."),
}

# What a filter's name in the address is called in the selector.
FILTERS = {
    "search": "text",
    **{name: name for name in ("cluster", "severity", "purpose", "format", "requester", "state", "rule")},
}
SORTS = {"worst": "Worst first", "newest": "Newest first", "oldest": "Oldest first", "deployment": "By deployment"}


@require_safe
@signed_in
def inbox(http: HttpRequest) -> HttpResponse:
    """Tabs with counts, and one page of one of them."""
    clusters = readable(http)
    wish, sort = _wish(http), _sort(http)
    facts = {
        "tab": _tab(http),
        "list": _list(http, clusters),
        "wish": wish,
        "sort": sort,
        "clusters": clusters,
        "chips": saved.chips(http.GET),
        "query": saved.clean(http.GET.urlencode()),
        "views": selector.saved_views(user=person(http).user),
        **_choices(),
    }
    return page(http, "inbox.html", facts)


@require_safe
@signed_in
@following.by_itself
def again(http: HttpRequest) -> HttpResponse:
    """The list alone, for a page that shows it already."""
    return following.again(http, _list(http, readable(http)))


def _list(http: HttpRequest, clusters: Collection[Cluster]) -> Followed:
    tab, wish, sort, caller = _tab(http), _wish(http), _sort(http), person(http)
    rights = Everywhere(caller, clusters)
    mine = Mine(rights, lists.waiting(user=caller.user, clusters=clusters, order=ORDERS[sort]))
    askers = askers_of(caller)
    rows = lists.requests(clusters=clusters, tab=tab, askers=askers)
    rows = rows.filter(pk__in=mine.keys) if tab == "needs-me" else rows
    window = page_of(http, wish.listed(rows), ORDERS[sort], size=ROWS)
    items = rows_of(window, rights, is_mine=tab == "needs-me")
    facts = {
        "tab": tab,
        "tabs": _tabs(clusters, askers, mine.count(window if tab == "needs-me" and not wish.is_set else None, items)),
        "window": window,
        "items": items,
        "not_asked": tab == "needs-me" and mine.unasked and (window.next or window.previous or not items),
        "about": TABS[tab][0],
        "none": TABS[tab][1],
        "wish": wish,
        "clusters": clusters,
        "needed": settings.PRATIQUE["APPROVALS_NEEDED"],
        "can_pick": any(one.can_decide for one in items),
    }
    return Followed(
        name="list",
        address=f"{reverse('inbox-list')}?{http.GET.urlencode()}",
        seconds=_seconds(http),
        body=part_of(http, "workspace/_list.html", facts),
        beside=part_of(http, "workspace/_tabs.html", facts),
        beside_id="tabs",
    )


def _seconds(http: HttpRequest) -> int:
    """What comes, comes on the first page; what was decided long ago stays as it is."""
    return 0 if {"cursor", "page"} & {*http.GET} else SECONDS


def _tab(http: HttpRequest) -> str:
    tab = http.GET.get("tab", "needs-me")
    return tab if tab in lists.TABS else "needs-me"


def _wish(http: HttpRequest) -> InboxFilter:
    return InboxFilter(**{name: http.GET.get(given, "").strip()[:100] for given, name in FILTERS.items()})


def _sort(http: HttpRequest) -> str:
    sort = http.GET.get("sort", "")
    return sort if sort in ORDERS else ORDER_OF_TAB.get(_tab(http), lists.NEWEST)


def _choices() -> dict[str, Any]:
    """What the filters offer."""
    return {
        "severities": list(Severity),
        "purposes": Request.Purpose.values,
        "formats": _formats(),
        "states": sorted(State),
        "sorts": SORTS.items(),
    }


@cache
def _formats() -> tuple[str, ...]:
    return tuple(format_names())


def _tabs(clusters: Collection[Cluster], askers: Askers, mine: str) -> list[tuple[str, str, str]]:
    """Each tab with its words and how much it holds, "" where nobody has asked."""
    counts = {
        tab: f"{keyset.MOST_COUNTED:,}+" if count is None else str(count)
        for tab, count in lists.tab_counts(clusters=clusters, askers=askers).items()
    }
    return [(name, name.replace("-", " "), {**counts, "needs-me": mine}[name]) for name in lists.TABS]
