"""The operator's file of proxies that sign people in (PRATIQUE_IDENTITY_PROXIES_FILE): off without one.

A list of its own beside PRATIQUE_TRUSTED_PROXIES: whoever is named there may say where a request came from, which costs
little if it is wrong. Whoever is named here may say who somebody is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field
from itertools import combinations, product, starmap
from typing import Any
from urllib.parse import urlsplit

from approvals.networks import UNIX, Proxies, holds_loopback, overlap
from approvals.operators_file import FileSection, NamePrefixes, each_once, yaml_of
from provisioner.values import Identity

# Without underscores, which are the same as dashes once a request has reached Python (PEP 3333).
HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}[A-Za-z0-9]", re.ASCII)
# What clients or other proxies write for other purposes.
TAKEN = frozenset(
    (
        "accept",
        "authorization",
        "connection",
        "cookie",
        "expect",
        "forwarded",
        "from",
        "host",
        "origin",
        "referer",
        "te",
        "transfer-encoding",
        "upgrade",
        "user-agent",
        "via",
        "x-csrftoken",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-proto",
        "x-forwarded-ssl",
        "x-real-ip",
        "x-requested-with",
    )
)
TAKEN_BEGINNINGS = ("accept-", "content-", "hx-", "if-", "sec-")
# As the API server's own flags have them by custom: --requestheader-username-headers, --requestheader-group-headers.
USER, GROUPS, UID = "X-Remote-User", "X-Remote-Group", "X-Remote-Uid"
# As the column that keeps it.
MAX_ISSUER = 255
# What comes before what a proxy itself calls its people, so that no name is taken for an identifier.
BY_UID, BY_NAME = "uid:", "user:"
# What the shipped nginx takes away from everybody's requests (deploy/nginx.conf), in small letters.
CLEARED = frozenset(
    (
        "remote-groups",
        "remote-user",
        "x-auth-request-email",
        "x-auth-request-groups",
        "x-auth-request-preferred-username",
        "x-auth-request-user",
        "x-forwarded-email",
        "x-forwarded-groups",
        "x-forwarded-preferred-username",
        "x-forwarded-user",
        "x-remote-group",
        "x-remote-uid",
        "x-remote-user",
    )
)
# Wider networks hold machines of others: nobody has so many proxies.
WIDEST = {4: 8, 6: 32}
RESERVED = "system:"
MAX_CHARACTERS = 253
# Between the values of several headers of one name; no header holds one.
LINES = "\n"
MAX_HEADER_CHARACTERS = 250
MAX_GROUPS = 500
PRINTABLE = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
# What proxies that sign people in write, by custom. It continues from nobody, whether the operator named it or not.
CUSTOMARY = ("HTTP_X_REMOTE_", "HTTP_REMOTE_", "HTTP_X_AUTH_REQUEST_", "HTTP_X_POMERIUM_")
CUSTOMARY_ONES = (
    "HTTP_X_FORWARDED_USER",
    "HTTP_X_FORWARDED_GROUPS",
    "HTTP_X_FORWARDED_EMAIL",
    "HTTP_X_FORWARDED_PREFERRED_USERNAME",
    "HTTP_X_FORWARDED_ACCESS_TOKEN",
)
Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Headers:
    """Names of headers; `uid` is "" where the proxy sends none. With a separator one groups header holds several."""

    user: str = USER
    groups: str = GROUPS
    uid: str = ""
    separator: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.user, self.groups, self.uid) if name)


@dataclass(frozen=True, slots=True)
class ClusterNames:
    """What one cluster puts before a proxy's names; `groups_prefix` is None where its groups do not count there."""

    cluster: str
    username_prefix: str
    groups_prefix: str | None = None


@dataclass(frozen=True, slots=True)
class IdentityProxy:
    """`peers` are the other ends of connections, never what X-Forwarded-For says. `name` is kept with its people.

    `issuer` is the address of the OpenID Connect issuer whose `sub` the proxy sends as uid; "" where it is another's.
    """

    name: str
    title: str
    peers: Proxies
    clusters: tuple[ClusterNames, ...]
    headers: Headers = field(default_factory=Headers)
    sign_out_url: str = ""
    is_for_api: bool = False
    issuer: str = ""

    @property
    def vouches_as(self) -> str:
        """Who gives its people their identifiers: its issuer, or the proxy itself, by name."""
        return self.issuer or self.name

    def names_on(self, cluster: str) -> ClusterNames | None:
        return next((names for names in self.clusters if names.cluster == cluster), None)


