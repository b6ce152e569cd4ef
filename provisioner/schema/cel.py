"""CEL expressions of schemas as texts, and the way to their programs: each answer of one is a value, and one that fails
says so. They are compiled and run by provisioner.expressions, in processes with limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from provisioner.expressions import Answer, Language, Library, Outcome, Question
from provisioner.expressions.evaluator import ask, ask_all
from provisioner.schema.celvalues import MAX_EXPRESSION_CHARS
from provisioner.schema.pruning import Schema

OLD, OLD_GIVEN = "oldSelf", "oldSelfGiven"
# A text that does not end is one token up to the end: to try again at each of its characters takes quadratic time.
STRINGS = r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|\'(?:[^\'\\]|\\.)*(?:\'|\\?\Z)'
LONG_STRINGS = r'"""(?:[^\\]|\\.)*?(?:"""|\\?\Z)|\'\'\'(?:[^\\]|\\.)*?(?:\'\'\'|\\?\Z)'
TOKENS = re.compile(rf"{LONG_STRINGS}|{STRINGS}|//[^\n]*|[A-Za-z_][A-Za-z0-9_]*|\s+|.", re.DOTALL)
KUBERNETES_ONLY = re.compile(
    r"\b(format|jsonpatch|lists)\s*\.|\.\s*(lastIndexOf|indexOf|validate|slice|distinct|flatten|sort|sortBy|reverse)\s*\("
)
TWO_VARIABLES = re.compile(r"\.\s*(all|exists|existsOne|exists_one|transform\w+)\s*\(\s*\w+\s*,\s*\w+\s*,")
CODE = re.compile(r"^[A-Z_]+: ")
CODE_TAIL = re.compile(r" \[[A-Z_]+\]$")
NO_FIELDS = re.compile(r"expression of type '([^']*)' cannot be the operand of a select operation")

SECONDS = 60.0  # for all rules that are evaluated together, which may be those of many objects

UNUSABLE = object()  # an old value that is none of the type its schema says: an error where an expression reads it


TOO_LONG = f"longer than {MAX_EXPRESSION_CHARS} characters"


class NotCompiled(ValueError):
    """The expression is none that this CEL reads; the message is the compiler's.

    `is_beyond_us` is True where it uses what Kubernetes' CEL has and this one lacks: then it may well be a good one.
    """

    def __init__(self, message: str, *, is_beyond_us: bool = False):
        super().__init__(message)
        self.is_beyond_us = is_beyond_us


@dataclass(frozen=True, slots=True)
class Result:
    """What an expression came to: `value` where it did, else `problem` says why not, or `not_compiled` does.

    `is_ended` is True where a limit of ours ended it, which says nothing of the value.
    """

    value: Any = None
    problem: str = ""
    not_compiled: NotCompiled | None = None
    is_ended: bool = False


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A text to be evaluated for `values`, which are of the type `signature`: see values_of.

    With `has_optional_old` the rule sees `oldSelf` as an optional value, as Kubernetes' optionalOldSelf asks.
    """

    text: str
    signature: str
    values: Mapping[str, Any]
    has_optional_old: bool = False


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


@dataclass(frozen=True, slots=True)
class Program:
    """An expression over `self` and `oldSelf` that compiles; `result_type` is its CEL type in words."""

    language: Language
    source: str
    result_type: str
    serialized: bytes


def values_of(own: Any, old: Any, *, has_old: bool) -> dict[str, Any]:
    """The variables of a rule that reads the old value; both values are in CEL's form already (see celvalues)."""
    known = {} if old is UNUSABLE else {OLD: old}
    return {"self": own, OLD_GIVEN: has_old, **known}


def evaluated(asked: Sequence[Evaluation]) -> list[Result]:
    """What each comes to, in their order. Those that share their values share one dict, which is sent once."""
    questions = {place: _question(one) for place, one in enumerate(asked) if len(one.text) <= MAX_EXPRESSION_CHARS}
    answers = dict(zip(questions, ask_all(list(questions.values()), seconds=SECONDS), strict=True))
    return [_result(one.text, answers.get(place)) for place, one in enumerate(asked)]


def _question(one: Evaluation) -> Question:
    source = _with_optional_old(one.text) if one.has_optional_old else one.text
    return Question(_language(one.signature, one.has_optional_old), source, one.values)


def _result(text: str, found: Answer | None) -> Result:
    if found is None:
        return Result(not_compiled=NotCompiled(TOO_LONG))
    match found.outcome:
        case Outcome.VALUE:
            return Result(found.value)
        case Outcome.NOT_COMPILED:
            return Result(not_compiled=NotCompiled(_stripped(found.words), is_beyond_us=_is_beyond_us(text)))
        case Outcome.ENDED:
            return Result(problem=found.words, is_ended=True)
    return Result(problem=_spoken(found.words))


def program(text: str, signature: str, *, has_optional_old: bool = False) -> Program:
    """Compile `text` for values of the type `signature`; raises NotCompiled.

    With `has_optional_old` the rule sees `oldSelf` as an optional value, as Kubernetes' optionalOldSelf asks.
    """
    if len(text) > MAX_EXPRESSION_CHARS:
        raise NotCompiled(TOO_LONG)
    source = _with_optional_old(text) if has_optional_old else text
    language = _language(signature, has_optional_old)
    found = _compiled(language, source)
    if found.outcome is Outcome.COMPILED:
        return Program(language, source, found.type, found.program)
    is_beyond_us = found.outcome is Outcome.NOT_COMPILED and _is_beyond_us(text)
    raise NotCompiled(_stripped(found.words), is_beyond_us=is_beyond_us)


def _compiled(language: Language, source: str) -> Answer:
    """Only what the expression itself decides is kept: what passed a limit may do otherwise next time."""
    try:
        return _kept(language, source)
    except _NotKept as exc:
        return exc.answer


class _NotKept(Exception):
    def __init__(self, answer: Answer):
        super().__init__(answer.words)
        self.answer = answer


@lru_cache(maxsize=4096)
def _kept(language: Language, source: str) -> Answer:
    (found,) = ask(language, [source], wants_program=True)
    if found.outcome is Outcome.ENDED:
        raise _NotKept(found)
    return found


def type_problems(rules: list[TypedRule]) -> list[str]:
    """Of each rule why it does not compile against the types of its schema, in the compiler's words; "" if it does."""
    from provisioner.schema.celtypes import problems_of  # noqa: PLC0415 - protobuf takes memory: with the first rule

    return problems_of(rules)


@lru_cache(maxsize=1024)
def _language(signature: str, has_optional_old: bool) -> Language:
    old = "dyn" if has_optional_old else signature
    return Language.of({"self": signature, OLD: old, OLD_GIVEN: "bool"}, Library.RULES)


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
def _with_optional_old(text: str) -> str:
    return "".join(optional_old(OLD) if token == OLD else token for token in TOKENS.findall(text))


def _is_beyond_us(text: str) -> bool:
    """Whether the expression uses named formats, JSON patch keys, functions of lists or macros with two variables."""
    code = "".join('""' if token[:1] in ("'", '"') else token for token in TOKENS.findall(text))
    return KUBERNETES_ONLY.search(code) is not None or TWO_VARIABLES.search(code) is not None


def _stripped(text: str) -> str:
    plain = CODE_TAIL.sub("", CODE.sub("", text))
    return NO_FIELDS.sub(r"type '\1' does not support field selection", plain)


def _spoken(text: str) -> str:
    """The runtime's complaint in the words of Kubernetes' own CEL, where the two are known to mean the same."""
    plain = _stripped(text)
    if found := re.fullmatch(r'Key not found in map : "(.*)"', plain, re.DOTALL):
        return f"no such key: {found[1]}"
    if found := re.fullmatch(r"Index error: index=(-?[0-9]+) size=[0-9]+", plain):
        return f"index out of bounds: {found[1]}"
    if plain.startswith("No matching overloads found"):
        return "no such overload"
    return {"divide by zero": "division by zero", "modulus by zero": "modulus by zero"}.get(plain, plain)
