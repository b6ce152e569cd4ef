"""The audit: who did what, when and through what; and whether the chain is whole."""

from __future__ import annotations

from datetime import datetime

from django.core.cache import cache
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from approvals import audit
from approvals.audit import ChainState
from approvals.selectors import lists
from approvals.web.doors import readable, signed_in
from approvals.web.rendering import page

ROWS = 100
CHANNELS = ("browser", "rest", "chat", "webhook", "kubectl", "policy", "shell", "token", "oidc", "machine", "cluster")
# Walking the chain reads every row.
CHAIN_SECONDS = 60


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    filters = {name: http.GET.get(name, "").strip()[:100] for name in ("actor", "deployment", "via")}
    rows = lists.audit(clusters=readable(http), **filters)
    chain, checked_at = _chain()
    facts = {
        "rows": Paginator(rows, ROWS).get_page(http.GET.get("page")),
        "filters": filters,
        "channels": CHANNELS,
        "chain": chain,
        "checked_at": checked_at,
    }
    return page(http, "audit.html", facts)


def _chain() -> tuple[ChainState, datetime]:
    known: tuple[ChainState, datetime] | None = cache.get("audit-chain")
    if known is None:
        known = (audit.verify_chain(), timezone.now())
        cache.set("audit-chain", known, CHAIN_SECONDS)
    return known
