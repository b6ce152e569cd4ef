"""Where sources may lead: URLs, hosts and addresses, checked after resolution and on every redirect (S18)."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit, urlunsplit

from provisioner.errors import BadSource, ForbiddenAddress, Unreachable
from provisioner.masking import masked

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
DEFAULT_PORTS = {"https": 443, "http": 80, "ssh": 22}
HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,252}[a-z0-9_])?\.?")
# Both special-purpose registries of IANA as of 2025-10, what is routed included (AS112, AMT): no source is there.
# And what clouds serve to their own machines. Written out, because the standard library's list changes with the patch
# level; its `is_global` is asked as well. Of IPv6 only 2000::/3 is public at all, so the registry's other blocks
# (loopback, mapped, 64:ff9b:1::/48, 100::/64, 5f00::/16, unique local, link-local) need no line.
SPECIAL = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
        "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
        "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32",
        "2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20",
    )
)  # fmt: skip
UNICAST = ipaddress.IPv6Network("2000::/3")
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class EgressPolicy:
    """What the operator allows.

    `allowed_hosts` (`host`, `host:port` or `*.suffix`) may be redirected to, and give tokens, beside the source's own
    host. `plain_http_hosts`, in the same form or `*` for every host, may be asked without TLS. `timeout_seconds` is for
    one source as a whole. `ca_pem` is trusted beside the system's authorities.
    """

    allowed_networks: tuple[Network, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    plain_http_hosts: tuple[str, ...] = ()
    allow_mutable: bool = False
    timeout_seconds: float = 120.0
    max_redirects: int = 5
    ca_pem: str = ""

    def lists(self, place: Origin) -> bool:
        """Whether the operator named this host."""
        return any(_names(pattern.lower(), place) for pattern in self.allowed_hosts)

    def is_plain_http(self, place: Origin) -> bool:
        """Whether the operator lets this host be asked without TLS."""
        return any(pattern == "*" or _names(pattern.lower(), place) for pattern in self.plain_http_hosts)


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port: what credentials belong to, and what another place is different from."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS.get(self.scheme) else f"{host}:{self.port}"


def place_of(url: str, schemes: tuple[str, ...] = ("https", "http")) -> Origin:
    """Where `url` leads; raises BadSource for what two readers of URLs could understand differently."""
    try:
        parts = urlsplit(url)
        port, host, scheme = parts.port, parts.hostname or "", parts.scheme
    except ValueError:
        raise BadSource(f"{shown(url)}: is no URL") from None
    if scheme not in schemes:
        raise BadSource(f"{shown(url)}: expected a URL with {' or '.join(schemes)}")
    if not url.isascii() or any(sign <= " " or sign in '\\"<>^`\x7f' for sign in url):
        raise BadSource(f"{shown(url)}: holds a character that no URL may hold")
    if not {".", ".."}.isdisjoint(unquote(parts.path).split("/")):
        # Another path would be asked for than policies and people read.
        raise BadSource(f"{shown(url)}: its path holds . or .. as a folder; expected the path that they lead to")
    if parts.password is not None or (parts.username is not None and scheme != "ssh"):
        raise BadSource(f"{shown(url)}: holds credentials; they belong into a Secret")
    if not HOST.fullmatch(host) and not _is_ipv6(host):
        raise BadSource(f"{shown(url)}: expected a host name or address (without a zone)")
    return Origin(scheme, host, DEFAULT_PORTS[scheme] if port is None else port)


def shown(url: str) -> str:
    """The URL for messages and pages: as pins have it, with what looks like a key in its path hidden."""
    return masked(pinned_url(url))


def pinned_url(url: str) -> str:
    """The URL without credentials, query and fragment. A pin has all of its path, so that policies tell two apart."""
    try:
        parts = urlsplit(url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "the URL"
    return urlunsplit((parts.scheme, f"{host}{port}", parts.path, "", ""))


def check_place(url: str, own: Origin, policy: EgressPolicy) -> Origin:
    """Where `url` leads, if a source of `own` may lead there; raises BadSource."""
    place = place_of(url)
    if place.scheme == "http" and not policy.is_plain_http(place):
        raise BadSource(f"{shown(url)}: expected https; PRATIQUE_PLAIN_HTTP_HOSTS can allow http for {place.host}")
    if place != own and not policy.lists(place):
        raise BadSource(f"{own} leads to {place}, another host; PRATIQUE_ALLOWED_SOURCE_HOSTS can allow it")
    return place


def check_address(text: str, policy: EgressPolicy, host: str) -> str:
    """The address, if sources may connect to it; raises ForbiddenAddress."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        # The address that is really met: that inside an IPv4-mapped, 6to4 or NAT64 one.
        inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else None
        address = inside or address.ipv4_mapped or address.sixtofour or address
    if any(address in network for network in policy.allowed_networks if network.version == address.version):
        return text
    is_special = any(address in network for network in SPECIAL if network.version == address.version)
    is_outside = isinstance(address, ipaddress.IPv6Address) and address not in UNICAST
    if is_special or is_outside or not address.is_global or address.is_multicast:
        raise ForbiddenAddress(
            f"{host} resolves to {address}, which is not a public address; PRATIQUE_ALLOWED_NETWORKS can allow it"
        )
    return text


def resolve(host: str, port: int, policy: EgressPolicy, seconds: float) -> list[str]:
    """The addresses to try, in order. Every address of the name must be allowed: otherwise the name could be raced.

    Raises ForbiddenAddress, and Unreachable for a name that is not resolved within `seconds`.
    """
    answer: list[list[str]] = []
    problem: list[Exception] = []

    def look_up() -> None:
        try:
            answer.append([str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)])
        except (OSError, UnicodeError) as exc:
            problem.append(exc)

    # The system's resolver takes no timeout, so it is waited for only as long as we have.
    thread = threading.Thread(target=look_up, daemon=True)
    thread.start()
    thread.join(max(seconds, 0.0))
    if problem:
        raise Unreachable(f"{host} cannot be resolved: {problem[0]}") from problem[0]
    if not answer:
        raise Unreachable(f"{host} cannot be resolved in time")
    return list(dict.fromkeys(check_address(address, policy, host) for address in answer[0]))


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6 and "%" not in host
    except ValueError:
        return False


def _names(pattern: str, place: Origin) -> bool:
    if pattern.startswith("*."):
        return place.host.endswith(pattern[1:])
    return pattern in (place.host, f"{place.host}:{place.port}")
