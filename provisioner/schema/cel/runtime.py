"""CEL expressions of schemas compiled and run: each answer is a value, and an expression that fails says so.

provisioner.expressions does it, in processes with limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from provisioner.expressions import ExpressionAnswer, ExpressionOutcome, ExpressionQuestion, Language, Library
from provisioner.expressions.evaluator import ask, ask_all
from provisioner.schema.cel.values import (
    CODE_TAIL,
    MAX_EXPRESSION_CHARS,
    OLD,
    OLD_GIVEN,
    TOKENS,
    names_in,
    with_optional_old,
)

KUBERNETES_ONLY = re.compile(
    r"\b(format|jsonpatch|lists)\s*\.|\.\s*(lastIndexOf|indexOf|validate|slice|distinct|flatten|sort|sortBy|reverse)\s*\("
)
TWO_VARIABLES = re.compile(r"\.\s*(all|exists|existsOne|exists_one|transform\w+)\s*\(\s*\w+\s*,\s*\w+\s*,")
CODE = re.compile(r"^[A-Z_]+: ")
NO_FIELDS = re.compile(r"expression of type '([^']*)' cannot be the operand of a select operation")

SECONDS = 60.0  # for all rules that are evaluated together, which may be those of many objects

OBJECT = "map<string,dyn>"
UNUSABLE = object()  # an old value that is none of the type its schema says: an error where an expression reads it


TOO_LONG = f"longer than {MAX_EXPRESSION_CHARS} characters"


class NotCompiled(ValueError):
    """The expression is none that this CEL reads; the message is the compiler's.

    `is_beyond_us` is True where it uses what Kubernetes' CEL has and this one lacks: then it may well be a good one. So
    it may where `is_ended` is True: a limit of ours ended the compiler.
    """

    def __init__(self, message: str, *, is_beyond_us: bool = False, is_ended: bool = False):
        super().__init__(message)
        self.is_beyond_us, self.is_ended = is_beyond_us, is_ended


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
class Program:
    """An expression over `self` and `oldSelf` that compiles; `result_type` is its CEL type in words."""

    language: Language
    source: str
    result_type: str
    serialized: bytes


def values_of(own: Any, old: Any, *, has_old: bool) -> dict[str, Any]:
    """The variables of a rule that reads the old value; both values are in CEL's form already (see values)."""
    known = {} if old is UNUSABLE else {OLD: old}
    return {"self": own, OLD_GIVEN: has_old, **known}


def evaluated(asked: Sequence[Evaluation]) -> list[Result]:
    """What each comes to, in their order. Those that share their values share one dict, which is sent once."""
    questions: dict[int, ExpressionQuestion] = {}
    for place, evaluation in enumerate(asked):
        if len(evaluation.text) <= MAX_EXPRESSION_CHARS:
            has_optional_old = evaluation.has_optional_old
            source = with_optional_old(evaluation.text) if has_optional_old else evaluation.text
            language = _language(_nullable(evaluation.signature, source), has_optional_old)
            questions[place] = ExpressionQuestion(language, source, evaluation.values)
    answers = dict(zip(questions, ask_all(list(questions.values()), seconds=SECONDS), strict=True))
    return [_result(evaluation.text, answers.get(place)) for place, evaluation in enumerate(asked)]


def _result(text: str, found: ExpressionAnswer | None) -> Result:
    if found is None:
        return Result(not_compiled=NotCompiled(TOO_LONG))
    match found.outcome:
        case ExpressionOutcome.VALUE:
            return Result(found.value)
        case ExpressionOutcome.NOT_COMPILED:
            return Result(not_compiled=NotCompiled(_stripped(found.words), is_beyond_us=_is_beyond_us(text)))
        case ExpressionOutcome.ENDED:
            return Result(problem=found.words, is_ended=True)
    return Result(problem=_spoken(found.words))


def program_of(text: str, signature: str, *, has_optional_old: bool = False) -> Program:
    """Compile `text` for values of the type `signature`; raises NotCompiled.

    With `has_optional_old` the rule sees `oldSelf` as an optional value, as Kubernetes' optionalOldSelf asks.
    """
    if len(text) > MAX_EXPRESSION_CHARS:
        raise NotCompiled(TOO_LONG)
    source = with_optional_old(text) if has_optional_old else text
    language = _language(_nullable(signature, source), has_optional_old)
    found = _compiled(language, source)
    if found.outcome is ExpressionOutcome.COMPILED:
        return Program(language, source, found.type, found.program)
    is_beyond_us = found.outcome is ExpressionOutcome.NOT_COMPILED and _is_beyond_us(text)
    is_ended = found.outcome is ExpressionOutcome.ENDED
    raise NotCompiled(_stripped(found.words), is_beyond_us=is_beyond_us, is_ended=is_ended)


def _compiled(language: Language, source: str) -> ExpressionAnswer:
    """Only what the expression itself decides is kept: what passed a limit may do otherwise next time."""
    try:
        return _kept(language, source)
    except _NotKept as exc:
        return exc.answer


class _NotKept(Exception):
    def __init__(self, answer: ExpressionAnswer):
        super().__init__(answer.words)
        self.answer = answer


@lru_cache(maxsize=4096)
def _kept(language: Language, source: str) -> ExpressionAnswer:
    (found,) = ask(language, [source], wants_program=True)
    if found.outcome is ExpressionOutcome.ENDED:
        raise _NotKept(found)
    return found


def _nullable(signature: str, source: str) -> str:
    """The type with objects as anything where a rule names `null`, which is compared with objects and not with maps."""
    return signature.replace(OBJECT, "dyn") if "null" in source and "null" in names_in(source) else signature


@lru_cache(maxsize=1024)
def _language(signature: str, has_optional_old: bool) -> Language:
    old = "dyn" if has_optional_old else signature
    return Language.of({"self": signature, OLD: old, OLD_GIVEN: "bool"}, Library.RULES)


def _is_beyond_us(text: str) -> bool:
    """Whether the expression uses named formats, JSON patch keys, functions of lists or macros with two variables."""
    code = "".join('""' if token[:1] in ("'", '"') else token for token in TOKENS.findall(text))
    return KUBERNETES_ONLY.search(code) is not None or TWO_VARIABLES.search(code) is not None


def _stripped(text: str) -> str:
    plain = CODE_TAIL.sub("", CODE.sub("", text)).replace(", null_type)'", ", null)'")
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
