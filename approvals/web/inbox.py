"""The inbox: what waits for me?"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django import template
from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from approvals import access, services
from approvals.access import Caller, Person
from approvals.ledger.pivots import AskedRequest
from approvals.lifecycle import State
from approvals.models import Cluster, Request
from approvals.selectors import account as selector
from approvals.selectors import inbox as lists
from approvals.selectors import keyset
from approvals.selectors.inbox import ORDER_OF_TAB, Askers, InboxFilter, WaitingRequest
from approvals.selectors.inbox_columns import COLUMNS, SORTS, Column
from approvals.selectors.keyset import Window
from approvals.selectors.status import RequestStatus, statuses
from approvals.services.reviews import is_self_approval
from approvals.web import rendering
from approvals.web.access_decorators import only_by_form, person, readable, signed_in
from approvals.web.rendering import Followed, page, page_of, part_of
from provisioner.api_groups import OWN_GROUP
from provisioner.render import format_names
from provisioner.values import AccessRequest, Identity, Severity

# Filters of the templates of these pages.
register = template.Library()

# What a view keeps of an address: not the page of a list that moves.
KEPT = (*("tab", "search", "cluster", "severity", "purpose", "format", "requester", "state", "rule", "sort"),)


# What a request in this state waits for, in the words of its row.
NEXT = {
    State.PREPARING: "the report is being prepared",
    State.STALE: "a new report is being prepared",
    State.APPROVED: "waiting to be applied",
    State.APPLYING: "being applied",
    State.RESTORING: "the previous revision is being restored",
}
VOIDED = "your approval no longer counts: review it again"
ALL = AccessRequest("approve", OWN_GROUP, "bundledeployments")
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


@only_by_form
@signed_in
def save(http: HttpRequest) -> HttpResponse:
    query = clean(http.POST.get("query", ""))
    view = services.save_view(by=person(http), name=http.POST.get("name", "").strip(), query=query)
    return redirect(f"{reverse('inbox')}?{view.query}")


@only_by_form
@signed_in
def remove(http: HttpRequest, *, view_id: int) -> HttpResponse:
    services.remove_view(by=person(http), view_id=view_id)
    return redirect("inbox")


def clean(query: str) -> str:
    """The filters of an address alone, in one order, so that the same view has the same address."""
    given = dict(parse_qsl(query))
    return urlencode([(name, given[name]) for name in KEPT if given.get(name)])


def chips(query: QueryDict) -> list[tuple[str, str, str]]:
    """(name, value, address without it) of each filter that is set."""
    kept = dict(parse_qsl(clean(query.urlencode())))
    return [
        (name, value, "?" + urlencode({key: kept_value for key, kept_value in kept.items() if key != name}))
        for name, value in kept.items()
        if name not in ("tab", "sort")
    ]


@dataclass(frozen=True, slots=True)
class ListedRequest:
    """One row: the request, how it stands, why it is here ("" where its state says that), and why the viewer cannot
    decide on it ("" where they can, or nobody is asked)."""

    request: Request
    how: RequestStatus
    why: str
    why_not: str

    @property
    def is_voided(self) -> bool:
        return self.why == VOIDED

    @property
    def can_decide(self) -> bool:
        return self.request.state == State.IN_REVIEW and not self.why_not


def rows_of(window: Window, rights: Everywhere, *, is_mine: bool) -> list[ListedRequest]:
    """The rows of the page; Kubernetes is asked by name about these alone. Of "needs me" what it allows."""
    shown = lists.shown(window.keys, user=rights.user)
    rights.ask_about(request for request in shown if request.state == State.IN_REVIEW)
    kept = [request for request in shown if not (is_mine and _why_not(request, rights))]
    how = statuses(kept)
    return [_row(request, rights, how[request.pk]) for request in kept]


def _row(request: Any, rights: Everywhere, how: RequestStatus) -> ListedRequest:
    why_not = _why_not(request, rights)
    if request.state == State.IN_REVIEW:
        # An approval of an earlier round counts no more, as long as the viewer has not decided on this one.
        next_step = VOIDED if request.had_approved and not request.has_decided else "you can decide"
        return ListedRequest(request, how, why_not or next_step, why_not)
    # What it waits for is told by its cause, where it waits for anything else.
    return ListedRequest(request, how, "" if request.problem else NEXT.get(State(request.state), ""), "")


def _why_not(request: Any, rights: Everywhere) -> str:
    """Why the viewer cannot decide on a row of the list; "" where they can, or nobody is asked."""
    if request.state != State.IN_REVIEW:
        return ""
    return "you already decided" if request.has_decided else rights.why_not(request)


class Everywhere:
    """What one person may decide, on each cluster that they may read."""

    def __init__(self, caller: Caller, clusters: Iterable[Cluster]) -> None:
        self.user = caller.user
        known = {cluster.pk: (cluster, access.identity_of(caller, cluster)) for cluster in clusters}
        asked = [access.Question(identity, cluster, ALL) for cluster, identity in known.values() if identity]
        answers = zip(asked, access.ask_all(asked), strict=True)
        everything = {own.cluster.pk for own, answer in answers if answer.allowed}
        self._rights = {
            key: ClusterRights(cluster, identity, access.person_of(caller, cluster), has_all=key in everything)
            for key, (cluster, identity) in known.items()
        }

    def why_never(self, request: WaitingRequest) -> str:
        return self._rights[request.cluster_id].why_never(request)

    def has_all(self, request: WaitingRequest) -> bool:
        return self._rights[request.cluster_id].has_all

    def ask_about(self, requests: Iterable[Request]) -> None:
        """Ask by name about these, where that can change anything; all others count as a no."""
        of_clusters: dict[int, list[Request]] = {}
        for request in requests:
            of_clusters.setdefault(request.cluster_id, []).append(request)
        for key, rows in of_clusters.items():
            self._rights[key].ask_about(rows)

    def why_not(self, request: Request) -> str:
        return self._rights[request.cluster_id].why_not(request)


class ClusterRights:
    """What one person may decide on one cluster; asked once for all names, and by name only where that is a no."""

    def __init__(self, cluster: Cluster, identity: Identity | None, person: Person, *, has_all: bool) -> None:
        self.cluster = cluster
        self.identity = identity
        self.has_all = has_all
        self._person = person
        self._named: set[int] = set()

    def why_never(self, request: AskedRequest) -> str:
        """Why they cannot decide, whatever Kubernetes says; "" where that is for Kubernetes to say."""
        if self.identity is None:
            return "you are not signed in on this cluster"
        if access.is_machine(self.identity):
            return "machine accounts cannot decide"
        return "you requested it" if is_self_approval(request, self._person) else ""

    def ask_about(self, requests: Iterable[Request]) -> None:
        if self.identity is None or self.has_all:
            return
        doubtful = [request for request in requests if not self.why_never(request)]
        questions = {request.deployment_id: access.approval_of(request.deployment) for request in doubtful}
        answers = access.ask_each(self.identity, self.cluster, questions.values())
        self._named = {key for key, question in questions.items() if answers[question].allowed}

    def why_not(self, request: Request) -> str:
        """In a few words; "" where Kubernetes lets them decide, and they did not ask for it themselves."""
        if words := self.why_never(request):
            return words
        return "" if self.has_all or request.deployment_id in self._named else "you are not allowed to approve it"


class Mine:
    """Of what is in review, what needs the viewer for all that is known without asking by name.

    Where Kubernetes lets them approve everything on a cluster, that is certain. `unasked` are the others: whether these
    need the viewer is asked for the rows of one page, and no count and no filter tells of more.
    """

    def __init__(self, rights: Everywhere, waiting: Iterable[WaitingRequest]) -> None:
        rows = [request for request in waiting if not rights.why_never(request)]
        self.keys = [request.pk for request in rows]
        self.unasked = {request.pk for request in rows if not rights.has_all(request)}

    def count(self, window: Window | None, items: Sequence[ListedRequest]) -> str:
        """How many there are, as far as anybody was asked; `window` is the page of all of them, if that is shown."""
        certain = len(self.keys) - len(self.unasked)
        if not self.unasked:
            return str(certain)
        if window is None:
            return f"{certain}+" if certain else ""
        asked = self.unasked & set(window.keys)
        found = certain + sum(item.request.pk in asked for item in items)
        return str(found) if asked == self.unasked else f"{found}+"


def askers_of(caller: Caller) -> Askers:
    """Return the names by which the caller's own requests are found."""
    return Askers(tuple((proof.cluster_id, proof.identity.username) for proof in caller.proofs))


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
        "chips": chips(http.GET),
        "query": clean(http.GET.urlencode()),
        "views": selector.saved_views(user=person(http).user),
        "severities": list(Severity),
        "purposes": Request.Purpose.values,
        "formats": _formats(),
        "states": sorted(State),
        "sorts": [(name, sort.words) for name, sort in SORTS.items()],
    }
    return page(http, "inbox.html", facts)


