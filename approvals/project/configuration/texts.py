"""How the text of a variable is read: each function returns the value, or raises ValueError in words."""

from __future__ import annotations

import re

MIN_TOKEN_CHARACTERS = 32
DEPLOYMENT = re.compile(r"[a-zA-Z0-9_-]{1,63}/(?:catalogs/)?[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
# A hundred years.
MAX_DAYS = 36_500
# The severities that a limit may be, mildest first.
LIMITS = ("safe", "notable", "dangerous", "breaking", "critical")


def words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def hosts(text: str) -> list[str]:
    found = words(text)
    if "*" in found:
        raise ValueError("'*' would be every host: name each, as host, host:port or *.suffix")
    return found


def switch(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in {"1", "true", "yes", "on"}:
        return True
    if lowered in {"", "0", "false", "no", "off"}:
        return False
    raise ValueError(f"{text!r} is not a boolean: expected true or false")


def days(text: str) -> int:
    if not (text.strip().isdecimal() and int(text) <= MAX_DAYS):
        raise ValueError(f"{text!r} is not a number of days: expected 0 to {MAX_DAYS}")
    return int(text)


def positive(text: str) -> int:
    if not (text.strip().isdecimal() and int(text) > 0):
        raise ValueError(f"{text!r} is not a positive number: expected 1 or more")
    return int(text)


def deployments(text: str) -> list[str]:
    """Each a cluster and a deployment or catalog of it, exactly: a pattern would let whoever names one choose."""
    found = words(text)
    for one in found:
        if not DEPLOYMENT.fullmatch(one):
            raise ValueError(f"{one!r} is not a deployment: expected CLUSTER/NAME or CLUSTER/catalogs/NAME")
    return found


def severity(text: str) -> str:
    """One of provisioner.values.Severity but "unknown", which is worse than every limit."""
    if text not in LIMITS:
        raise ValueError(f"{text!r} is not a severity: expected one of {', '.join(LIMITS)}")
    return text


def severity_or_none(text: str) -> str:
    """The same, or "" for none."""
    return severity(text) if text else ""


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
