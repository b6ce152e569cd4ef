"""Home: what needs the viewer, and what happened to their requests and reviews since they last looked."""

from __future__ import annotations

from collections.abc import Collection

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from approvals import access, services
from approvals.access import Caller, SeenDeputy
from approvals.clock import database_now
from approvals.deciding.deputies import Deputy
from approvals.deciding.finding_exceptions import FindingException
from approvals.errors import InvalidInput
from approvals.models import Cluster, DecidingObject
from approvals.selectors import acceptances, debts, keyset
from approvals.selectors import account as selector
from approvals.selectors import inbox as lists
from approvals.selectors.acceptances import EndingException
from approvals.selectors.account import News
from approvals.selectors.inbox import ORDER_OF_TAB
from approvals.selectors.inbox_columns import SORTS
from approvals.selectors.status import statuses
from approvals.web import rendering
from approvals.web.access_decorators import only_by_form, person, readable, signed_in
from approvals.web.inbox import Everywhere, ListedRequest, Mine, askers_of, rows_of
from approvals.web.rendering import Followed, is_counted, note_told, page, part_of

MINE = 5
MOST_OWED = 20
MOST_ENDING = 20
# Kubernetes is asked by name about as many requests as the inbox has on a page.
ASKED = 50
# Between two looks at a page that is open in a browser.
SECONDS = 30
MAX_DIGITS = 18


@require_safe
@signed_in
def show(http: HttpRequest) -> HttpResponse:
    return page(http, "workspace/news.html", {"list": _list(http)})


@require_safe
@signed_in
@rendering.by_itself
def again(http: HttpRequest) -> HttpResponse:
    """What a page that is open shows now."""
    return rendering.again(http, _list(http))


def _list(http: HttpRequest) -> Followed:
    clusters, caller = readable(http), person(http)
    mine = lists.requests(clusters=clusters, tab="mine", askers=askers_of(caller))
    newest = lists.shown(keyset.window(mine, SORTS["newest"].order, size=MINE).keys, user=caller.user)
    how = statuses(newest)
    count, waiting = _waiting(caller, clusters)
    ending = acceptances.read_ending(clusters)
    facts = {
        "news": news_of(http, clusters),
        "mine": [(request, how[request.pk]) for request in newest],
        "count": count,
        "waiting": waiting[:MINE],
        "clusters": clusters,
        "owed": debts.owed_on(clusters)[:MOST_OWED],
        "ending": _ending(caller, ending),
        "deputies": _deputies(caller, ending),
    }
    body = part_of(http, "workspace/_news.html", facts)
    return Followed("home", reverse("news-list"), SECONDS, body)


def _ending(caller: Caller, rows: Collection[DecidingObject]) -> list[EndingException]:
    """The finding exceptions that end soon and that the viewer may prolong."""
    found = acceptances.ending_exceptions(rows, database_now())[:MOST_ENDING]

    def may_write(one: EndingException) -> bool:
        where, name = one.row.cluster, one.row.name
        return access.may(caller, where, "update", resource=FindingException.plural, name=name).allowed

    return list(filter(may_write, found))


def _deputies(caller: Caller, rows: Collection[DecidingObject]) -> list[SeenDeputy]:
    """The deputies that end soon and that the viewer may get."""
    found = access.ending_deputies(rows)[:MOST_ENDING]

    def may_get(one: SeenDeputy) -> bool:
        return access.may(caller, one.row.cluster, "get", resource=Deputy.plural, name=one.row.name).allowed

    return list(filter(may_get, found))


def _waiting(caller: Caller, clusters: Collection[Cluster]) -> tuple[str, list[ListedRequest]]:
    """How many requests need the viewer, as far as anybody was asked ("" for none), and these, the worst first."""
    rights = Everywhere(caller, clusters)
    order = SORTS[ORDER_OF_TAB["needs-me"]].order
    mine = Mine(rights, lists.waiting(user=caller.user, clusters=clusters, order=order))
    window = keyset.window(
        lists.requests(clusters=clusters, tab="needs-me").filter(pk__in=mine.keys), order, size=ASKED
    )
    rows = rows_of(window, rights, is_mine=True)
    count = mine.count(window, rows)
    return "" if count == "0" else count, rows


@require_safe
@signed_in
@rendering.by_itself
def count(http: HttpRequest) -> HttpResponse:
    """The fragment of the navigation, for pages that do not count themselves, so that no list becomes slower by it."""
    if not is_counted(http):
        news_of(http, readable(http))
    return page(http, "frame/_told.html", {"is_told_fresh": True})


@only_by_form
@signed_in
def mark_read(http: HttpRequest) -> HttpResponse:
    text = http.POST.get("number", "")
    if not (text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS):
        raise InvalidInput("number must be the number of an audit entry", field="number")
    # What has not happened yet cannot have been read.
    services.mark_news_read(by=person(http), number=min(int(text), selector.newest_number()))
    note_told(http, "")
    return redirect("news")


def news_of(http: HttpRequest, clusters: Collection[Cluster]) -> News:
    """The viewer's news, whose count the navigation shows from now on."""
    caller = person(http)
    found = selector.news_of(user=caller.user, clusters=clusters, askers=askers_of(caller))
    note_told(http, found.count)
    return found
