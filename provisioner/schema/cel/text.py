"""CEL expressions as texts: their tokens, the names in them, and the old value as an optional one."""

from __future__ import annotations

import re
from functools import lru_cache

OLD, OLD_GIVEN = "oldSelf", "oldSelfGiven"
# A text that does not end is one token up to the end: to try again at each of its characters takes quadratic time.
STRINGS = r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|\'(?:[^\'\\]|\\.)*(?:\'|\\?\Z)'
LONG_STRINGS = r'"""(?:[^\\]|\\.)*?(?:"""|\\?\Z)|\'\'\'(?:[^\\]|\\.)*?(?:\'\'\'|\\?\Z)'
TOKENS = re.compile(rf"{LONG_STRINGS}|{STRINGS}|//[^\n]*|[A-Za-z_][A-Za-z0-9_]*|\s+|.", re.DOTALL)
CODE_TAIL = re.compile(r" \[[A-Z_]+\]$")


def names_in(text: str) -> set[str]:
    """The identifiers of an expression, those inside strings and comments left out."""
    return {token for token in TOKENS.findall(text) if token.isidentifier()}


@lru_cache(maxsize=4096)
def uses_old(text: str) -> bool:
    """Whether the expression is a transition rule, one that looks at `oldSelf`."""
    return OLD in text and OLD in names_in(text)


def normalised(text: str) -> str:
    """The expression without what does not change its meaning: spaces and comments outside strings."""
    tokens = [token for token in TOKENS.findall(text) if not token.isspace() and not token.startswith("//")]
    joined: list[str] = []
    for token in tokens:
        is_word = token[0].isalnum() or token[0] == "_"
        follows_word = bool(joined) and (joined[-1][-1].isalnum() or joined[-1][-1] == "_")
        joined += [" ", token] if is_word and follows_word else [token]
    return "".join(joined)


def optional_old(name: str) -> str:
    """The old value as an optional one, where it is held by the variable `name`."""
    return f"({OLD_GIVEN} ? optional.of({name}) : optional.none())"


@lru_cache(maxsize=1024)
def with_optional_old(text: str) -> str:
    return "".join(optional_old(OLD) if token == OLD else token for token in TOKENS.findall(text))
