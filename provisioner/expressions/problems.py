"""Why an expression has no value, in words that quote none of the values it read. PURE."""

from __future__ import annotations

import re

from provisioner.expressions.questions import ExpressionAnswer, ExpressionOutcome

MAX_WORDS = 300
_CODES = re.compile(r"^([A-Z_]+: )+|( \[[A-Z_]+\])$|ERROR: <input>:")
_FIRST_ERROR = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*?)(?: \[[A-Z_]+\])?(?:\n|\Z)")
_NO_OVERLOAD = re.compile(r"found no matching overload for '(.*)' applied to '.*?\((.*)\)'")
_OPERATOR = re.compile(r"_(?!\w)|(?<!\w)_")
# What the compiler says, and the same in plain words; it quotes the expression alone.
_OBJECTIONS = (
    (re.compile(r"undeclared reference to '(.*?)' \(in container.*"), "`{0}` is not known"),
    (re.compile(r"Syntax error: token recognition error at: '= ?'?"), "`=` is no operator; to compare, write `==`"),
    (re.compile(r"Syntax error: token recognition error at: '(.*)'"), "`{0}` cannot be read"),
    (re.compile(r"Syntax error: (?:mismatched|extraneous) input '<EOF>'.*"), "the expression ends too early"),
    (re.compile(r"Syntax error: (?:mismatched|extraneous) input '(.*?)' expecting.*"), "`{0}` was not expected there"),
    (re.compile(r"Syntax error: no viable alternative at input '(.*?)'.*"), "`{0}` was not expected there"),
    (
        re.compile(r"expression of type '(.*?)' cannot be the operand of a select.*"),
        "a value of type {0} has no fields",
    ),
    (re.compile(r"has\(\) argument must be a field selection"), "`has()` takes a field, as in `has(a.b)`"),
)
_OVER_BUDGET = re.compile(r"(INTERNAL: )*Iteration budget exceeded")
_NO_KEY = re.compile(r'(?:Key not found in map : "?|no such key: )(.*?)"?$')
# How CEL's own words begin or what is in them, and what they mean. The words themselves quote keys and values.
_MEANINGS = (
    (re.compile(r"Index error|index out of", re.IGNORECASE), "a list is shorter than the expression expects"),
    (
        re.compile(r"No matching overload|no such overload", re.IGNORECASE),
        "it combines values of types that do not fit",
    ),
    (re.compile(r"(divi\w+|modul\w+) by zero", re.IGNORECASE), "it divides by zero"),
    (re.compile(r"budget", re.IGNORECASE), "it loops more often than the iteration budget of CEL allows"),
    (re.compile(r"overflow|out of range", re.IGNORECASE), "a number is out of range"),
    (re.compile(r"regular expression|regex", re.IGNORECASE), "it uses a regular expression that cannot be read"),
    (re.compile(r"no_such_field|no such field|not found", re.IGNORECASE), "a field is not there"),
    (
        re.compile(r"conver|parse|cannot be|invalid|expected|unexpected", re.IGNORECASE),
        "a value has another type or form",
    ),
)


def problem_words(text: str, found: ExpressionAnswer) -> str:
    """Why `text` has no value, in at most MAX_WORDS characters; "" where it has one.

    The compiler's words quote the expression and are passed on. Those of an evaluation may quote what it read, so that
    only their meaning is; a key is named where the expression itself names it.
    """
    match found.outcome:
        case ExpressionOutcome.NOT_COMPILED:
            return compiler_words(found.words)
        case ExpressionOutcome.ENDED:
            return found.words[:MAX_WORDS]
        case ExpressionOutcome.FAILED:
            return _meaning(text, _CODES.sub("", found.words).strip())
    return ""


def compiler_words(words: str) -> str:
    """What the compiler objects to first, and where, in at most MAX_WORDS characters of plain words."""
    found = _FIRST_ERROR.search(words)
    if found is None:
        return _CODES.sub("", words.split("\n", maxsplit=1)[0]).strip()[:MAX_WORDS]
    line, column, said = found.groups()
    has_lines = line != "1" or "ERROR: <input>:2:" in words
    meant = next((form.format(*it.groups()) for sign, form in _OBJECTIONS if (it := sign.match(said))), said)
    call = _NO_OVERLOAD.match(said)
    if call:
        types = " and ".join(part.strip() for part in call[2].split(",") if part.strip())
        meant = f"`{_OPERATOR.sub('', call[1]) or call[1]}` does not take {types or 'nothing'}"
    return f"{f'line {line}, ' if has_lines else ''}column {column}: {meant}"[:MAX_WORDS]


def is_over_budget(words: str) -> bool:
    """Whether CEL's own words of a failed evaluation say that it looped too often; on the same data it always does."""
    return _OVER_BUDGET.match(words) is not None


def _meaning(text: str, words: str) -> str:
    if found := _NO_KEY.match(words):
        key = found[1]
        is_named = any(f"{before}{key}" in text for before in ("'", '"', ".")) and len(key) <= MAX_WORDS // 2
        return f"the key {key} is not there" if key and is_named else "a key is not there"
    return next((meaning for sign, meaning in _MEANINGS if sign.search(words)), "the evaluation failed")