@require_safe
@signed_in
@rendering.by_itself
def again(http: HttpRequest) -> HttpResponse:
    """The list alone, for a page that shows it already."""
    return rendering.again(http, _list(http, readable(http)))


def _list(http: HttpRequest, clusters: Collection[Cluster]) -> Followed:
    tab, wish, sort, caller = _tab(http), _wish(http), _sort(http), person(http)
    rights = Everywhere(caller, clusters)
    mine = Mine(rights, lists.waiting(user=caller.user, clusters=clusters, order=SORTS[sort].order))
    askers = askers_of(caller)
    rows = lists.requests(clusters=clusters, tab=tab, askers=askers)
    rows = rows.filter(pk__in=mine.keys) if tab == "needs-me" else rows
    window = page_of(http, wish.listed(rows), SORTS[sort].order, size=ROWS)
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
        "columns": COLUMNS,
        "can_pick": any(item.can_decide for item in items),
    }
    return Followed(
        name="list",
        address=f"{reverse('inbox-list')}?{http.GET.urlencode()}",
        # What comes, comes on the first page; what was decided long ago stays as it is.
        seconds=0 if {"cursor", "page"} & {*http.GET} else SECONDS,
        body=part_of(http, "workspace/_list.html", facts),
        beside=part_of(http, "workspace/_tabs.html", facts),
        beside_id="tabs",
    )


def _tab(http: HttpRequest) -> str:
    tab = http.GET.get("tab", "needs-me")
    return tab if tab in lists.TABS else "needs-me"


def _wish(http: HttpRequest) -> InboxFilter:
    return InboxFilter(**{name: http.GET.get(given, "").strip()[:100] for given, name in FILTERS.items()})


def _sort(http: HttpRequest) -> str:
    sort = http.GET.get("sort", "")
    return sort if sort in SORTS else ORDER_OF_TAB.get(_tab(http), lists.NEWEST)


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


@register.simple_tag(takes_context=True)
def cell(context: template.Context, column: Column) -> SafeString:
    """The cell of a column of the inbox, in the row that the context is about."""
    assert context.template
    return compiled_cell(context.template.engine, column.cell).render(context)


@cache
def compiled_cell(engine: template.Engine, code: str) -> template.Template:
    return engine.from_string(code)
