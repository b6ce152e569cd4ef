"""A no of the gate as an error, for the steps: what is waited for, and what cannot go on.

Errors keep the classes that say it best; the code, the words and the remedy are the answer's.
"""

from __future__ import annotations

from approvals import errors
from approvals.clock import database_now
from approvals.errors import Awaiting
from approvals.gate.answers import GateAnswer, Next, Reason
from approvals.gate.facts import GateFacts, value_of
from approvals.gate.judge import judge
from approvals.ledger import rounds
from approvals.models import Request
from provisioner.errors import BadSource, DigestMismatch, Forbidden, PratiqueError, PreconditionFailed


class Refusal(PratiqueError):
    """`against` is the gravest reason of the answer; the message is its words."""

    def __init__(self, reason: Reason):
        super().__init__(reason.words)
        self.code = reason.code
        self.against = reason
        self.remedy = reason.remedy
        self.said = reason.said


class Waiting(Refusal, Awaiting):
    """Something has to be so before it may go on; the words say what."""

    def __init__(self, reason: Reason):
        super().__init__(reason)
        self.awaits, self.is_costly, self.due_at = reason.awaits, reason.is_costly, reason.due_at


class Stale(Refusal):
    """What was reviewed is not what would be done: it is reported again."""


class NoLongerWished(Refusal, errors.NoLongerWished):
    """Another request is about the present spec."""


class OtherBytes(Refusal, DigestMismatch):
    """What would be applied, or as whom, is not what was approved."""


class NotTheOne(Refusal, PreconditionFailed):
    """Another cluster, or a revision that nobody may go back to."""


class NotGiven(Refusal, Forbidden):
    """Who asked may not have this done."""


class GroupsTooOld(NotGiven, errors.GroupsTooOld):
    """Who asked has to sign in again."""


class NotUsable(Refusal, BadSource):
    """The spec names what is not there."""


_ENDS: dict[str, type[Refusal]] = {
    NoLongerWished.code: NoLongerWished,
    DigestMismatch.code: OtherBytes,
    PreconditionFailed.code: NotTheOne,
    Forbidden.code: NotGiven,
    GroupsTooOld.code: GroupsTooOld,
    BadSource.code: NotUsable,
}


def refusal_of(answer: GateAnswer) -> Refusal:
    """The error that says this no."""
    reason = answer.reason
    if reason.next == Next.WAIT:
        return Waiting(reason)
    if reason.next == Next.REPORT_AGAIN:
        return Stale(reason)
    return _ENDS.get(reason.code, Refusal)(reason)


def require(request: Request, facts: GateFacts) -> None:
    """Keep what policies said, judge, and raise the refusal unless the answer is yes."""
    keep(request, facts)
    require_again(facts)


def require_again(facts: GateFacts) -> None:
    """The same of more facts, where what policies said is kept already."""
    answer = judge(facts, database_now())
    if not answer.may:
        raise refusal_of(answer)


def keep(request: Request, facts: GateFacts) -> None:
    """Write down what every policy said of this round."""
    policies = (*(value_of(facts.guards) or ()), *(value_of(facts.grants) or ()))
    if said := {(one.key, one.version): (one.result, one.words) for one in policies if one.key}:
        rounds.keep(request, said)