@dataclass(frozen=True, slots=True)
class IdentityProxies:
    every: tuple[IdentityProxy, ...] = ()

    def __iter__(self) -> Iterator[IdentityProxy]:
        return iter(self.every)

    def prefixes(self) -> list[NamePrefixes]:
        return [
            (proxy.name, names.cluster, names.username_prefix, names.groups_prefix)
            for proxy in self.every
            for names in proxy.clusters
        ]

    def named(self, name: str) -> IdentityProxy | None:
        return next((proxy for proxy in self.every if proxy.name == name), None)

    def vouching_as(self, issuer: str) -> tuple[IdentityProxy, ...]:
        """Those that still have the people who are kept under `issuer`, also from before an issuer was named."""
        return tuple(proxy for proxy in self.every if issuer in (proxy.name, proxy.issuer) and issuer)

    def also_known_as(self, issuer: str, subject: str) -> frozenset[tuple[str, str]]:
        """What the same person is kept as, where that was before a proxy was said to have an issuer's people."""
        found = set[tuple[str, str]]()
        for proxy in self.every:
            if proxy.issuer and issuer == proxy.issuer:
                found.add((proxy.name, BY_UID + subject))
            elif proxy.issuer and issuer == proxy.name and subject.startswith(BY_UID):
                found.add((proxy.issuer, subject.removeprefix(BY_UID)))
        return frozenset(found)

    def at(self, peer: str) -> IdentityProxy | None:
        """Whose connection this is; `peer` is an address, or empty for a Unix socket. Networks are apart."""
        return next((proxy for proxy in self.every if peer in proxy.peers), None)


def parse_identity_proxies(path: str) -> IdentityProxies:
    """The proxies of the file at `path`, none of "". Raises ValueError that names the place in the file."""
    return read_identity_proxies(yaml_of(path)) if path else IdentityProxies()


def read_identity_proxies(content: object) -> IdentityProxies:
    top = FileSection("file", content)
    top.allow("proxies")
    every = tuple(map(_read_proxy, top.items("proxies")))
    each_once("proxies: name", [proxy.name for proxy in every])
    for proxy, other in combinations(every, 2):
        # A connection is one proxy's: else it would say itself which it is.
        is_shared = proxy.peers.is_unix and other.peers.is_unix
        if is_shared or any(starmap(overlap, product(proxy.peers.networks, other.peers.networks))):
            raise ValueError(
                f"proxies {proxy.name} and {other.name} connect from the same networks: name them as one, or apart"
            )
    return IdentityProxies(every)


def _read_proxy(place: FileSection) -> IdentityProxy:
    place.allow("name", "title", "networks", "headers", "signOutUrl", "api", "issuer", "clusters")
    name, clusters = place.name(), []
    for section in place.items("clusters"):
        section.allow("name", "username", "groups")
        groups = section.child("groups")
        username = _read_prefix(section.needed("username"))
        clusters.append(ClusterNames(section.text("name"), username, _read_prefix(groups) if groups else None))
    if not clusters:
        raise ValueError(f"{place.where}.clusters is empty: name the clusters that the proxy's people are somebody on")
    each_once(f"{place.where}.clusters: name", [names.cluster for names in clusters])
    peers, headers = _read_peers(place), _read_headers(place.child("headers"))
    # At the socket is nginx, which hands on every other header, also of who comes past the proxy (port-forward).
    loose = sorted(name for name in headers.names if name.lower() not in CLEARED)
    if peers.is_unix and loose:
        raise ValueError(
            f"{place.where}.headers: the shipped nginx, which connects over the Unix socket, hands {', '.join(loose)}"
            f" on from anybody. Have nginx write what the proxy says into {USER}, {GROUPS} and X-Remote-Uid, for the"
            " proxy's requests only (docs/operating/signing-in.md), and name those"
        )
    url = place.text("signOutUrl", "")
    parts = urlsplit(url)
    is_path = url.startswith("/") and not url.startswith(("//", "/\\"))
    if url and not is_path and not (parts.scheme == "https" and parts.hostname and not parts.username):
        raise ValueError(f"{place.where}.signOutUrl: {url!r}; expected https://host/path, or a path of this site")
    issuer = place.text("issuer", "")
    parts = urlsplit(issuer)
    if issuer and (parts.scheme not in ("https", "http") or not parts.hostname or len(issuer) > MAX_ISSUER):
        raise ValueError(
            f"{place.where}.issuer: {issuer!r}; expected https://host/path, as the issuer's tokens say in iss"
        )
    if issuer and not headers.uid:
        raise ValueError(
            f"{place.where}.issuer: the proxy sends no uid, so nobody can tell which of the issuer's people it names:"
            f" give headers.uid a header that holds the issuer's `sub`, such as {UID}"
        )
    return IdentityProxy(
        name=name,
        title=place.text("title", name),
        peers=peers,
        clusters=tuple(clusters),
        headers=headers,
        sign_out_url=url,
        is_for_api=place.flag("api"),
        issuer=issuer,
    )


