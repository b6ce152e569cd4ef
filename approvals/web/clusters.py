"""Clusters: is each reachable, and what may the viewer do there?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals import access
from approvals.selectors import lists
from approvals.web.doors import person, signed_in
from approvals.web.rendering import page


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    """The clusters on which the viewer is somebody; of those they may not read, only who could let them."""
    rows = [
        {
            "identity": identity,
            "cluster": identity.cluster,
            "permission": access.may_read(person(http), identity.cluster),
        }
        for identity in lists.identities(user=person(http))
    ]
    return page(http, "clusters.html", {"rows": rows})
