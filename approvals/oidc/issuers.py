"""The operator's file of issuers (PRATIQUE_OIDC_FILE): a whole issuer counts on a whole cluster, or not at all.

The words are those of Kubernetes' AuthenticationConfiguration (`claimMappings`, `claimValidationRules`), so that an
operator copies what the cluster's API server is started with. Expressions of CEL are refused: nothing here runs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from approvals.operators_file import FileSection, NamePrefixes, check_prefixes_apart, each_once, yaml_of

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
DEFAULT_SCOPES = ("openid", "profile", "groups", "offline_access")
# The tokens of a command line are not renewed, so that it asks for none to do so with.
COMMAND_LINE_SCOPES = ("openid", "profile", "groups")


@dataclass(frozen=True, slots=True)
class Prefixed:
    """A claim, and what is put before its value."""

    claim: str
    prefix: str


@dataclass(frozen=True, slots=True)
class ClusterRules:
    """How one cluster names an issuer's people: as its API server does. `required` are claims and their values."""

    cluster: str
    username: Prefixed
    groups: Prefixed | None = None
    required: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class OidcClient:
    """As which client people sign in; without a secret it is a public one, and PKCE protects it."""

    id: str
    secret: str = ""
    scopes: tuple[str, ...] = DEFAULT_SCOPES

    def __repr__(self) -> str:
        return f"Client({self.id!r})"


@dataclass(frozen=True, slots=True)
class Issuer:
    """`url` is what its tokens say in `iss`, to the letter. `audiences` are of tokens that scripts send.

    `client` is of browsers, `command_line` of `kubectl pratique login`, which comes back to a loopback address.
    """

    name: str
    title: str
    url: str
    clusters: tuple[ClusterRules, ...]
    client: OidcClient | None = None
    audiences: tuple[str, ...] = ()
    ca_file: str = ""
    command_line: OidcClient | None = None

    def rules_on(self, cluster: str) -> ClusterRules | None:
        return next((rules for rules in self.clusters if rules.cluster == cluster), None)


@dataclass(frozen=True, slots=True)
class Issuers:
    every: tuple[Issuer, ...] = ()

    def __iter__(self) -> Iterator[Issuer]:
        return iter(self.every)

    def named(self, name: str) -> Issuer | None:
        return next((issuer for issuer in self.every if issuer.name == name), None)

    def with_url(self, url: str) -> Issuer | None:
        return next((issuer for issuer in self.every if issuer.url == url), None)

    def prefixes(self) -> list[NamePrefixes]:
        return [
            (issuer.name, one.cluster, one.username.prefix, one.groups.prefix if one.groups else None)
            for issuer in self.every
            for one in issuer.clusters
        ]

    def of_cluster(self, cluster: str) -> tuple[Issuer, ...]:
        return tuple(issuer for issuer in self.every if issuer.rules_on(cluster))


def parse_issuers(path: str) -> Issuers:
    """The issuers of the file at `path`, none of "". Raises ValueError that names the place in the file."""
    if not path:
        return Issuers()
    return read_issuers(yaml_of(path), Path(path).parent)


def read_issuers(content: object, folder: Path) -> Issuers:
    """Issuers from the file's content; names of files in it are relative to `folder`."""
    top = FileSection("file", content)
    top.allow("issuers")
    every = tuple(_issuer(one, folder) for one in top.items("issuers"))
    each_once("issuers: name", [one.name for one in every])
    each_once("issuers: url", [one.url for one in every])
    issuers = Issuers(every)
    check_prefixes_apart(issuers.prefixes())
    return issuers


def is_protected(url: str) -> bool:
    """Whether nobody on the way can read or change what is sent: TLS, or this machine itself."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def _issuer(place: FileSection, folder: Path) -> Issuer:
    place.allow("name", "title", "url", "certificateAuthorityFile", "audiences", "client", "commandLine", "clusters")
    name = place.name()
    client = _client(place.child("client"), folder)
    ca_file = place.text("certificateAuthorityFile", "")
    issuer = Issuer(
        name=name,
        title=place.text("title", name),
        url=_url(place),
        clusters=tuple(_rules(one) for one in place.items("clusters")),
        client=client,
        audiences=place.texts("audiences"),
        ca_file=str(folder / ca_file) if ca_file else "",
        command_line=_client(place.child("commandLine"), folder, COMMAND_LINE_SCOPES),
    )
    if client is None and not issuer.audiences:
        raise ValueError(f"{place.where}: expected client (people sign in), audiences (scripts send tokens), or both")
    each_once(f"{place.where}.clusters: name", [rules.cluster for rules in issuer.clusters])
    return issuer


def _url(place: FileSection) -> str:
    url = place.text("url")
    parts = urlsplit(url)
    if not is_protected(url) or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{place.where}.url: {url!r}; expected https://host/path, as the issuer's tokens say in iss")
    return url


def _client(place: FileSection | None, folder: Path, usual: tuple[str, ...] = DEFAULT_SCOPES) -> OidcClient | None:
    if place is None:
        return None
    place.allow("id", "secretFile", "scopes")
    scopes = place.texts("scopes", usual)
    if "openid" not in scopes:
        raise ValueError(f"{place.where}.scopes: openid is missing; without it there is no ID token")
    name = place.text("secretFile", "")
    try:
        secret = (folder / name).read_text().strip() if name else ""
    except (OSError, UnicodeDecodeError) as exc:
        raise ValueError(f"{place.where}.secretFile: {name} cannot be read") from exc
    if name and not secret:
        raise ValueError(f"{place.where}.secretFile: {name} is empty")
    return OidcClient(place.text("id"), secret, scopes)


def _rules(place: FileSection) -> ClusterRules:
    place.allow("name", "claimMappings", "claimValidationRules")
    mappings = place.needed("claimMappings")
    mappings.allow("username", "groups")
    groups = mappings.child("groups")
    return ClusterRules(
        cluster=place.text("name"),
        username=_prefixed(mappings.needed("username")),
        groups=_prefixed(groups) if groups else None,
        required=tuple(_required(one) for one in place.items("claimValidationRules")),
    )


def _prefixed(place: FileSection) -> Prefixed:
    _without_expressions(place, "claim", "prefix")
    return Prefixed(claim=place.text("claim"), prefix=place.prefix())


def _required(place: FileSection) -> tuple[str, str]:
    _without_expressions(place, "claim", "requiredValue")
    return place.text("claim"), place.text("requiredValue", "")


def _without_expressions(place: FileSection, *keys: str) -> None:
    if "expression" in place.mapping():
        raise ValueError(f"{place.where}.expression: expressions are not supported; expected {' and '.join(keys)}")
    place.allow(*keys)
