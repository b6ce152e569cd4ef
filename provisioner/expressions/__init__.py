"""CEL of others, compiled and evaluated in processes with limits. Only values here: `evaluator.ask_all` does it."""

from provisioner.expressions.problems import compiler_words, problem_words
from provisioner.expressions.questions import ExpressionAnswer, ExpressionOutcome, ExpressionQuestion, Language, Library

__all__ = [
    "ExpressionAnswer",
    "ExpressionOutcome",
    "ExpressionQuestion",
    "Language",
    "Library",
    "compiler_words",
    "problem_words",
]
