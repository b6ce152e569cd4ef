"""The audit: who did what, when and through what; and whether the chain is whole."""

from __future__ import annotations

from datetime import datetime

from django.core.cache import cache
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from approvals import access, audit
from approvals.audit import ChainState
from approvals.selectors.audit import AuditReader, audit_entries, was_ever_linked
from approvals.web.access_decorators import person, readable, signed_in
from approvals.web.rendering import page

ROWS = 100
CHANNELS = (
    *("browser", "rest", "chat", "webhook", "kubectl", "policy", "shell"),
    *("password", "token", "oidc", "issuer", "proxy", "machine", "cluster"),
)
# Walking the chain reads every row.
CHAIN_SECONDS = 60


@require_safe
@signed_in
def index(http: HttpRequest) -> HttpResponse:
    filters = {name: http.GET.get(name, "").strip()[:100] for name in ("actor", "deployment", "via")}
    reader = _reader(http)
    rows = audit_entries(reader, **filters)
    chain, checked_at = _chain()
    facts = {
        "rows": Paginator(rows, ROWS).get_page(http.GET.get("page")),
        "filters": filters,
        "is_filtered": any(filters.values()),
        "reader": reader,
        "channels": CHANNELS,
        "chain": chain,
        "checked_at": checked_at,
    }
    return page(http, "audit.html", facts)


def _reader(http: HttpRequest) -> AuditReader:
    """Only a password makes somebody an operator (S01), and an account that was linked is several persons'."""
    caller, clusters = person(http), readable(http)
    is_local = all(proof.is_mapped for proof in caller.proofs)
    is_one_person = is_local or (access.has_proved_all(caller) and not was_ever_linked(account=caller.name))
    is_operator = is_local and (caller.user.is_staff or caller.user.is_superuser)
    return AuditReader(clusters, caller.user if is_one_person else None, is_operator)


def _chain() -> tuple[ChainState, datetime]:
    known: tuple[ChainState, datetime] | None = cache.get("audit-chain")
    if known is None:
        known = (audit.verify_chain(), timezone.now())
        cache.set("audit-chain", known, CHAIN_SECONDS)
    return known
