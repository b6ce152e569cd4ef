"""Guards, grants and counting: facts come in, words and decisions go out. PURE."""

from approvals.policy.constraints import Surroundings, api_name, check_constraints, unmet
from approvals.policy.decide import Ballot, Decision, Tally, decide
from approvals.policy.expression import FACTS, BadExpression, Facts, compile_expression, evaluate, holds_for
from approvals.policy.holdings import holdings
from approvals.policy.waiving import OWN_RULES_PREFIX, why_not_waivable

__all__ = [
    "FACTS",
    "OWN_RULES_PREFIX",
    "BadExpression",
    "Ballot",
    "Decision",
    "Facts",
    "Surroundings",
    "Tally",
    "api_name",
    "check_constraints",
    "compile_expression",
    "decide",
    "evaluate",
    "holdings",
    "holds_for",
    "unmet",
    "why_not_waivable",
]
