"""How the text of a variable is read: each function returns the value, or raises ValueError in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import ip_network
from urllib.parse import urlsplit

MIN_TOKEN_CHARACTERS = 32
DEPLOYMENT = re.compile(r"[a-zA-Z0-9_-]{1,63}/(?:catalogs/)?[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
# All of provisioner.values.Severity but "unknown", which is worse than every limit, mildest first.
LIMITS = ("safe", "notable", "dangerous", "breaking", "critical")


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def hosts(text: str) -> list[str]:
    found = words(text)
    if "*" in found:
        raise ValueError("'*' would be every host: name each, as host, host:port or *.suffix")
    return found


def networks(text: str) -> list[str]:
    found = words(text)
    for network in found:
        try:
            ip_network(network)
        except ValueError as exc:
            raise ValueError(f"{network!r} was given: expected a network, such as 10.0.0.0/8") from exc
    return found


def site(text: str) -> str:
    """The address of a site, under which paths are put."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} was given: expected https://HOST")
    return text


def switch(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"", "0", "false", "no", "off"}:
        return False
    raise ValueError(f"{text!r} is not a boolean: expected true or false")


def number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Reads a whole number between two bounds, which are allowed themselves."""

    def read(text: str) -> int:
        found = int(text) if re.fullmatch(r"\s*[0-9]{1,18}\s*", text, re.ASCII) else least - 1
        if found < least or (most is not None and found > most):
            expected = f"{least} or more" if most is None else f"{least} to {most}"
            raise ValueError(f"{text!r} was given: expected a whole number, {expected}")
        return found

    return read


def choice(*allowed: str) -> Callable[[str], str]:
    """Reads one of a few words."""

    def read(text: str) -> str:
        if text not in allowed:
            *most, last = filter(None, allowed)
            raise ValueError(f"{text!r} was given: expected {', '.join(most)} or {last}")
        return text

    return read


def deployments(text: str) -> list[str]:
    """Each a cluster and a deployment or catalog of it, exactly: a pattern would let whoever names one choose."""
    found = words(text)
    for one in found:
        if not DEPLOYMENT.fullmatch(one):
            raise ValueError(f"{one!r} is not a deployment: expected CLUSTER/NAME or CLUSTER/catalogs/NAME")
    return found


def long_token(text: str) -> str:
    """A bearer token that nobody guesses, or "". The error does not quote it."""
    if text and (len(text) < MIN_TOKEN_CHARACTERS or not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", text)):
        raise ValueError(f"expected at least {MIN_TOKEN_CHARACTERS} of the characters A-Z a-z 0-9 . _ ~ + / = -")
    return text


def address(text: str) -> tuple[str, int] | None:
    """(host, port) of "host:port" or "[host]:port"; None of ""."""
    if not text:
        return None
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ValueError(f"{text!r} is not an address: expected host:port, such as 0.0.0.0:9090")
    return host.removeprefix("[").removesuffix("]"), int(port)
