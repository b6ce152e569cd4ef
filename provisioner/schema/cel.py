"""CEL expressions as texts, and the way to their programs: each answer of one is a value, and one that fails says so.

CEL's own runtime (celruntime) is loaded with the first rule: it takes more memory than all else here, and most schemas
have no rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from provisioner.schema.pruning import Schema

if TYPE_CHECKING:
    from provisioner.schema.celruntime import Program

OLD, OLD_GIVEN = "oldSelf", "oldSelfGiven"
STRINGS = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\''
LONG_STRINGS = r'"""(?:[^\\]|\\.)*?"""|\'\'\'(?:[^\\]|\\.)*?\'\'\''
TOKENS = re.compile(rf"{LONG_STRINGS}|{STRINGS}|//[^\n]*|[A-Za-z_][A-Za-z0-9_]*|\s+|.", re.DOTALL)


UNUSABLE = object()  # an old value that is none of the type its schema says: an error where an expression reads it


class NotCompiled(ValueError):
    """The expression is none that this CEL reads; the message is the compiler's.

    `is_beyond_us` is True where it uses what Kubernetes' CEL has and this one lacks: then it may well be a good one.
    """

    def __init__(self, message: str, *, is_beyond_us: bool = False):
        super().__init__(message)
        self.is_beyond_us = is_beyond_us


@dataclass(frozen=True, slots=True)
class Result:
    """What an expression came to: `value` where it did, else `problem` says why not."""

    value: Any = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class TypedRule:
    """One rule, or the expression of its message, and the schema of the value that it is about.

    `result` is the type that it must come to.
    """

    text: str
    schema: Schema
    is_root: bool = False
    has_optional_old: bool = False
    result: str = "bool"


@lru_cache(maxsize=4096)
def program(text: str, signature: str, *, has_optional_old: bool = False) -> Program:
    """Compile `text` for values of the type `signature`; raises NotCompiled.

    With `has_optional_old` the rule sees `oldSelf` as an optional value, as Kubernetes' optionalOldSelf asks.
    """
    from provisioner.schema.celruntime import compiled  # noqa: PLC0415 - CEL takes 30 MiB: with the first rule

    return compiled(text, signature, has_optional_old=has_optional_old)


def type_problems(rules: list[TypedRule]) -> list[str]:
    """Of each rule why it does not compile against the types of its schema, in the compiler's words; "" if it does."""
    from provisioner.schema.celtypes import problems_of  # noqa: PLC0415 - CEL takes 30 MiB: with the first rule

    return problems_of(rules)


def names_in(text: str) -> set[str]:
    """The identifiers of an expression, those inside strings and comments left out."""
    return {token for token in TOKENS.findall(text) if token.isidentifier()}


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
