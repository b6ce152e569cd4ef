"""May it go on? One reader gathers every fact, one pure judge says what may happen next, or why not, with a remedy.

Modules that other rooms use:

- `deletions`: what a deletion takes, also what no plan names, and what of it reviewers were shown
- `reviewer_checks`: may this person decide here and now, asked of Kubernetes before anything is recorded
- `facts`: what the gate knows, each fact with when and how it was learned
- `people`: whose word counts now, by what was learned of them
- `planned`: what would be done now, and what is in the way: dry-runs as the installing account, and its rights
- `planning`: what a request lets be planned: as whom, over which objects that are its own, beside which of others
- `remedies`: every kind of no: its code, what follows, and who can do what about it
- `rights`: what Kubernetes says of everybody whose word or wish counts, asked again each time
- `unseen_limits`: whether a report is harmless enough to be approved where it is not shown
- `wish`: the BundleDeployment and its account as the cluster has them now
"""

from approvals.gate import reader
from approvals.gate.answers import GateAnswer, GateQuestion, Next, Reason
from approvals.gate.facts import GateFacts
from approvals.gate.judge import judge
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
from approvals.gate.requesters import are_requesters_proved, reads_unattended
from approvals.gate.wish import live_deployment, unmet_words

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
    "deletions",
    "facts",
    "judge",
    "keep",
    "live_deployment",
    "people",
    "planned",
    "planning",
    "reader",
    "reads_unattended",
    "refusal_of",
    "remedies",
    "require",
    "require_again",
    "reviewed_report",
    "reviewer_checks",
    "rights",
    "unmet_words",
    "unseen_limits",
    "wish",
    "without_lifted",
]
