"""CEL of others, compiled and evaluated in processes with limits. Only values here: `evaluator.ask_all` does it.

Beside what it exports itself, others may use:

- `evaluator`: `ask_all`: compiles and evaluates, in processes with limits
- `quantities`: quantities of Kubernetes as numbers
"""

from provisioner.expressions.problems import compiler_words, problem_words
from provisioner.expressions.questions import ExpressionAnswer, ExpressionOutcome, ExpressionQuestion, Language, Library

__all__ = [
    "ExpressionAnswer",
    "ExpressionOutcome",
    "ExpressionQuestion",
    "Language",
    "Library",
    "compiler_words",
    "evaluator",
    "problem_words",
    "quantities",
]