def _read_peers(place: FileSection) -> Proxies:
    words = place.texts("networks")
    if not words:
        raise ValueError(
            f"{place.where}.networks is empty: name the addresses that the proxy connects from (CIDR), or {UNIX}."
            " Without them everybody could say who they are"
        )
    try:
        peers = Proxies.read(",".join(words))
    except ValueError as exc:
        raise ValueError(f"{place.where}.networks: {exc}") from exc
    for network in peers.networks:
        widest = WIDEST[network.version]
        if network.prefixlen < widest:
            raise ValueError(
                f"{place.where}.networks: {network} holds far more than a proxy: whoever connects from there could say"
                f" that they are anybody. Name the proxy's own addresses; at most a /{widest} is taken"
            )
        # A warning would not do: nothing shows it when somebody uses the hole, and a socket costs one word.
        if holds_loopback(network):
            raise ValueError(
                f"{place.where}.networks: {network} holds the loopback address, from which every program beside the web"
                " process comes, and whoever may run kubectl port-forward: they could say that they are anybody. Have"
                f" the proxy connect over a Unix socket (gunicorn --bind unix:PATH), and write {UNIX} here"
            )
    return peers


def _read_headers(place: FileSection | None) -> Headers:
    if place is None:
        return Headers()
    place.allow("user", "groups", "uid", "groupSeparator")
    found = Headers(
        user=place.text("user", USER),
        groups=place.text("groups", GROUPS),
        uid=place.text("uid", ""),
        separator=place.text("groupSeparator", ""),
    )
    for name in (found.user, found.groups, *([found.uid] if found.uid else [])):
        if not HEADER.fullmatch(name):
            raise ValueError(
                f"{place.where}: {name!r} is no header that can be told from others: expected letters, digits and -,"
                " and no underscore"
            )
        if name.lower() in TAKEN or name.lower().startswith(TAKEN_BEGINNINGS):
            raise ValueError(f"{place.where}: {name} says something else in a request; expected such as {USER}")
    each_once(f"{place.where}: header", [name.lower() for name in found.names])
    if found.separator not in ("", ",", ";", "|"):
        raise ValueError(f"{place.where}.groupSeparator: {found.separator!r}; expected one of , ; | or nothing")
    # An address is given to somebody else one day, and says nothing of who verified it.
    if found.uid.lower().endswith("email"):
        raise ValueError(
            f"{place.where}.uid: {found.uid} is an email address; use an identifier that never changes owner"
        )
    if found.user.lower().endswith("email") and not found.uid:
        raise ValueError(
            f"{place.where}.user: {found.user} is an email address, which may change owner: name a header that"
            " holds the person's identifier as uid, or another one as user"
        )
    return found


def _read_prefix(place: FileSection) -> str:
    place.allow("prefix")
    return place.prefix()


def is_name(issuer: str, subject: str) -> bool:
    """Whether this is what a proxy calls somebody, as it was typed perhaps, and no identifier."""
    return not is_issuer(issuer) and subject.startswith(BY_NAME)


def is_issuer(issuer: str) -> bool:
    """Whether who vouches is an issuer, by its address, and not a proxy, by its name."""
    return "://" in issuer


class NameRefused(Exception):
    """The proxy's word makes nobody on this cluster; the message says why."""


def identity_on(names: ClusterNames, said: Said) -> Identity:
    """Raises NameRefused."""
    username = names.username_prefix + said.user
    prefix = names.groups_prefix
    groups = () if prefix is None else tuple(sorted(prefix + group for group in said.groups))
    for name in (username, *groups):
        if name.startswith(RESERVED):
            raise NameRefused(f"{name} starts with {RESERVED}, which only the cluster itself may prove")
        if len(name) > MAX_CHARACTERS:
            raise NameRefused(f"a user or group name is longer than {MAX_CHARACTERS} characters")
    return Identity(username, groups)


