"""What proxies say about a request is believed from trusted ones only: for everybody else it is taken away."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase

from approvals import proxies
from approvals.limits import clients

# Beside X-Forwarded-Proto, which Django reads (settings.SECURE_PROXY_SSL_HEADER): nothing of ours reads these.
UNUSED = ("HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PORT", "HTTP_X_FORWARDED_SSL", "HTTP_FORWARDED", "HTTP_X_REAL_IP")

MACHINES = {"/healthz", "/readyz", "/metrics"}


class Forwarding:
    """The outermost middleware: all others may read the headers that it leaves."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, http: HttpRequest) -> HttpResponseBase:
        is_secure = clients.is_secure(http)
        _take_identity(http)
        # Probes and scrapes come from few addresses, as they should.
        if http.path_info not in MACHINES:
            clients.note(http)
        for name in (clients.PROTO, *UNUSED):
            http.META.pop(name, None)
        if is_secure:
            http.META[clients.PROTO] = "https"
        if clients.peer_of(http) not in clients.trusted():
            http.META.pop(clients.FOR, None)
        return self._get_response(http)


def _take_identity(http: HttpRequest) -> None:
    """`http.proxied`: who a proxy says that this is (Said, Unusable or None). Nobody else reads it from the headers."""
    known: proxies.IdentityProxies = settings.PRATIQUE["IDENTITY_PROXIES_FILE"]
    http.proxied = proxies.said_in(http.META, clients.peer_of(http), known)  # type: ignore[attr-defined] # requests carry such facts
    proxies.drop(http.META, known)
