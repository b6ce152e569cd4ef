"""From reviews and guards to a verdict. One Deny denies; enough Approves approve, unless a guard holds back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Decision(StrEnum):
    UNDECIDED = "undecided"
    APPROVED = "approved"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class Ballot:
    """One review of the current round, as far as counting goes.

    `is_grant`: given by a policy, which is enough by itself. `counts`: Kubernetes still lets this reviewer decide.
    """

    decision: str
    is_grant: bool
    counts: bool
    may_use_account: bool


@dataclass(frozen=True, slots=True)
class Tally:
    decision: Decision
    approvals: int
    needed: int
    words: str


def decide(
    ballots: Iterable[Ballot],
    *,
    needed: int,
    held_by: Iterable[str],
    is_requester_known: bool,
) -> Tally:
    """Count the reviews of one round.

    Where the requester is unknown, one counted reviewer must hold the right to use the ServiceAccount (S07).
    """
    counted = [ballot for ballot in ballots if ballot.counts]
    approvals = [ballot for ballot in counted if ballot.decision == "Approve"]
    people = sum(1 for ballot in approvals if not ballot.is_grant)
    if any(ballot.decision == "Deny" for ballot in counted):
        return Tally(Decision.DENIED, people, needed, "denied by a reviewer")
    holding = sorted(held_by)
    is_enough = people >= needed or any(ballot.is_grant for ballot in approvals)
    if not is_enough:
        return Tally(Decision.UNDECIDED, people, needed, f"{people} of {needed} approvals")
    if not is_requester_known and not any(ballot.may_use_account for ballot in approvals):
        words = "nobody knows who asked: one approver must be allowed to impersonate the installing ServiceAccount"
        return Tally(Decision.UNDECIDED, people, needed, words)
    if holding:
        return Tally(Decision.UNDECIDED, people, needed, f"held back by {', '.join(holding)}")
    return Tally(Decision.APPROVED, people, needed, f"{people} of {needed} approvals")
