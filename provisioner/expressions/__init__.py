"""CEL of others, compiled and evaluated in processes with limits. Only values here: `evaluator.ask_all` does it."""

from provisioner.expressions.problems import problem_words
from provisioner.expressions.questions import Answer, Language, Library, Outcome, Question

__all__ = ["Answer", "Language", "Library", "Outcome", "Question", "problem_words"]
