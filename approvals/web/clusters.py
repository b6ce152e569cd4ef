"""Clusters: is each reachable, and what may the viewer do there?"""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals import access
from approvals.web.doors import person, signed_in
from approvals.web.rendering import page


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    """The clusters on which the viewer has proved who they are; of those they may not read, only who could let them."""
    caller = person(http)
    access.check_fresh(caller)
    rows = [
        {
            "proof": caller.proof_on(cluster.pk),
            "cluster": cluster,
            "permission": permission,
        }
        for cluster, permission in access.read_answers(caller)
    ]
    return page(http, "clusters.html", {"rows": rows})