@dataclass(frozen=True, slots=True)
class Said:
    """Who `proxy` says that this is, without any cluster's prefixes. `uid` is "" where the proxy sends none."""

    proxy: IdentityProxy
    user: str
    groups: tuple[str, ...] = ()
    uid: str = ""

    @property
    def subject(self) -> str:
        """What is given to nobody else: the uid where the proxy sends one, else the name.

        Each says which it is, but for the `sub` of the proxy's issuer, which is kept as the issuer's own people are.
        """
        if self.proxy.issuer:
            return self.uid
        return BY_UID + self.uid if self.proxy.headers.uid else BY_NAME + self.user


@dataclass(frozen=True, slots=True)
class Unusable:
    """The proxy names somebody, in a way that could be read as somebody else; `why` quotes nothing of it."""

    proxy: IdentityProxy
    why: str


class _BadHeader(Exception):
    """A header that can be read in two ways, or in none."""


def said_in(environ: MutableMapping[str, Any], peer: str, proxies: IdentityProxies) -> Said | Unusable | None:
    """What the proxy at `peer` says; None where no proxy is there, or where it names nobody."""
    proxy = proxies.at(peer)
    if proxy is None or not environ.get(_meta_key(proxy.headers.user)):
        return None
    headers = proxy.headers
    try:
        user = _read_single(headers.user, environ)
        uid = _read_single(headers.uid, environ) if headers.uid else ""
        return Said(proxy, user, _read_groups(headers, environ), uid)
    except _BadHeader as exc:
        return Unusable(proxy, str(exc))


def drop(environ: MutableMapping[str, Any], proxies: IdentityProxies) -> None:
    """Take away every header that says who somebody is, whoever sent it."""
    named = {_meta_key(name) for proxy in proxies for name in proxy.headers.names}
    for key in [key for key in environ if key in named or key in CUSTOMARY_ONES or key.startswith(CUSTOMARY)]:
        del environ[key]


def joined(pairs: Iterable[tuple[str, str]], proxies: IdentityProxies) -> Pairs:
    """Headers, as a server has read them one by one, with those of the proxies that are there twice made one each."""
    named = {name.upper() for proxy in proxies for name in proxy.headers.names}
    found: dict[str, list[str]] = {}
    others: Pairs = []
    for name, value in pairs:
        if name.upper() in named:
            found.setdefault(name.upper(), []).append(value)
        else:
            others.append((name, value))
    return [*others, *((name, LINES.join(values)) for name, values in found.items())]


def _meta_key(name: str) -> str:
    return "HTTP_" + name.upper().replace("-", "_")


def _read_single(name: str, environ: MutableMapping[str, Any]) -> str:
    """A comma is refused: it may stand between the values of two headers."""
    value = str(environ.get(_meta_key(name), ""))
    if not value:
        raise _BadHeader(f"{name} is missing")
    if LINES in value or "," in value:
        raise _BadHeader(f"{name} holds several values, or a comma")
    _check_printable(name, value)
    return value


def _read_groups(headers: Headers, environ: MutableMapping[str, Any]) -> tuple[str, ...]:
    """No header is no group. One that cannot be read is not taken for none: some of it may have been left out."""
    value = str(environ.get(_meta_key(headers.groups), ""))
    if len(value) > MAX_GROUPS * MAX_HEADER_CHARACTERS:
        raise _BadHeader(f"{headers.groups} is too long")
    parts = value.split(LINES)
    if headers.separator:
        parts = [part.strip(" ") for line in parts for part in line.split(headers.separator)]
    groups = sorted({part for part in parts if part})
    if len(groups) > MAX_GROUPS:
        raise _BadHeader(f"{headers.groups} holds more than {MAX_GROUPS} groups")
    for group in groups:
        _check_printable(headers.groups, group)
    return tuple(groups)


def _check_printable(name: str, value: str) -> None:
    if len(value) > MAX_HEADER_CHARACTERS:
        raise _BadHeader(f"{name} holds a value of more than {MAX_HEADER_CHARACTERS} characters")
    if not PRINTABLE.fullmatch(value):
        raise _BadHeader(f"{name} holds a value that is not printable ASCII, or begins or ends with a space")
