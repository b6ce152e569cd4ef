"""May it go on? One reader gathers every fact, one pure judge says what may happen next, or why not, with a remedy."""

from approvals.gate import reader
from approvals.gate.answers import Answer, Next, Question, Reason
from approvals.gate.facts import GateFacts
from approvals.gate.judge import are_requesters_proved, judge
from approvals.gate.planned import Approved, without_lifted
from approvals.gate.policies import reviewed_report
from approvals.gate.reader import Back
from approvals.gate.refusals import (
    GroupsTooOld,
    NoLongerWished,
    Refusal,
    Stale,
    Waiting,
    keep,
    refusal_of,
    require,
    require_again,
)
from approvals.gate.wish import live_deployment

__all__ = [
    "Answer",
    "Approved",
    "Back",
    "GateFacts",
    "GroupsTooOld",
    "Next",
    "NoLongerWished",
    "Question",
    "Reason",
    "Refusal",
    "Stale",
    "Waiting",
    "are_requesters_proved",
    "judge",
    "keep",
    "live_deployment",
    "reader",
    "refusal_of",
    "require",
    "require_again",
    "reviewed_report",
    "without_lifted",
]
