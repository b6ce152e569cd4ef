"""Which kubeconfigs may register a cluster (security.md S19). Pure: nothing is opened, started or resolved here.

A kubeconfig is a small program: it can start commands, read files and choose proxies on the machine that loads it. Who
registers a cluster is not always who owns that machine, so all of this needs the operator's trust.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import yaml

from provisioner.errors import BadSource

MAX_KUBECONFIG_BYTES = 1024 * 1024

# What reaches outside the text itself: commands, files, other hosts. The keys are those of clientcmd v1.
_REACHING_USER_KEYS = ("exec", "auth-provider", "tokenFile", "client-certificate", "client-key")
_REACHING_CLUSTER_KEYS = ("certificate-authority", "proxy-url")


def read_kubeconfig(kubeconfig: str | Mapping[str, Any], *, context: str = "", trusted: bool = False) -> dict[str, Any]:
    """The kubeconfig as a dict with `current-context` set to the chosen one.

    Raises BadSource where it is not a kubeconfig, names no such context, or, unless `trusted`, reaches outside itself.
    """
    document = _parse(kubeconfig) if isinstance(kubeconfig, str) else dict(kubeconfig)
    chosen = context or str(document.get("current-context") or "")
    contexts = dict(_entries(document, "contexts", "context"))
    if chosen not in contexts:
        raise BadSource(f"kubeconfig: no context {chosen!r}; it has {', '.join(sorted(contexts)) or 'none'}")
    clusters = dict(_entries(document, "clusters", "cluster"))
    cluster = clusters.get(str(contexts[chosen].get("cluster") or ""))
    if cluster is None:
        raise BadSource(f"kubeconfig: context {chosen!r} names a cluster that is not there")
    _check_server(str(cluster.get("server") or ""))
    if not trusted:
        _refuse_reaching(document)
    return {**document, "current-context": chosen}


def asks_for_credentials(document: Mapping[str, Any]) -> bool:
    """Whether the user of the current context gets credentials from a command or a token file."""
    contexts, users = dict(_entries(document, "contexts", "context")), dict(_entries(document, "users", "user"))
    user = users.get(str(contexts[document["current-context"]].get("user") or "")) or {}
    return bool(user.get("exec") or user.get("tokenFile"))


def _parse(text: str) -> dict[str, Any]:
    if len(text) > MAX_KUBECONFIG_BYTES:
        raise BadSource(f"kubeconfig: {len(text)} characters, expected at most {MAX_KUBECONFIG_BYTES}")
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as exc:
        # The error of the parser quotes lines of the file, and these may be credentials.
        raise BadSource("kubeconfig: not YAML") from exc.with_traceback(None)
    if not isinstance(document, dict):
        raise BadSource("kubeconfig: expected a mapping with clusters, users and contexts")
    return document


def _entries(document: Mapping[str, Any], plural: str, singular: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every (name, body) of a named list; the first of a name wins, as in kubectl."""
    listed = document.get(plural) or []
    if not isinstance(listed, list):
        raise BadSource(f"kubeconfig: expected {plural} to be a list")
    seen: set[str] = set()
    for item in listed:
        if not isinstance(item, Mapping) or not isinstance(item.get(singular) or {}, Mapping):
            raise BadSource(f"kubeconfig: an entry of {plural} is no mapping")
        name = str(item.get("name") or "")
        if name not in seen:
            seen.add(name)
            yield name, item.get(singular) or {}


def _check_server(server: str) -> None:
    try:
        parts = urlsplit(server)
    except ValueError as exc:
        raise BadSource("kubeconfig: the server is no URL") from exc
    if parts.scheme not in {"https", "http"} or not parts.hostname:
        raise BadSource(f"kubeconfig: expected an https:// server, found {parts.scheme or 'nothing'}://")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadSource("kubeconfig: the server may not carry credentials, a query or a fragment")


def _refuse_reaching(document: Mapping[str, Any]) -> None:
    """Look at every entry, not only at the chosen context: the context may be changed later."""
    for plural, singular, keys in (
        ("users", "user", _REACHING_USER_KEYS),
        ("clusters", "cluster", _REACHING_CLUSTER_KEYS),
    ):
        for item in document.get(plural) or []:
            body = item.get(singular) or {} if isinstance(item, Mapping) else {}
            found = [key for key in keys if isinstance(body, Mapping) and body.get(key)]
            if found:
                name = str(item.get("name") or "")
                raise BadSource(
                    f"kubeconfig: {singular} {name!r} uses {', '.join(found)}, which reach outside the kubeconfig;"
                    " put the data inline, or let the operator trust this cluster"
                )
