"""Whose request it is: the address that it comes from, what strangers at it are counted under, and who is believed.

The one place of these rules: the limits of the pages, the listener for machines and the log all ask here.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import cast

from django.conf import settings
from django.http import HttpRequest

from approvals.networks import Address, Proxies, parsed

UNKNOWN = "unknown"
# Who has one IPv6 address has usually a /64 of them, and may come from another one each time.
IPV6_PREFIX = 64
# More hops than this are made up.
MAX_HOPS = 20
# What proxies write. Everything else that says where a request came from is not looked at.
FOR, PROTO = "HTTP_X_FORWARDED_FOR", "HTTP_X_FORWARDED_PROTO"


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
