"""Guards, grants and counting: facts come in, words and decisions go out. PURE."""

from approvals.policy.constraints import ConstraintFacts, api_name, check_constraints, expressions_of, facts_of, unmet
from approvals.policy.decide import (
    REQUEST_CHANGES,
    Ballot,
    Decision,
    Lapse,
    Lapsed,
    Tally,
    decide,
    why_nobody_vouches,
    why_vouched_for,
)
from approvals.policy.expression import (
    CONSTRAINT,
    FACTS,
    POLICY,
    BadExpression,
    ExpressionResult,
    Facts,
    answer,
    check_compiled,
    check_form,
    holds_for,
)
from approvals.policy.holdings import holdings, says_what_shall_be
from approvals.policy.waiving import OWN_RULES_PREFIX, POWER_RULES, why_not_waivable

__all__ = [
    "CONSTRAINT",
    "FACTS",
    "OWN_RULES_PREFIX",
    "POLICY",
    "POWER_RULES",
    "REQUEST_CHANGES",
    "BadExpression",
    "Ballot",
    "ConstraintFacts",
    "Decision",
    "ExpressionResult",
    "Facts",
    "Lapse",
    "Lapsed",
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
    "says_what_shall_be",
    "unmet",
    "why_nobody_vouches",
    "why_not_waivable",
    "why_vouched_for",
]
