"""From reviews and guards to a verdict. One Deny denies; enough Approves approve, unless a guard holds back or somebody
requests changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

REQUEST_CHANGES = "RequestChanges"
CHANGES_REQUESTED = "a reviewer requested changes"

# How a GitOps controller is named beside people (access.no_longer_current).
CONTROLLER = "GitOps controller "


class Decision(StrEnum):
    UNDECIDED = "undecided"
    APPROVED = "approved"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class Ballot:
    """One review of the current round, as far as counting goes.

    `is_grant`: given by a policy, which is enough by itself. `counts`: Kubernetes still lets this reviewer decide.
    `doubt`: why this reviewer may be who wrote or asked for the change, "" where nothing says so.
    """

    decision: str
    is_grant: bool
    counts: bool
    may_use_account: bool
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """`obstacle` says what stands in the way besides missing reviews; "" where nothing does. `is_doubted`: what stands
    there is that an approver may have asked."""

    decision: Decision
    approvals: int
    needed: int
    words: str
    obstacle: str = ""
    is_doubted: bool = False


def decide(
    ballots: Iterable[Ballot],
    *,
    needed: int,
    held_by: Iterable[str],
    is_requester_known: bool,
    too_old: Sequence[str] = (),
) -> Tally:
    """Count the reviews of one round.

    Where the requester is unknown, one counted reviewer must hold the right to use the ServiceAccount (S07). One of
    those who may have asked does not count (S05, S43). `too_old` are the names of those who asked and are known by
    groups that are too old: for them, too, somebody must hold that right.
    """
    counted = [ballot for ballot in ballots if ballot.counts]
    approvals = [ballot for ballot in counted if ballot.decision == "Approve"]
    voters = [ballot for ballot in approvals if not ballot.is_grant]
    doubts = [ballot.doubt for ballot in voters if ballot.doubt]
    people = len(voters) - bool(doubts)
    if any(ballot.decision == "Deny" for ballot in counted):
        return Tally(Decision.DENIED, people, needed, "denied by a reviewer")
    if any(ballot.decision == REQUEST_CHANGES for ballot in counted):
        return Tally(Decision.UNDECIDED, people, needed, CHANGES_REQUESTED, CHANGES_REQUESTED)
    is_enough = people >= needed or any(ballot.is_grant for ballot in approvals)
    if not is_enough:
        is_doubted = bool(doubts) and len(voters) >= needed
        obstacle = f"an approver may have requested it ({doubts[0]}): one more approval is needed" if is_doubted else ""
        words = obstacle or f"{people} of {needed} approvals"
        return Tally(Decision.UNDECIDED, people, needed, words, obstacle, is_doubted)
    unasked = why_vouched_for(is_requester_known=is_requester_known, too_old=too_old)
    obstacle = _obstacle(approvals, sorted(held_by), unasked)
    if obstacle:
        return Tally(Decision.UNDECIDED, people, needed, obstacle, obstacle)
    return Tally(Decision.APPROVED, people, needed, f"{people} of {needed} approvals")


def why_vouched_for(*, is_requester_known: bool, too_old: Sequence[str]) -> str:
    """Why an approver must hold the right to use the ServiceAccount, because nobody's who asked can be asked (S07)."""
    must = "one approver must be allowed to impersonate the installing ServiceAccount"
    if not is_requester_known:
        return f"the requester is unknown: {must}"
    if not too_old:
        return ""
    what, remedy = why_nobody_vouches(too_old)
    return f"{what}: {remedy}, or {must}"


def why_nobody_vouches(names: Sequence[str]) -> tuple[str, str]:
    """Why those who asked cannot be asked now, and what would change that; `names` are `too_old` of `decide`.

    People's groups grow old; a GitOps controller is taken from the operator's list (S34).
    """
    controllers = ", ".join(one for one in names if one.startswith(CONTROLLER))
    people = ", ".join(one for one in names if not one.startswith(CONTROLLER))
    listed = (
        f"PRATIQUE_GITOPS_FILE does not list the {controllers} for what it requested",
        "the operator must list it there",
    )
    expired = (f"the identity of {people}, who requested the change, has expired", f"{people} must sign in again")
    found = [pair for pair, has_some in ((expired, people), (listed, controllers)) if has_some]
    return " and ".join(what for what, _ in found), " and ".join(remedy for _, remedy in found)


def _obstacle(approvals: list[Ballot], holding: list[str], unasked: str) -> str:
    if unasked and not any(ballot.may_use_account for ballot in approvals):
        return unasked
    return f"held back by {', '.join(holding)}" if holding else ""
