"""The names that the form of a deployment offers to pick from, fetched once it is shown, so that nobody waits."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from approvals.access.offers import Kind, names
from approvals.web.access_decorators import person, readable, signed_in
from approvals.web.rendering import page

# As Kubernetes lets a namespace be named.
NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")


@require_safe
@signed_in
def show(http: HttpRequest) -> HttpResponse:
    """Namespaces of the cluster, and the ServiceAccounts of the namespace that is written there."""
    named, namespace = http.GET.get("cluster", ""), http.GET.get("install_namespace", "").strip()
    cluster = next((one for one in readable(http) if one.name == named), None)
    facts: dict[str, object] = {"cluster": cluster, "namespace": namespace}
    if cluster:
        facts["namespaces"] = names(person(http), cluster, Kind.NAMESPACE)
        is_name = NAMESPACE.fullmatch(namespace)
        facts["accounts"] = names(person(http), cluster, Kind.ACCOUNT, namespace) if is_name else None
    return page(http, "deployments/_offers.html", facts)
