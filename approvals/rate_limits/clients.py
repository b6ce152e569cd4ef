"""Trying a credential. An attempt is counted before it is judged, so that many at once do not slip through.

Each door counts by name and address together, by address, and by name. A stranger can use up what they share with a
person, the name alone, but whoever has come in from an address before is let in from there all the same: only their
own failures, by name and address, count. So nobody can lock somebody else out from everywhere.
"""

from __future__ import annotations

import ipaddress
import logging
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest

from approvals.networks import UNIX, Address, Proxies, parsed
from approvals.rate_limits import counters
from approvals.rate_limits.counters import Limit

UNKNOWN = "unknown"
# Who has one IPv6 address has usually a /64 of them, and may come from another one each time.
IPV6_PREFIX = 64
# More hops than this are made up.
MAX_HOPS = 20
# What proxies write. Everything else that says where a request came from is not looked at.
FOR, PROTO = "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO"


MINUTE, QUARTER, MONTH = 60, 15 * 60, 30 * 86400
_KNOWN = Limit("known", 1, MONTH)
_WORDS = "too many failed attempts: try again in {time}"
_PAIR_WORDS = (
    "Too many failed attempts for this name from your address. Try again in {time}. Other names and other"
    " addresses are not locked."
)
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


def client_address(http: HttpRequest) -> str:
    """The client's IP address, or "unknown".

    X-Forwarded-For counts only where the peer is one of PRATIQUE_TRUSTED_PROXIES: then the rightmost address in it
    that is no trusted proxy, since everything to the left of that may be made up by the client.
    """
    client = peer_of(http)
    for hop in _hops(http):
        if client not in trusted() or hop is None:
            break
        client = str(hop)
    address = parsed(client)
    return str(address) if address else UNKNOWN


def is_secure(http: HttpRequest) -> bool:
    """Whether a trusted proxy says that the client spoke TLS. One of several that says otherwise is enough for no."""
    said = {word.strip() for word in http.META.get(PROTO, "").lower().split(",")}
    return peer_of(http) in trusted() and said == {"https"}


def peer_of(http: HttpRequest) -> str:
    """The other end of the connection: an address, or empty for a Unix socket."""
    return str(http.META.get("REMOTE_ADDR", ""))


def trusted() -> Proxies:
    return cast(Proxies, settings.PRATIQUE["TRUSTED_PROXIES"])


def counted_as(address: str) -> str:
    """What is counted together with `address`: IPv4 by itself, IPv6 by its /64, all that is no address as one."""
    found = parsed(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(found), IPV6_PREFIX), strict=False))
    return str(found) if found else UNKNOWN


def _hops(http: HttpRequest) -> Iterator[Address | None]:
    """The addresses of X-Forwarded-For from the right; None for what is none."""
    hops = http.META.get(FOR, "").rsplit(",", MAX_HOPS)
    return (parsed(hop.strip()) for hop in reversed(hops[-MAX_HOPS:]))


@dataclass(frozen=True, slots=True)
class Door:
    """One kind of credential; None where nothing is counted so."""

    name: str
    by_pair: Limit | None
    by_address: Limit | None = None
    by_name: Limit | None = None
    # What is said where name and address together were tried too often.
    words: str = _WORDS


PASSWORD = Door(
    "password",
    Limit("password-pair", 4, QUARTER),
    Limit("address", 30, QUARTER),
    Limit("password-name", 100, QUARTER),
    _PAIR_WORDS,
)
# The name is the cluster's: each attempt asks it for a TokenReview, so strangers make at most one a second of them.
CLUSTER_TOKEN = Door(
    "cluster-token", Limit("cluster-pair", 10, QUARTER), Limit("address", 30, QUARTER), Limit("cluster", 60, MINUTE)
)
API_TOKEN = Door("api-token", None, Limit("token-address", 30, 5 * MINUTE))
COMMAND_LINE = Door("command-line", None, Limit("command-line-address", 30, 5 * MINUTE))
CHAT_SIGNATURE = Door("chat", None, Limit("chat-address", 30, 5 * MINUTE))
CHECK_TOKEN = Door("check-token", None, Limit("check-address", 30, 5 * MINUTE))
# The name is the user's who enters it, signed in, from wherever.
LINK_CODE = Door("link-code", Limit("link-code", 10, QUARTER))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a credential at `door`, for `name`, from the client at `address`."""

    door: Door
    address: str = ""
    name: str = ""

    def begin(self) -> None:
        """Count it, before the credential is looked at. Raises TooManyAttempts."""
        if self.door.by_pair:
            counters.take(self.door.by_pair, self._place, self.name, words=self.door.words)
        if self._is_known():
            return
        if self.door.by_address:
            counters.take(self.door.by_address, self._place, words=_WORDS)
        if self.door.by_name:
            counters.take(self.door.by_name, self.name, words=_WORDS)

    def succeed(self) -> None:
        """The credential was right: uncount the attempt, and know the pair from now on."""
        if self.door.by_pair:
            counters.forget(self.door.by_pair, self._place, self.name)
        if self._is_known():
            return
        if self.door.by_address:
            counters.give_back(self.door.by_address, self._place)
        if self.door.by_name:
            counters.give_back(self.door.by_name, self.name)
        counters.note(_KNOWN, self.door.name, self._place, self.name)

    def _is_known(self) -> bool:
        return counters.is_noted(_KNOWN, self.door.name, self._place, self.name)

    @property
    def _place(self) -> str:
        return counted_as(self.address)


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
            found = {UNBELIEVED: is_unbelieved, NAMELESS: not peer and client == UNKNOWN}
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
    peer = peer_of(http)
    is_unbelieved = FOR in http.META and peer not in trusted()
    notes.note(peer, client_address(http), is_unbelieved=is_unbelieved)


def found() -> list[str]:
    """What the operator should know, in sentences."""
    return notes.found()
