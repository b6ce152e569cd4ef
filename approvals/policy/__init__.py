"""Guards, grants and counting: facts come in, words and decisions go out. PURE.

Modules that other rooms use:

- `expression`: CEL over documented facts
- `following`: what becomes of a reference that moved, and how often it is looked at
"""

from approvals.policy.constraints import ConstraintFacts, api_name, check_constraints, expressions_of, facts_of, unmet
from approvals.policy.decide import (
    CONTROLLER,
    DOUBT,
    REQUEST_CHANGES,
    Ballot,
    Decision,
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
from approvals.policy.holdings import holdings
from approvals.policy.waiving import OWN_RULES_PREFIX, POWER_RULES, why_not_waivable

__all__ = [
    "CONSTRAINT",
    "CONTROLLER",
    "DOUBT",
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
    "Tally",
    "answer",
    "api_name",
    "check_compiled",
    "check_constraints",
    "check_form",
    "decide",
    "expression",
    "expressions_of",
    "facts_of",
    "following",
    "holdings",
    "holds_for",
    "unmet",
    "why_nobody_vouches",
    "why_not_waivable",
    "why_vouched_for",
]
