"""Which kubeconfigs may register a cluster (security-rules.md S19). Pure: nothing is opened, started or resolved here.

A kubeconfig is a small program: it can start commands, read files, choose proxies, and switch off the check of who
answers. Who registers a cluster is not always who owns the machine, so only the operator may allow the first three.
Nobody may allow the last one, because Pratique sends credentials to whoever answers and believes what it reads there.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import yaml
from cryptography import x509

from provisioner.errors import BadSource

MAX_KUBECONFIG_BYTES = 1024 * 1024

_MERGE = "tag:yaml.org,2002:merge"
_WORD = re.compile(r"[A-Za-z][-A-Za-z0-9_.]{0,39}")
_ADDRESS = re.compile(r"https://[!-~]+")
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class _Section:
    """One of the three named lists of clientcmd v1, and which keys its entries may have.

    `plain` is used by everybody, `reaching` (commands, files, other hosts) only where the operator trusts it, `never`
    by nobody, with the reason; `idle` changes nothing and is left out.
    """

    plural: str
    singular: str
    plain: frozenset[str]
    reaching: frozenset[str] = frozenset()
    never: Mapping[str, str] | None = None
    idle: frozenset[str] = frozenset({"extensions"})


_UNCHECKED = "Pratique must check who answers: remove it and put the CA into certificate-authority-data"
_AS_OTHERS = "Pratique would ignore it and act as the owner of the credentials: register credentials of that account"
_CONTEXTS = _Section("contexts", "context", frozenset({"cluster", "user"}), idle=frozenset({"extensions", "namespace"}))
_CLUSTERS = _Section(
    "clusters",
    "cluster",
    frozenset({"server", "certificate-authority-data", "tls-server-name"}),
    reaching=frozenset({"certificate-authority", "proxy-url"}),
    never={"insecure-skip-tls-verify": _UNCHECKED},
    idle=frozenset({"extensions", "disable-compression"}),
)
_USERS = _Section(
    "users",
    "user",
    frozenset({"token", "client-certificate-data", "client-key-data"}),
    reaching=frozenset({"exec", "auth-provider", "tokenFile", "client-certificate", "client-key"}),
    never={
        **dict.fromkeys(("as", "as-uid", "as-groups", "as-user-extra"), _AS_OTHERS),
        **dict.fromkeys(("username", "password"), "Kubernetes knows no basic authentication: use a token"),
    },
)
_STRUCTURED = {"exec", "auth-provider"}
_TOP = {"apiVersion", "kind", "preferences", "extensions", "current-context", "contexts", "clusters", "users"}


def read_kubeconfig(kubeconfig: str | Mapping[str, Any], *, context: str = "", trusted: bool = False) -> dict[str, Any]:
    """The part of a kubeconfig that one context uses: one context, one cluster, one user, only the keys that count.

    `context` chooses another one than `current-context`. Raises BadSource where it is no kubeconfig, is ambiguous, has
    no such context, would skip the check of certificates or impersonate; and, unless `trusted`, where any entry reaches
    outside the text or has a key that Pratique does not know.
    """
    document = _parse(kubeconfig) if isinstance(kubeconfig, str) else dict(kubeconfig)
    sections = {section.plural: dict(_named_entries(document, section)) for section in (_CONTEXTS, _CLUSTERS, _USERS)}
    chosen = context or str(document.get("current-context") or "")
    if chosen not in sections["contexts"]:
        names = ", ".join(map(_quoted, sorted(sections["contexts"]))) or "none"
        raise BadSource(f"kubeconfig: no context {chosen!r}; it has {names}")
    if not trusted:  # every entry, not only the chosen context: the context may be changed later
        if strange := sorted(str(key) for key in document if key not in _TOP):
            raise BadSource(f"kubeconfig: {_safe_key(strange[0])} is no field of a kubeconfig: remove it")
        for section in (_CONTEXTS, _CLUSTERS, _USERS):
            for name, body in sections[section.plural].items():
                _check_entry(section, name, body)
    named = sections["contexts"][chosen]
    cluster_name, user_name = str(named.get("cluster") or ""), str(named.get("user") or "")
    cluster, user = sections["clusters"].get(cluster_name), sections["users"].get(user_name)
    if cluster is None:
        raise BadSource(f"kubeconfig: context {chosen!r} names a cluster that is not there")
    if user is None and user_name:
        raise BadSource(f"kubeconfig: context {chosen!r} names a user that is not there")
    _check_server(str(cluster.get("server") or ""))
    part: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": chosen}
    part["contexts"] = [{"name": chosen, "context": {"cluster": cluster_name, "user": user_name}}]
    part["clusters"] = [{"name": cluster_name, "cluster": _used(_CLUSTERS, cluster_name, cluster)}]
    part["users"] = [{"name": user_name, "user": _used(_USERS, user_name, user or {})}]
    return part


def kept_kubeconfig(kubeconfig: str, *, context: str = "", trusted: bool = False) -> str:
    """`read_kubeconfig` as the text to keep of a cluster, so that no credentials of other clusters are kept with it.

    Raises BadSource as well where it has several contexts and `context` chooses none.
    """
    document = _parse(kubeconfig)
    contexts = sorted(name for name, _ in _named_entries(document, _CONTEXTS))
    if len(contexts) > 1 and not context:
        names = ", ".join(map(_quoted, contexts))
        raise BadSource(f"kubeconfig: it has {len(contexts)} contexts ({names}): choose one")
    return json.dumps(read_kubeconfig(document, context=context, trusted=trusted), sort_keys=True)


def asks_for_credentials(document: Mapping[str, Any]) -> bool:
    """Whether the user of what `read_kubeconfig` returned gets credentials from a command or a token file."""
    user = document["users"][0]["user"] if document["users"] else {}
    return bool(user.get("exec") or user.get("tokenFile"))


class _Loader(yaml.SafeLoader):
    """YAML in which every key stands once and is written where it counts.

    The parser of this library takes the last of two equal keys, others the first: people would read another server.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                raise BadSource("kubeconfig: it merges mappings (<<) or has a key that is not text: write it out")
            if key.value in seen:
                raise BadSource(
                    f"kubeconfig: {_safe_key(key.value)} stands twice in one mapping: remove one of the two"
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def _parse(text: str) -> dict[str, Any]:
    if len(text) > MAX_KUBECONFIG_BYTES:
        raise BadSource(f"kubeconfig: {len(text)} characters, expected at most {MAX_KUBECONFIG_BYTES}")
    try:
        document = yaml.load(text, _Loader)  # noqa: S506 -- a SafeLoader
    except (yaml.YAMLError, RecursionError, ValueError) as exc:
        # The error of the parser quotes lines of the file, and these may be credentials.
        raise BadSource("kubeconfig: not YAML") from exc.with_traceback(None)
    if not isinstance(document, dict):
        raise BadSource("kubeconfig: expected a mapping with clusters, users and contexts")
    return document


def _named_entries(document: Mapping[str, Any], section: _Section) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every (name, body) of a named list."""
    listed = document.get(section.plural) or []
    if not isinstance(listed, list):
        raise BadSource(f"kubeconfig: expected {section.plural} to be a list")
    seen: set[str] = set()
    for item in listed:
        if not isinstance(item, Mapping) or not isinstance(item.get(section.singular) or {}, Mapping):
            raise BadSource(f"kubeconfig: an entry of {section.plural} is no mapping")
        name = str(item.get("name") or "")
        if name in seen:
            raise BadSource(f"kubeconfig: {section.plural} has two entries named {name!r}: remove one of them")
        seen.add(name)
        yield name, item.get(section.singular) or {}


def _check_entry(section: _Section, name: str, body: Mapping[str, Any]) -> None:
    where = f"kubeconfig: {section.singular} {name!r}"
    _refuse_forbidden(section, name, body)
    if reaching := [key for key in sorted(section.reaching) if body.get(key)]:
        raise BadSource(
            f"{where} uses {', '.join(reaching)}, which reach outside the kubeconfig;"
            " put a token or the data inline, or let the operator trust this cluster"
        )
    known = section.plain | section.reaching | section.idle | set(section.never or {})
    if strange := sorted(str(key) for key in body if key not in known):
        raise BadSource(f"{where} has {_safe_key(strange[0])}, which Pratique does not know: remove it")


def _refuse_forbidden(section: _Section, name: str, body: Mapping[str, Any]) -> None:
    for key, reason in (section.never or {}).items():
        value = body.get(key)
        if value is not None and value is not False and value not in ("", [], {}):
            raise BadSource(f"kubeconfig: {section.singular} {name!r} has {key}; {reason}")


def _used(section: _Section, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that count, checked for their form."""
    _refuse_forbidden(section, name, body)
    used = {key: body[key] for key in sorted(section.plain | section.reaching) if body.get(key)}
    for key, value in used.items():
        expected = Mapping if key in _STRUCTURED else str
        if not isinstance(value, expected):
            raise BadSource(f"kubeconfig: {key} of {section.singular} {name!r} is no {_KIND[expected]}")
    if "token" in used and not _TOKEN.fullmatch(used["token"]):
        raise BadSource(f"kubeconfig: the token of user {name!r} has blanks, line ends or characters beyond ASCII")
    if ("client-certificate-data" in used) != ("client-key-data" in used) and not section.reaching & set(used):
        raise BadSource(f"kubeconfig: user {name!r} has a client certificate without its key, or the other way round")
    return used


_KIND: dict[type, str] = {str: "text", Mapping: "mapping"}


def _check_server(server: str) -> None:
    try:
        parts = urlsplit(server)
        is_whole = bool(parts.hostname) and parts.port != 0
    except ValueError as exc:
        raise BadSource("kubeconfig: the server is no URL") from exc
    if parts.scheme == "http":
        raise BadSource(
            "kubeconfig: expected an https:// server, found http://, which would send credentials in plain text and"
            " believe whoever answers"
        )
    if not _ADDRESS.fullmatch(server) or not is_whole:
        raise BadSource(f"kubeconfig: expected an https:// server, found {_safe_key(parts.scheme or 'nothing')}")
    if parts.username or parts.password or parts.query or parts.fragment or "\\" in server:
        raise BadSource("kubeconfig: the server may not carry credentials, a query or a fragment")


def _quoted(name: str) -> str:
    """A name as it may be said: a plain one as it is, others with what they would do to an eye escaped."""
    return name if _WORD.fullmatch(name) else repr(name)


def _safe_key(key: str) -> str:
    """A key as it may be said: what does not look like one may be a misplaced secret."""
    return key if _WORD.fullmatch(key) else "a key"


def end_of_credentials(kubeconfig: str, *, trusted: bool = False) -> datetime | None:
    """When the first of them ends: a client certificate, or a token that is a JWT. None where none says so."""
    try:
        document = read_kubeconfig(kubeconfig, trusted=trusted)
    except BadSource:
        return None
    user = document["users"][0]["user"] if document["users"] else {}
    ends = []
    with suppress(ValueError, IndexError):
        data = base64.b64decode(str(user.get("client-certificate-data") or ""))
        ends.append(x509.load_pem_x509_certificates(data)[0].not_valid_after_utc)
    # The token's `exp` is unproved: the API server alone proves it.
    with suppress(IndexError, KeyError, TypeError, ValueError, OverflowError, OSError, binascii.Error):
        part = str(user.get("token") or "").split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        ends.append(datetime.fromtimestamp(float(claims["exp"]), UTC))
    return min(ends, default=None)
