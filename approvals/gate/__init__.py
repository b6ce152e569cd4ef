"""May it go on? One reader gathers every fact, one pure judge says what may happen next, or why not, with a remedy."""

from approvals.gate import reader
from approvals.gate.answers import GateAnswer, GateQuestion, Next, Reason
from approvals.gate.facts import GateFacts
from approvals.gate.judge import judge
from approvals.gate.live_spec import live_deployment, unmet_words
from approvals.gate.people import are_requesters_proved, reads_unattended
from approvals.gate.plan_facts import Approved, without_lifted
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

__all__ = [
    "Approved",
    "Back",
    "GateAnswer",
    "GateFacts",
    "GateQuestion",
    "GroupsTooOld",
    "Next",
    "NoLongerWished",
    "Reason",
    "Refusal",
    "Stale",
    "Waiting",
    "are_requesters_proved",
    "judge",
    "keep",
    "live_deployment",
    "reader",
    "reads_unattended",
    "refusal_of",
    "require",
    "require_again",
    "reviewed_report",
    "unmet_words",
    "without_lifted",
]
