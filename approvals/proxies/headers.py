"""What a proxy says about a request's person: taken out of the request's headers, or taken away from them.

`environ` is WSGI's: names in capitals, dashes as underscores, values as Latin-1. Two headers of one name are one value
there, joined with commas, unless `joined` has put LINES between them before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

from approvals.proxies.declared import BY_NAME, BY_UID, Headers, IdentityProxies, IdentityProxy

# Between the values of several headers of one name; no header holds one.
LINES = "\n"
MAX_CHARACTERS = 250
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
    if proxy is None or not environ.get(_key(proxy.headers.user)):
        return None
    headers = proxy.headers
    try:
        user = _one(headers.user, environ)
        uid = _one(headers.uid, environ) if headers.uid else ""
        return Said(proxy, user, _groups(headers, environ), uid)
    except _BadHeader as exc:
        return Unusable(proxy, str(exc))


def drop(environ: MutableMapping[str, Any], proxies: IdentityProxies) -> None:
    """Take away every header that says who somebody is, whoever sent it."""
    named = {_key(name) for proxy in proxies for name in proxy.headers.names}
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


def _key(name: str) -> str:
    return "HTTP_" + name.upper().replace("-", "_")


def _one(name: str, environ: MutableMapping[str, Any]) -> str:
    """A comma is refused: it may stand between the values of two headers."""
    value = str(environ.get(_key(name), ""))
    if not value:
        raise _BadHeader(f"{name} is missing")
    if LINES in value or "," in value:
        raise _BadHeader(f"{name} holds several values, or a comma")
    _check(name, value)
    return value


def _groups(headers: Headers, environ: MutableMapping[str, Any]) -> tuple[str, ...]:
    """No header is no group. One that cannot be read is not taken for none: some of it may have been left out."""
    value = str(environ.get(_key(headers.groups), ""))
    if len(value) > MAX_GROUPS * MAX_CHARACTERS:
        raise _BadHeader(f"{headers.groups} is too long")
    parts = value.split(LINES)
    if headers.separator:
        parts = [part.strip(" ") for line in parts for part in line.split(headers.separator)]
    groups = sorted({part for part in parts if part})
    if len(groups) > MAX_GROUPS:
        raise _BadHeader(f"{headers.groups} holds more than {MAX_GROUPS} groups")
    for group in groups:
        _check(headers.groups, group)
    return tuple(groups)


def _check(name: str, value: str) -> None:
    if len(value) > MAX_CHARACTERS:
        raise _BadHeader(f"{name} holds a value of more than {MAX_CHARACTERS} characters")
    if not PRINTABLE.fullmatch(value):
        raise _BadHeader(f"{name} holds a value that is not printable ASCII, or begins or ends with a space")
