"""Whether the approvals are those that every ApprovalRule needs which selects the request. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from approvals.deciding.approval_rules import ApprovalRule, Voter
from approvals.gate import people
from approvals.gate.answers import GateQuestion, Reason
from approvals.gate.facts import Fact, GateFacts, ReviewFacts, RuleFacts, Unknown, value_of
from approvals.gate.people import break_glass_of, is_grant, why_not
from approvals.gate.remedies import RefusalKind, reason
from provisioner.sentences import some_phrases

SHOWN = 10


@dataclass(frozen=True, slots=True)
class Vote:
    """An approval that counts. `is_doubted`: they may have requested the change, and one such approval does not."""

    voter: Voter
    given_at: datetime | None = None
    is_doubted: bool = False

    @property
    def is_persons(self) -> bool:
        return not self.voter.policy and not self.voter.is_machine


@dataclass(frozen=True, slots=True)
class RuleNeeds:
    """How a rule stands: `needed` says what is still needed, in words; `problem` why it holds whatever people say.
    `escalated` are groups of which members count by now, because the request has waited."""

    name: str
    needed: tuple[str, ...] = ()
    problem: str = ""
    note: str = ""
    escalated: tuple[str, ...] = ()

    @property
    def is_satisfied(self) -> bool:
        return not self.needed and not self.problem

    @property
    def record(self) -> dict[str, Any]:
        """As Request.approval_rules keeps it."""
        said = {"name": self.name, "needed": list(self.needed), "problem": self.problem, "note": self.note}
        return {**said, "escalated": list(self.escalated)} if self.escalated else said

    @property
    def words(self) -> str:
        why = f"; {self.note}" if self.note else ""
        return f"approval rule {self.name}: {self.problem or 'still needed: ' + '; '.join(self.needed)}{why}"


def standings(facts: GateFacts) -> tuple[RuleNeeds, ...]:
    """How every rule stands, satisfied or not; also one that was lowered since the last approval."""
    cast, found = votes(facts), list[RuleNeeds]()
    for rule in value_of(facts.rules) or ():
        standing, lowered = _judge(rule, cast), _describe_lowering(rule, cast)
        if rule.rule or rule.problem or lowered:
            found.append(replace(standing, needed=(*standing.needed, *([lowered] if lowered else []))))
    return tuple(found)


def check_rules(facts: GateFacts) -> Iterator[Reason]:
    """All rules hold that select the request, and nothing is approved by lowering one; a break-glass goes past both."""
    if break_glass_of(facts) is not None:
        return
    rules, cast, is_decided = value_of(facts.rules) or (), votes(facts), facts.question != GateQuestion.DECIDE
    open_ones = [(rule, standing) for rule in rules if not (standing := _judge(rule, cast)).is_satisfied]
    # What nobody could evaluate may be otherwise the next time: no round ends of it.
    unread = [it for _, it in open_ones if it.problem or (it.note and is_decided)]
    if unread:
        yield reason(RefusalKind.RULE_UNREADABLE, _words_of(unread), facts.about)
    needing = [(rule, it) for rule, it in open_ones if it not in unread]
    given = votes(facts, as_given=True) if is_decided else []
    lost = [it for rule, it in needing if is_decided and _judge(rule, given).is_satisfied]
    if lost:
        words = "; ".join([_words_of(lost), *people.lost(value_of(facts.reviews) or ())])
        yield reason(RefusalKind.NOT_APPROVED_ANY_MORE, words, facts.about)
    if missing := [it for _, it in needing if it not in lost]:
        kind = RefusalKind.RULE_HOLDS_LATE if is_decided else RefusalKind.RULE_HOLDS
        yield reason(kind, _words_of(missing), facts.about)
    lowered = [words for rule in rules if (words := _describe_lowering(rule, cast))]
    if lowered and facts.question == GateQuestion.DECIDE:
        yield reason(RefusalKind.RULE_LOWERED, some_phrases(lowered, SHOWN), facts.about)


def votes(facts: GateFacts, *, as_given: bool = False) -> list[Vote]:
    """Who approves, each person and policy once: those whose approval counts now, or all who gave one `as_given`."""
    reviews = [review for review in value_of(facts.reviews) or () if review.decision == "Approve"]
    unclear = people.are_rules_unclear(facts)
    before = [it for it in reviews if not it.is_by_a_requester and it.is_in_force and (unclear or not it.lapse)]
    given = [it for it in reviews if (as_given and it in before) or not why_not(it)]
    found = [Vote(review.voter, review.given_at, bool(review.doubt)) for review in given if review.voter]
    grants = [Vote(Voter(grant.name, policy=grant.name)) for grant in value_of(facts.grants) or () if is_grant(grant)]
    return [*found, *grants]


def with_lapses(
    reviews: Sequence[ReviewFacts], rules: Fact[tuple[RuleFacts, ...]], oldest: datetime
) -> tuple[ReviewFacts, ...]:
    """Each that was carried over with why it does not count again now, if anything is against it."""
    words = rules.words if isinstance(rules, Unknown) else ""
    known = value_of(rules) or ()
    return tuple(
        replace(it, lapse=words or why_not_carried(it.given_at, known, oldest)) if it.carried_from else it
        for it in reviews
    )


def why_not_carried(given_at: datetime | None, rules: Sequence[RuleFacts], oldest: datetime) -> str:
    """Why an approval of then counts in no later round or request; "" where every rule that selects it lets it.

    A rule that was changed since is another one, also where it says the same: whoever approved knew the earlier one,
    and nothing that is open is approved by lowering a rule (S45).
    """
    if given_at is None or given_at <= oldest:
        return "it was given too long ago"
    if not any(facts.rule and facts.is_sure for facts in rules):
        return "no approval rule selects the request that carries approvals over"
    for facts in rules:
        if facts.problem or (facts.rule and not facts.rule.carry_over):
            return f"approval rule {facts.name} {'cannot be read' if facts.problem else 'carries no approval over'}"
        if any(change >= given_at for change in facts.changes):
            return f"approval rule {facts.name} was changed or deleted after it was given"
    return ""


def _judge(facts: RuleFacts, cast: Sequence[Vote]) -> RuleNeeds:
    if facts.problem:
        return RuleNeeds(facts.name, problem=f"it cannot be read, so it holds the request: {facts.problem}")
    if facts.rule is None:
        return RuleNeeds(facts.name)
    needed = _list_missing(facts.rule, facts, cast)
    if needed and facts.nobody:
        nobody = f"nobody who is known here is a member of {' or '.join(facts.nobody)}"
        needed = [*needed, nobody]
    return RuleNeeds(facts.name, tuple(needed), note=facts.note, escalated=tuple(facts.rule.escalated_to))


def _list_missing(rule: ApprovalRule, facts: RuleFacts, cast: Iterable[Vote]) -> list[str]:
    """Whoever of those that may have requested it did: as much as is missing without any one of them."""
    known = [(_with_roles(vote.voter, facts), vote.is_doubted) for vote in cast]
    without = [index for index, (_, is_doubted) in enumerate(known) if is_doubted] or [len(known)]
    found = [rule.list_missing(voter for at, (voter, _) in enumerate(known) if at != left) for left in without]
    return max(found, key=len)


def _with_roles(voter: Voter, facts: RuleFacts) -> Voter:
    holders = value_of(facts.holders) if facts.holders is not None else None
    if not holders or voter.policy:
        return voter
    names = {f"User {voter.username}", *(f"Group {group}" for group in voter.groups)}
    return replace(voter, cluster_roles=frozenset(role for role, held in holders.items() if held & names))


def _describe_lowering(facts: RuleFacts, cast: Sequence[Vote]) -> str:
    """That the rule held the request until it was changed, and that no person has approved since; "" else."""
    for earlier in reversed(facts.earlier):
        is_met = earlier.rule is not None and not _list_missing(earlier.rule, facts, cast)
        has_approved = any(
            vote.is_persons and not vote.is_doubted and vote.given_at and vote.given_at > earlier.until for vote in cast
        )
        if not is_met and not has_approved:
            is_here = facts.rule is not None or facts.problem
            what = "was changed" if is_here else "was deleted, or changed so that it selects the request no longer,"
            when = f"{earlier.until:%Y-%m-%d %H:%M:%S} UTC"
            return f"approval rule {facts.name} {what} at {when}, and nobody approved since: one person must approve"
    return ""


def _words_of(standing: Sequence[RuleNeeds]) -> str:
    return some_phrases([one.words for one in standing], SHOWN)
