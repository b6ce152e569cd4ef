"""What is asked of the evaluator, what it answers, and the message that carries questions. Pure: values only."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Library(StrEnum):
    """The functions that an expression may use beyond CEL's own."""

    NONE = "none"
    RULES = "rules"  # what the API server offers to the rules of custom resources
    RULE_TYPES = "rule-types"  # the same, to type-check against the fields of a schema


@dataclass(frozen=True, slots=True)
class Language:
    """The variables of an expression as (name, type), and its functions.

    A type is written as "string", "dyn", "list<string>" or "map<string,int>"; "schema.M0" is a message of
    `descriptors`, a serialized FileDescriptorProto whose imports are the well-known types.
    """

    variables: tuple[tuple[str, str], ...]
    library: Library = Library.NONE
    descriptors: bytes = b""

    @staticmethod
    def of(variables: Mapping[str, str], library: Library = Library.NONE, descriptors: bytes = b"") -> Language:
        return Language(tuple(sorted(variables.items())), library, descriptors)


@dataclass(frozen=True, slots=True)
class ExpressionQuestion:
    """One expression: to be compiled and, with `data`, evaluated on these variables.

    Values of `data` are plain ones: None, bool, int, float, str, bytes, datetime, timedelta, and lists and dicts of
    these. Questions about the same data share one dict: it is then sent and read once.
    """

    language: Language
    text: str
    data: Mapping[str, Any] | None = None


class ExpressionOutcome(StrEnum):
    COMPILED = "compiled"  # it was only to be compiled
    VALUE = "value"
    NOT_COMPILED = "not-compiled"
    FAILED = "failed"  # CEL's own error, such as a key that is not there
    ENDED = "ended"  # a limit on time, memory or size ended it


@dataclass(frozen=True, slots=True)
class ExpressionAnswer:
    """What became of one expression.

    `value` is what it came to where that is a bool or a short string, else None; `type` is its CEL type in lower case:
    of the expression where it was only compiled, else of the value. `words` says why there is no value; of FAILED they
    are CEL's own and may quote the data. `program` is the serialized, checked expression where it was asked for.
    `exceeds` is set where the expression itself passed a limit, of ENDED or CEL's own on iterations: to ask it again
    about the same data gives the same answer. ENDED without it may be the fault of others, and another time there may
    be a value.
    """

    outcome: ExpressionOutcome
    value: bool | str | None = None
    type: str = ""
    words: str = ""
    program: bytes = b""
    exceeds: bool = False

    @property
    def is_true(self) -> bool:
        return self.outcome is ExpressionOutcome.VALUE and self.value is True

    @property
    def is_bool(self) -> bool:
        return self.outcome is ExpressionOutcome.VALUE and isinstance(self.value, bool)


HEAD = struct.Struct("!I")  # of each message and answer: how many bytes follow
NO_DATA = -1


@dataclass(frozen=True, slots=True)
class Message:
    """Each question is (place in `languages`, text, key of `data` or NO_DATA); `data` holds pickled variables.

    Questions about the same data stand together. They are answered in their order, each by a list: outcome, value,
    type, words, program in base64. The last one before the child waits or leaves has two entries more:
    whether it leaves, and the seconds of processor time that the message took.
    """

    languages: tuple[Language, ...]
    data: dict[int, bytes]
    questions: tuple[tuple[int, str, int], ...]
    wants_program: bool = False
