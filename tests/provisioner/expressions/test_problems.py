"""What CEL objects to in an expression, in plain words and with the place."""

from __future__ import annotations

import pytest

from approvals.policy import POLICY, BadExpression, check_compiled
from provisioner.expressions import ExpressionQuestion, problem_words
from provisioner.expressions.evaluator import ask_all

EXPRESSIONS = {
    "worst_newx == 'a'": "column 1: `worst_newx` is not known",
    "worst_new = 'a'": "column 11: `=` is no operator; to compare, write `==`",
    "worst_new == 1": "column 11: `==` does not take string and int",
    "size(1) == 2": "column 5: `size` does not take int",
    "worst_new in [": "column 15: the expression ends too early",
    "worst_new ==  || true": "column 15: `||` was not expected there",
    "worst.name == 'x'": "column 6: a value of type string has no fields",
    "has(x)": "column 5: `has()` takes a field, as in `has(a.b)`",
    "worst == 'a' &&\n  b == c": "line 2, column 3: `b` is not known",
}


@pytest.mark.parametrize(("text", "words"), EXPRESSIONS.items())
def test_an_objection_of_the_compiler_is_said_in_plain_words(text: str, words: str) -> None:
    (found,) = ask_all([ExpressionQuestion(POLICY, text)])
    assert problem_words(text, found) == words
    with pytest.raises(BadExpression) as refused:
        check_compiled(found)
    assert str(refused.value) == words


@pytest.mark.parametrize("text", ["'a", "#", "a b c", "1 +", "[", "x.y.z()", "{", "\\", "true ? 1", "'" * 2000])
def test_nothing_raw_of_the_compiler_is_left(text: str) -> None:
    (found,) = ask_all([ExpressionQuestion(POLICY, text)])
    words = problem_words(text, found)
    assert words
    assert not [raw for raw in ("ERROR", "<input>", "INVALID_ARGUMENT", "\n", "expecting") if raw in words]
