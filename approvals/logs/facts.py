"""What a log line may hold: plain values, text that hides nothing (S24), and no secret.

An object that somebody hands to a logger, such as Django's request, is named by its type: its own text may hold a
query string, and with it a one-time code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date
from uuid import UUID

from provisioner.escaping import visible

MAX_TEXT = 4_000
MAX_SECRET = 4_000
MAX_TRACE = 64_000
MAX_ITEMS = 50
MAX_DEPTH = 4
# A value shorter than this is no secret, and would blank out innocent words.
SHORTEST_SECRET = 8
# Texts that are read in lines.
IN_LINES = frozenset({"exception", "stack"})
MASK = "***"
_PATTERNS = (
    # Credentials and queries of addresses: a signed address is a key.
    (re.compile(r"(?<=://)[^\s/@'\"]+@"), f"{MASK}@"),
    (re.compile(r"(?<=[\w/])\?[^\s'\"<>()=]{1,100}=[^\s'\"<>()]*"), f"?{MASK}"),
    # Our API tokens, tokens of ServiceAccounts, and what stands in an Authorization header.
    (re.compile(r"\bprq_[\w-]{8,}"), f"prq_{MASK}"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"), MASK),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}"), rf"\1 {MASK}"),
)
_secrets: list[str] = []


def hide(secrets: Iterable[str]) -> None:
    """Have these texts masked in every line from now on; those of fewer than SHORTEST_SECRET characters stay."""
    known = {*_secrets, *(one for one in secrets if len(one) >= SHORTEST_SECRET)}
    # The longest first: one may be a part of another.
    _secrets[:] = sorted(known, key=lambda one: (-len(one), one))


def masked(text: str) -> str:
    """`text` without what looks like a credential, and without the secrets of this process."""
    for secret in _secrets:
        text = text.replace(secret, MASK)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def line(text: str, *, at_most: int = MAX_TEXT, keep_newlines: bool = False) -> str:
    """`text` as a log line may hold it: masked, everything that hides shown as an escape, not endless."""
    rest = len(text) - at_most
    # Masked with what follows: a secret that lies across the cut would not be known by its first half.
    shown = visible(masked(text[: at_most + MAX_SECRET])[:at_most], keep_newlines=keep_newlines)
    return f"{shown}… ({rest} more characters)" if rest > 0 else shown


def plain(value: object, depth: int = 0) -> object:
    """`value` as JSON can hold it; what is no plain value is named by its type, what is too deep or too much is cut."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return line(value)
    if isinstance(value, date | UUID):
        return str(value)
    if depth < MAX_DEPTH and isinstance(value, Mapping):
        return {line(str(key)): plain(one, depth + 1) for key, one in list(value.items())[:MAX_ITEMS]}
    if depth < MAX_DEPTH and isinstance(value, list | tuple | set | frozenset):
        return [plain(one, depth + 1) for one in list(value)[:MAX_ITEMS]]
    return f"<{type(value).__name__}>"
