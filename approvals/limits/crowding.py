"""Whether everybody seems to come from one address, so that the limits of strangers count all people as one.

Then a proxy stands in between that nobody told us of (PRATIQUE_TRUSTED_PROXIES), or one that hides the addresses. It is
told in the log once a process, and by /readyz as long as it is so.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections import deque
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest

from approvals.limits import addresses
from approvals.networks import UNIX, Address, parsed

logger = logging.getLogger(__name__)

# Of the last requests; fewer say nothing.
LOOKED_AT = 200
NEARLY_ALL = 0.95
HERE = {"localhost", "127.0.0.1", "::1"}
UNBELIEVED = (
    "a peer that is not in PRATIQUE_TRUSTED_PROXIES sends X-Forwarded-For, so rate limits count everyone "
    "behind it as one client: if it is your proxy, add its network to PRATIQUE_TRUSTED_PROXIES"
)
CROWDED = (
    "nearly all requests come from one private address, so rate limits count everyone behind it as one client: "
    "if it is your proxy, configure it to forward the client's address, and trust all your proxies "
    "(docs/operating/limits.md)"
)
NAMELESS = (
    "requests arrive over a Unix socket without X-Forwarded-For, so rate limits count everyone as one client: "
    "configure the proxy to send it"
)


class CrowdingNotes:
    """What one process noticed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        self._last: deque[str] = deque(maxlen=LOOKED_AT)
        self._told: set[str] = set()
        self._found: dict[str, None] = {}

    def note(self, peer: str, client: str, *, is_unbelieved: bool) -> None:
        """A request of `client`, which came through `peer`; both are texts of addresses, `peer` empty for a socket."""
        with self._lock:
            self._last.append(client)
            found = {UNBELIEVED: is_unbelieved, NAMELESS: not peer and client == addresses.UNKNOWN}
            for words, is_so in found.items():
                if is_so:
                    self._found[words] = None
            self._found.pop(CROWDED, None)
            if is_crowded(self._last):
                self._found[CROWDED] = None
            new = [words for words in self._found if words not in self._told]
            self._told.update(new)
        for words in new:
            logger.warning(words, extra={"peer": peer or UNIX, "client": client})

    def found(self) -> list[str]:
        with self._lock:
            return list(self._found)


def is_crowded(clients: deque[str]) -> bool:
    """Whether nearly all of the last clients are one, at an address that only a network of the operator's has."""
    newest = clients[-1]
    address = parsed(newest)
    if len(clients) < LOOKED_AT or address is None or not _is_private(address):
        return False
    return clients.count(newest) >= NEARLY_ALL * len(clients)


def _is_private(address: Address) -> bool:
    shared = ipaddress.ip_network("100.64.0.0/10")
    return address.is_private or (address.version == shared.version and address in shared)


notes = CrowdingNotes()


def note(http: HttpRequest) -> None:
    """Look at one request. Nothing is noticed where the site is for this machine only."""
    if urlsplit(settings.PRATIQUE["PUBLIC_URL"]).hostname in HERE:
        return
    peer = addresses.peer_of(http)
    is_unbelieved = addresses.FOR in http.META and peer not in addresses.trusted()
    notes.note(peer, addresses.client_address(http), is_unbelieved=is_unbelieved)


def found() -> list[str]:
    """What the operator should know, in sentences."""
    return notes.found()
