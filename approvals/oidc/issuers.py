"""The operator's file of issuers (PRATIQUE_OIDC_FILE): a whole issuer counts on a whole cluster, or not at all.

The words are those of Kubernetes' AuthenticationConfiguration (`claimMappings`, `claimValidationRules`), so that an
operator copies what the cluster's API server is started with. Expressions of CEL are refused: nothing here runs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from approvals.operators_file import FileSection, NamePrefixes, check_prefixes_apart, each_once, yaml_of
from provisioner.values import Identity

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
DEFAULT_SCOPES = ("openid", "profile", "groups", "offline_access")
# The tokens of a command line are not renewed, so that it asks for none to do so with.
COMMAND_LINE_SCOPES = ("openid", "profile", "groups")


RESERVED = "system:"
MAX_GROUPS = 1000
MAX_CHARACTERS = 253
OVERAGE = (
    "the issuer sent no groups because they do not fit in a token; configure it to send only the groups that count"
    " on this cluster"
)
NO_GROUPS_CLAIM = "the issuer sent no claim {claim}, so the groups are unknown; request the scope that provides it"


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
            (issuer.name, cluster.cluster, cluster.username.prefix, cluster.groups.prefix if cluster.groups else None)
            for issuer in self.every
            for cluster in issuer.clusters
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
    every = tuple(_read_issuer(place, folder) for place in top.items("issuers"))
    each_once("issuers: name", [issuer.name for issuer in every])
    each_once("issuers: url", [issuer.url for issuer in every])
    issuers = Issuers(every)
    check_prefixes_apart(issuers.prefixes())
    return issuers


def is_protected(url: str) -> bool:
    """Whether nobody on the way can read or change what is sent: TLS, or this machine itself."""
    parts = urlsplit(url)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def _read_issuer(place: FileSection, folder: Path) -> Issuer:
    place.allow("name", "title", "url", "certificateAuthorityFile", "audiences", "client", "commandLine", "clusters")
    name = place.name()
    client = _read_client(place.child("client"), folder)
    ca_file = place.text("certificateAuthorityFile", "")
    url = place.text("url")
    parts = urlsplit(url)
    if not is_protected(url) or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise ValueError(f"{place.where}.url: {url!r}; expected https://host/path, as the issuer's tokens say in iss")
    issuer = Issuer(
        name=name,
        title=place.text("title", name),
        url=url,
        clusters=tuple(map(_read_rules, place.items("clusters"))),
        client=client,
        audiences=place.texts("audiences"),
        ca_file=str(folder / ca_file) if ca_file else "",
        command_line=_read_client(place.child("commandLine"), folder, COMMAND_LINE_SCOPES),
    )
    if client is None and not issuer.audiences:
        raise ValueError(f"{place.where}: expected client (people sign in), audiences (scripts send tokens), or both")
    each_once(f"{place.where}.clusters: name", [rules.cluster for rules in issuer.clusters])
    return issuer


def _read_client(place: FileSection | None, folder: Path, usual: tuple[str, ...] = DEFAULT_SCOPES) -> OidcClient | None:
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


def _read_rules(place: FileSection) -> ClusterRules:
    place.allow("name", "claimMappings", "claimValidationRules")
    mappings = place.needed("claimMappings")
    mappings.allow("username", "groups")
    groups = mappings.child("groups")
    required = []
    for rule in place.items("claimValidationRules"):
        _refuse_expressions(rule, "claim", "requiredValue")
        required.append((rule.text("claim"), rule.text("requiredValue", "")))
    return ClusterRules(
        cluster=place.text("name"),
        username=_read_prefixed(mappings.needed("username")),
        groups=_read_prefixed(groups) if groups else None,
        required=tuple(required),
    )


def _read_prefixed(place: FileSection) -> Prefixed:
    _refuse_expressions(place, "claim", "prefix")
    return Prefixed(claim=place.text("claim"), prefix=place.prefix())


def _refuse_expressions(place: FileSection, *keys: str) -> None:
    if "expression" in place.mapping():
        raise ValueError(f"{place.where}.expression: expressions are not supported; expected {' and '.join(keys)}")
    place.allow(*keys)


class ClaimsRefused(Exception):
    """These claims make nobody on this cluster; the message says which claim and why."""


@dataclass(frozen=True, slots=True)
class NamedIdentity:
    """`groups_unknown` says why nobody knows the groups; such a name may neither read reports nor decide."""

    identity: Identity
    groups_unknown: str = ""


def names_on(rules: ClusterRules, claims: Mapping[str, Any]) -> NamedIdentity:
    """Whom verified `claims` mean by a cluster's rules. Raises ClaimsRefused."""
    for claim, value in rules.required:
        if claims.get(claim) != value:
            raise ClaimsRefused(f"the claim {claim} does not match what cluster {rules.cluster} requires")
    claim, room = rules.username.claim, MAX_CHARACTERS - len(rules.username.prefix)
    name = claims.get(claim)
    if not isinstance(name, str) or not 1 <= len(name) <= room or not name.isprintable():
        raise ClaimsRefused(f"the claim {claim}, which names people on cluster {rules.cluster}, is not a usable string")
    if claim == "email" and claims.get("email_verified", True) is not True:
        raise ClaimsRefused("the issuer has not verified the email address")
    username = rules.username.prefix + name
    groups, unknown = _read_groups(rules, claims)
    for told in (username, *groups):
        if told.startswith(RESERVED):
            raise ClaimsRefused(f"{told} starts with {RESERVED}, which only the cluster itself can assert")
    return NamedIdentity(Identity(username, groups), unknown)


def _read_groups(rules: ClusterRules, claims: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    if rules.groups is None:
        return (), ""
    claim = rules.groups.claim
    # The issuer may name another place for the groups, as Microsoft Entra does where there are over 200.
    elsewhere = claims.get("_claim_names")
    if (isinstance(elsewhere, dict) and claim in elsewhere) or claims.get("hasgroups") in (True, "true"):
        return (), OVERAGE
    if claim not in claims:
        return (), NO_GROUPS_CLAIM.format(claim=claim)
    value = claims[claim]
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(group, str) and group.isprintable() for group in found):
        raise ClaimsRefused(f"the claim {claim} is neither a string nor a list of printable strings")
    if len(found) > MAX_GROUPS or any(len(group) > MAX_CHARACTERS for group in found):
        return (), OVERAGE
    return tuple(sorted({rules.groups.prefix + group for group in found if group})), ""
