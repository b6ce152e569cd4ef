"""IP addresses and networks, as operators write them and as connections show them. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# The word among networks for whoever connects over a Unix socket.
UNIX = "unix"
# The machine itself, or the pod: every program in it comes from there, and so does `kubectl port-forward`.
LOOPBACK: tuple[Network, ...] = (
    ipaddress.IPv4Network("127.0.0.0/8"),
    ipaddress.IPv6Network("::1/128"),
    ipaddress.IPv6Network("::ffff:127.0.0.0/104"),
)


@dataclass(frozen=True, slots=True)
class Proxies:
    """Which peers are believed about others."""

    networks: tuple[Network, ...] = ()
    is_unix: bool = False

    def __bool__(self) -> bool:
        return bool(self.networks) or self.is_unix

    def __contains__(self, peer: str) -> bool:
        """`peer` is an address, or empty for the other end of a Unix socket."""
        address = parsed(peer)
        if address is None:
            return self.is_unix and not peer
        return any(address in network for network in self.networks)

    @classmethod
    def read(cls, text: str) -> Proxies:
        """From networks (CIDR) and the word "unix", divided by commas. Raises ValueError."""
        words = [word.strip() for word in text.split(",") if word.strip()]
        networks = tuple(ipaddress.ip_network(word) for word in words if word != UNIX)
        return cls(networks, UNIX in words)


def holds_loopback(network: Network) -> bool:
    return any(overlap(network, loopback) for loopback in LOOPBACK)


def overlap(one: Network, other: Network) -> bool:
    return one.version == other.version and one.overlaps(other)


def parsed(text: str) -> Address | None:
    """An address without its zone, an IPv4 address in IPv6 as IPv4; None for what is none."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
