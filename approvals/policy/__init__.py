"""Guards, grants and counting: facts come in, words and decisions go out. PURE."""

from approvals.policy.constraints import Surroundings, api_name, check_constraints, expressions_of, facts_of, unmet
from approvals.policy.decide import DOUBT, Ballot, Decision, Tally, decide
from approvals.policy.expression import (
    CONSTRAINT,
    FACTS,
    POLICY,
    Answer,
    BadExpression,
    Facts,
    answer,
    check_compiled,
    check_form,
    holds_for,
)
from approvals.policy.holdings import holdings
from approvals.policy.waiving import OWN_RULES_PREFIX, why_not_waivable

__all__ = [
    "CONSTRAINT",
    "DOUBT",
    "FACTS",
    "OWN_RULES_PREFIX",
    "POLICY",
    "Answer",
    "BadExpression",
    "Ballot",
    "Decision",
    "Facts",
    "Surroundings",
    "Tally",
    "answer",
    "api_name",
    "check_compiled",
    "check_constraints",
    "check_form",
    "decide",
    "expressions_of",
    "facts_of",
    "holdings",
    "holds_for",
    "unmet",
    "why_not_waivable",
]
