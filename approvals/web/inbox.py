"""The inbox: what waits for me?"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals import access
from approvals.models import Cluster, Request
from approvals.selectors import pages
from approvals.services.reviews import self_approval
from approvals.web.doors import person, readable, signed_in
from approvals.web.rendering import page
from provisioner.values import AccessRequest

ROWS = 50
ALL = AccessRequest("approve", "core.rukpak.io", "bundledeployments")


@require_safe
@signed_in
def inbox(http: HttpRequest) -> HttpResponse:
    """Tabs with counts, and the rows of one of them."""
    clusters = readable(http)
    mine = [request.pk for request in _needing(http, pages.waiting(user=person(http), clusters=clusters))]
    tab = http.GET.get("tab", "needs-me")
    tab = tab if tab in pages.TABS else "needs-me"
    search, cluster = http.GET.get("search", "").strip()[:100], http.GET.get("cluster", "")
    rows = pages.inbox(clusters=clusters, tab=tab, mine=mine, search=search, cluster=cluster)
    counts = {**pages.tab_counts(clusters=clusters), "needs_me": len(mine)}
    facts = {
        "tab": tab,
        "tabs": [(name, name.replace("-", " "), counts[name.replace("-", "_")]) for name in pages.TABS],
        "rows": Paginator(rows, ROWS).get_page(http.GET.get("page")),
        "search": search,
        "cluster": cluster,
        "clusters": clusters,
        "needed": settings.PRATIQUE["APPROVALS_NEEDED"],
        "mine": set(mine),
    }
    return page(http, "inbox.html", facts)


def _needing(http: HttpRequest, waiting: list[Request]) -> list[Request]:
    """Those that Kubernetes lets the viewer decide, and that they did not ask for themselves."""
    rights = {cluster: Rights(person(http), cluster) for cluster in {it.deployment.cluster for it in waiting}}
    return [request for request in waiting if rights[request.deployment.cluster].may_decide(request)]


class Rights:
    """What one person may decide on one cluster; asked once for all names, and by name only where that is a no."""

    def __init__(self, user: User, cluster: Cluster) -> None:
        self.user, self.cluster = user, cluster
        self.identity = access.identity_of(user, cluster)
        self._has_all = self._may(ALL)

    def may_decide(self, request: Request) -> bool:
        if self.identity is None or access.is_machine(self.identity) or self._is_own(request):
            return False
        return self._has_all or self._may(access.approval_of(request.deployment))

    def _is_own(self, request: Request) -> bool:
        assert self.identity is not None
        return not settings.PRATIQUE["SELF_APPROVAL"] and self_approval(request, self.user, self.identity)

    def _may(self, question: AccessRequest) -> bool:
        return self.identity is not None and access.ask_for(self.identity, self.cluster, question, fresh=False).allowed
