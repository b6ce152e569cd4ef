"""The inbox: what waits for me?"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals import access
from approvals.access import Caller
from approvals.lifecycle import State
from approvals.models import Cluster, Request
from approvals.selectors import pages
from approvals.services.reviews import is_self_approval
from approvals.web.access_decorators import person, readable, signed_in
from approvals.web.rendering import page
from provisioner.api_groups import OWN_GROUP
from provisioner.values import AccessRequest

ROWS = 50
# What a tab holds, and what an empty one says.
TABS = {
    "needs-me": (
        "Requests in review that you are allowed to decide, did not request yourself and have not decided yet.",
        "No request needs your decision.",
    ),
    "open": ("Requests that are not settled yet, whoever has to act next.", "No open requests."),
    "applying": (
        "Approved requests that are waiting to be applied, being applied or rolled back.",
        "No request is being applied.",
    ),
    "decided": ("Requests that were approved, denied, withdrawn or replaced, or that expired.", "No decided requests."),
    "all": ("All requests on the clusters you can read.", "No requests."),
}
# What a request in this state waits for, in the words of its row.
NEXT = {
    State.PREPARING: "the report is being prepared",
    State.STALE: "a new report is being prepared",
    State.APPROVED: "waiting to be applied",
    State.APPLYING: "being applied",
    State.RESTORING: "the previous revision is being restored",
}
ALL = AccessRequest("approve", OWN_GROUP, "bundledeployments")


@require_safe
@signed_in
def inbox(http: HttpRequest) -> HttpResponse:
    """Tabs with counts, and the rows of one of them."""
    clusters = readable(http)
    rights = Everywhere(person(http))
    waiting = pages.waiting(user=person(http).user, clusters=clusters)
    mine = [request.pk for request in waiting if not rights.why_not(request)]
    tab = http.GET.get("tab", "needs-me")
    tab = tab if tab in pages.TABS else "needs-me"
    search, cluster = http.GET.get("search", "").strip()[:100], http.GET.get("cluster", "")
    rows = pages.inbox(clusters=clusters, tab=tab, mine=mine, search=search, cluster=cluster)
    counts = {**pages.tab_counts(clusters=clusters), "needs_me": len(mine)}
    shown = Paginator(pages.with_decided(rows, user=person(http).user), ROWS).get_page(http.GET.get("page"))
    facts = {
        "tab": tab,
        "tabs": [(name, name.replace("-", " "), counts[name.replace("-", "_")]) for name in pages.TABS],
        "rows": shown,
        "items": [_row(request, rights) for request in shown],
        "about": TABS[tab][0],
        "none": TABS[tab][1],
        "search": search,
        "cluster": cluster,
        "clusters": clusters,
        "needed": settings.PRATIQUE["APPROVALS_NEEDED"],
    }
    return page(http, "inbox.html", facts)


def _row(request: Any, rights: Everywhere) -> tuple[Request, str, str]:
    """The request, why it is here, and why the viewer cannot decide on it ("" where they can)."""
    why_not = _why_not(request, rights)
    if request.state == State.IN_REVIEW:
        return request, why_not or "you can decide", why_not
    return request, NEXT.get(State(request.state), ""), why_not


def _why_not(request: Any, rights: Everywhere) -> str:
    """Why the viewer cannot decide on a row of the list; "" where they can, or nobody is asked."""
    if request.state != State.IN_REVIEW:
        return ""
    return "you already decided" if request.has_decided else rights.why_not(request)


class Everywhere:
    """What one person may decide, on each cluster that is asked about."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._rights: dict[Cluster, ClusterRights] = {}

    def why_not(self, request: Request) -> str:
        cluster = request.deployment.cluster
        if cluster not in self._rights:
            self._rights[cluster] = ClusterRights(self._caller, cluster)
        return self._rights[cluster].why_not(request)


class ClusterRights:
    """What one person may decide on one cluster; asked once for all names, and by name only where that is a no."""

    def __init__(self, caller: Caller, cluster: Cluster) -> None:
        self.cluster = cluster
        self.identity = access.identity_of(caller, cluster)
        self._person = access.person_of(caller, cluster)
        self._has_all = self._may(ALL)

    def why_not(self, request: Request) -> str:
        """In a few words; "" where Kubernetes lets them decide, and they did not ask for it themselves."""
        if self.identity is None:
            return "you are not signed in on this cluster"
        if access.is_machine(self.identity):
            return "machine accounts cannot decide"
        if is_self_approval(request, self._person):
            return "you requested it"
        may = self._has_all or self._may(access.approval_of(request.deployment))
        return "" if may else "you are not allowed to approve it"

    def _may(self, question: AccessRequest) -> bool:
        return self.identity is not None and access.ask_for(self.identity, self.cluster, question, fresh=False).allowed
