"""Where a request comes from: the peer of the connection, or what a trusted proxy says about it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from django.conf import settings
from django.http import HttpRequest

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

UNKNOWN = "unknown"
# Who has one IPv6 address has usually a /64 of them, and may come from another one each time.
IPV6_PREFIX = 64
# More hops than this are made up.
MAX_HOPS = 20


def client_address(http: HttpRequest) -> str:
    """The client's IP address, or "unknown".

    X-Forwarded-For counts only where the peer is one of PRATIQUE_TRUSTED_PROXIES: then the rightmost address in it
    that is no trusted proxy, since everything to the left of that may be made up by the client.
    """
    peer = _parsed(http.META.get("REMOTE_ADDR", ""))
    if peer is None:
        return UNKNOWN
    client = peer
    for hop in _hops(http):
        if not _is_trusted(client) or hop is None:
            break
        client = hop
    return str(client)


def place_of(http: HttpRequest) -> str | None:
    """`client_address` as one address that stands for all that are counted together; None where it is unknown."""
    address = counted_as(client_address(http)).partition("/")[0]
    return None if address == UNKNOWN else address


def counted_as(address: str) -> str:
    """What attempts from `address` are counted under: itself, or its /64 for IPv6."""
    parsed = _parsed(address)
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((parsed, IPV6_PREFIX), strict=False))
    return address


def _hops(http: HttpRequest) -> Iterator[Address | None]:
    """The addresses of X-Forwarded-For from the right; None for what is none."""
    hops = http.META.get("HTTP_X_FORWARDED_FOR", "").rsplit(",", MAX_HOPS)
    return (_parsed(hop.strip()) for hop in reversed(hops[-MAX_HOPS:]))


def _is_trusted(address: Address) -> bool:
    return any(address in network for network in settings.PRATIQUE["TRUSTED_PROXIES"])


def _parsed(text: str) -> Address | None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
