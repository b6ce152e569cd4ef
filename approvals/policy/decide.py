"""From reviews and guards to a verdict. One Deny denies; enough Approves approve, unless a guard holds back or somebody
requests changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from provisioner.values import Severity

REQUEST_CHANGES, BREAK_GLASS = "RequestChanges", "BreakGlass"
CHANGES_REQUESTED = "a reviewer requested changes"


class Lapse(StrEnum):
    """Why nobody can ask Kubernetes now about somebody who asked for a change."""

    EXPIRED = "expired"  # the groups of their account are too old
    UNCONFIRMED = "unconfirmed"  # they are known by what they wrote alone, which is too old
    UNLINKED = "unlinked"  # the account by which they asked is somebody else there by now, or nobody
    DISABLED = "disabled"
    UNTRUSTED = "untrusted"  # the issuer or proxy that vouched for them does not count there any more
    UNLISTED = "unlisted"  # a GitOps controller that the operator does not list for this (S34)


@dataclass(frozen=True, slots=True, order=True)
class Lapsed:
    """Somebody who asked and cannot be asked about now."""

    name: str
    why: Lapse = Lapse.EXPIRED


# What is so of `{}`, and what would change that.
_LAPSES = {
    Lapse.EXPIRED: ("the identity of {}, who requested the change, has expired", "{} must sign in again"),
    Lapse.UNCONFIRMED: (
        "the identity of {}, who requested the change, has expired",
        "{} must sign in with a token of the cluster, or request it again",
    ),
    Lapse.UNLINKED: (
        "the account of {}, who requested the change, is not linked to that identity of the cluster any more",
        "{} must request it again",
    ),
    Lapse.DISABLED: (
        "the account of {}, who requested the change, is disabled",
        "an operator must enable the account of {}, or someone else must change the deployment",
    ),
    Lapse.UNTRUSTED: (
        "the issuer or proxy that vouched for {}, who requested the change, does not count on the cluster any more",
        "{} must sign in another way and request it again",
    ),
    Lapse.UNLISTED: (
        "PRATIQUE_GITOPS_FILE does not list the GitOps controller {} for what it requested",
        "the operator must list it there",
    ),
}


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
    too_old: Sequence[Lapsed] = (),
    why_unknown: str = "",
) -> Tally:
    """Count the reviews of one round.

    Where the requester is unknown, one counted reviewer must hold the right to use the ServiceAccount (S07). One of
    those who may have asked does not count (S05, S43). `too_old` are those who asked and cannot be asked about now: for
    them, too, somebody must hold that right.
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
    unasked = why_vouched_for(is_requester_known=is_requester_known, too_old=too_old, why_unknown=why_unknown)
    obstacle = _obstacle(approvals, sorted(held_by), unasked)
    if obstacle:
        return Tally(Decision.UNDECIDED, people, needed, obstacle, obstacle)
    return Tally(Decision.APPROVED, people, needed, f"{people} of {needed} approvals")


def why_vouched_for(*, is_requester_known: bool, too_old: Sequence[Lapsed], why_unknown: str = "") -> str:
    """Why an approver must hold the right to use the ServiceAccount, because nobody's who asked can be asked (S07)."""
    must = "one approver must be allowed to impersonate the installing ServiceAccount"
    if not is_requester_known:
        return f"the requester is unknown{f' ({why_unknown})' if why_unknown else ''}: {must}"
    if not too_old:
        return ""
    what, remedy = why_nobody_vouches(too_old)
    return f"{what}: {remedy}, or {must}"


def why_nobody_vouches(lapsed: Sequence[Lapsed]) -> tuple[str, str]:
    """Why those who asked cannot be asked about now, and what would change that."""
    names = {why: ", ".join(one.name for one in lapsed if one.why is why) for why in Lapse}
    found = [[words.format(names[why]) for words in pair] for why, pair in _LAPSES.items() if names[why]]
    return " and ".join(what for what, _ in found), " and ".join(remedy for _, remedy in found)


def _obstacle(approvals: list[Ballot], holding: list[str], unasked: str) -> str:
    if unasked and not any(ballot.may_use_account for ballot in approvals):
        return unasked
    return f"held back by {', '.join(holding)}" if holding else ""


# Findings about content that touches Pratique itself: no policy may approve those, and nobody waives them (S22).
OWN_RULES_PREFIX = "OWN-PRATIQUE"
# Those of them that say whom content gives power over Pratique, and as whom with such power its pods run.
POWER_RULES = frozenset({"OWN-PRATIQUE-03", "OWN-PRATIQUE-05"})


def why_not_waivable(*, rule: str, severity: str) -> str:
    """Why nobody may waive a finding of this rule and severity; "" where somebody who may `override` may."""
    if rule.startswith(OWN_RULES_PREFIX):
        return "it affects Pratique itself, and such findings cannot be accepted"
    if severity == Severity.UNKNOWN:
        return "its effect is unknown, and unknown findings cannot be accepted"
    return ""
