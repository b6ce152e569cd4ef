"""Whose word counts now, by what was learned of them. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from approvals.gate.answers import GateQuestion, Reason
from approvals.gate.facts import Fact, GateFacts, PolicyFacts, ReviewFacts, Right, Unknown, Unreviewed, value_of
from approvals.gate.remedies import RefusalKind, reason
from approvals.policy import REQUEST_CHANGES, Ballot, Decision, Tally, decide

APPROVES = "approves"
HOLDS = ("holds", "error")
NOT_LET_GO = "this deletion needs a review now: a new report is prepared"
# Enough by itself, as a grant is. A Deny and guards count all the same, and so does that nobody knows who asked (S07).
ENOUGH = Ballot("Approve", is_grant=True, counts=True, may_use_account=False)


@dataclass(frozen=True, slots=True)
class Accepted:
    """Fingerprints of the findings that are accepted now; `lost` says of each waiver that no longer counts why."""

    fingerprints: frozenset[str] = frozenset()
    lost: tuple[str, ...] = ()


def accepted(reviews: Iterable[ReviewFacts]) -> Accepted:
    """What approvals accept whose givers may still decide and `override`."""
    fingerprints: set[str] = set()
    lost = []
    for review in sorted(reviews, key=lambda one: one.key):
        if review.decision != "Approve" or not review.waives:
            continue
        objection = _objection_to_waiver(review)
        if objection:
            lost.append(f"what {review.name} accepted no longer counts: {objection}")
        else:
            fingerprints |= review.waives
    return Accepted(frozenset(fingerprints), tuple(lost))


def count(facts: GateFacts) -> Tally:
    """The reviews of this round, without guards: those who hold it back say so themselves."""
    reviews = value_of(facts.reviews) or ()
    grants = [_of_grant(one) for one in value_of(facts.grants) or () if is_grant(one)]
    return tally(facts, [*map(ballot, reviews), *grants, *([ENOUGH] if is_let_go(facts) else [])])


def is_let_go(facts: GateFacts) -> bool:
    """Whether it stands on the operator's word about deletions, and on nobody's who saw it."""
    return (value_of(facts.unreviewed) or Unreviewed(False)).is_enough


def tally(facts: GateFacts, ballots: Iterable[Ballot]) -> Tally:
    about, too_old = facts.about, value_of(facts.too_old) or ()
    is_known = about.is_requester_known
    return decide(
        ballots,
        needed=about.needed,
        held_by=(),
        is_requester_known=is_known,
        too_old=too_old,
        why_unknown=about.why_unknown,
    )


def ballot(review: ReviewFacts) -> Ballot:
    counts = not why_not(review)
    return Ballot(review.decision, review.is_policy, counts, may_use_account(review), review.doubt)


def _of_grant(said: PolicyFacts) -> Ballot:
    return Ballot("Approve", is_grant=True, counts=True, may_use_account=may_use_account(said))


def may_use_account(one: ReviewFacts | PolicyFacts) -> bool:
    return one.uses_account is not None and _is_given(one.uses_account)


def why_not(review: ReviewFacts) -> str:
    """Why a review does not count; "" where it does. A Deny was allowed when it was given, and stays; a request for
    changes stays until it is dismissed."""
    if review.decision == REQUEST_CHANGES and _is_given(review.dismissal):
        return f"{review.dismissed_by} dismissed it"
    if review.decision != "Approve":
        return ""
    if review.is_own:
        return "they requested this change"
    if not review.is_in_force:
        return "the policy was changed since"
    return _words_against(review.decides)


def lost(reviews: Sequence[ReviewFacts]) -> Iterator[str]:
    """Of each approval that does not count why."""
    for review in sorted(reviews, key=lambda one: one.key):
        words = why_not(review)
        if words and review.decision == "Approve":
            yield f"the approval of {review.name} does not count: {words}"


def change_requests(reviews: Iterable[ReviewFacts]) -> list[ReviewFacts]:
    """Who requests changes and was not dismissed: nobody's approval counts past them."""
    asking = [one for one in reviews if one.decision == REQUEST_CHANGES and not why_not(one)]
    return sorted(asking, key=lambda one: one.key)


def _change_words(asking: Iterable[ReviewFacts]) -> Iterator[str]:
    for one in asking:
        words = f"{one.name} requested changes"
        is_lost = one.dismissal is not None
        yield (
            f"{words}; what {one.dismissed_by} dismissed counts again: {_words_against(one.dismissal)}"
            if is_lost
            else words
        )


def is_grant(said: PolicyFacts) -> bool:
    """Whether it approves now and is in force; one that has approved before counts by its review."""
    return said.is_enforced and said.result == APPROVES and not said.has_approved


def holding(guards: Iterable[PolicyFacts]) -> dict[str, str]:
    """The guards in force that hold it back, and what they say, by name."""
    return {one.name: one.words for one in guards if one.is_enforced and one.result in HOLDS}


def _objection_to_waiver(review: ReviewFacts) -> str:
    if review.is_own:
        return "they requested this change"
    if not _is_given(review.decides):
        return "they may no longer decide"
    return _words_against(review.overrides)


def _is_given(fact: Fact[Right] | None) -> bool:
    right = value_of(fact) if fact is not None else None
    return right is not None and right.is_given


def _words_against(fact: Fact[Right] | None) -> str:
    if fact is None:
        return "it was not checked"
    if isinstance(fact, Unknown):
        return fact.words
    return "" if fact.value.is_given else fact.value.words


def is_enough(found: Tally) -> bool:
    return found.decision == Decision.APPROVED


def decided(facts: GateFacts) -> Iterator[Reason]:
    """Whether this round may be decided with yes."""
    found, about = count(facts), facts.about
    if found.decision == Decision.DENIED:
        yield reason(RefusalKind.DENIED, found.words, about)
        return
    asking = change_requests(value_of(facts.reviews) or ())
    if asking:
        yield reason(RefusalKind.CHANGES_REQUESTED, "; ".join(_change_words(asking)), about)
    elif found.decision == Decision.UNDECIDED:
        yield _undecided(facts, found)
    held_by = sorted(holding(value_of(facts.guards) or ()))
    if held_by:
        yield reason(RefusalKind.HELD_BY_GUARD, f"held back by {', '.join(held_by)}", about)


def still_approved(facts: GateFacts) -> Iterator[Reason]:
    """Whether the approval would be given today: by whom it was given, and what they accepted (S25)."""
    reviews = value_of(facts.reviews)
    if reviews is None:
        return
    found = count(facts)
    if not is_enough(found):
        words = "; ".join([*(list(_change_words(change_requests(reviews))) or [found.words]), *lost(reviews)])
        words = f"checked again before applying, some approvals no longer count: {words}"
        yield reason(_kind_of_loss(facts, reviews), words, facts.about)
    waivers = accepted(reviews).lost
    if waivers:
        yield reason(RefusalKind.WAIVER_LOST, f"checked again before applying: {'; '.join(waivers)}", facts.about)


def _kind_of_loss(facts: GateFacts, reviews: Sequence[ReviewFacts]) -> RefusalKind:
    """An approval by a policy as it was never counts again: where that is what is lacking, waiting would be in vain.

    Nobody can tell while the right of another reviewer could not be asked.
    """
    before = [replace(ballot(one), counts=True) if _is_outdated(one) else ballot(one) for one in reviews]
    is_unclear = any(isinstance(one.decides, Unknown) for one in reviews)
    if is_unclear or not is_enough(tally(facts, before)):
        return RefusalKind.NOT_APPROVED_ANY_MORE
    has_begun = facts.question in (GateQuestion.GO_ON, GateQuestion.RESTORE)
    return RefusalKind.POLICY_CHANGED_MIDWAY if has_begun else RefusalKind.POLICY_CHANGED


def _is_outdated(review: ReviewFacts) -> bool:
    return review.decision == "Approve" and not review.is_own and not review.is_in_force


def guards_let_go(facts: GateFacts) -> Iterator[Reason]:
    """A guard that is new, changed or no longer waived holds back what was approved without it."""
    found = holding(value_of(facts.guards) or ())
    if found:
        words = "; ".join(f"guard {name}: {said}" for name, said in sorted(found.items()))
        yield reason(RefusalKind.GUARD_HOLDS, f"held back when checked again before applying: {words}", facts.about)


def still_lets_go(facts: GateFacts) -> Iterator[Reason]:
    """A deletion that was approved for want of data alone, where that is not enough any more: nobody could review it
    where it is, so that it would wait for ever."""
    reviews, free = value_of(facts.reviews), value_of(facts.unreviewed)
    if not facts.about.is_removal or reviews is None or free is None or free.is_enough:
        return
    given = [review for review in reviews if review.decision == "Approve"]
    if len(given) < facts.about.needed and not any(review.is_policy for review in given):
        yield reason(RefusalKind.NOT_LET_GO, NOT_LET_GO, facts.about)


def _undecided(facts: GateFacts, found: Tally) -> Reason:
    about, free = facts.about, value_of(facts.unreviewed)
    if found.obstacle:
        return reason(
            RefusalKind.DOUBTED if found.is_doubted else RefusalKind.NOBODY_USES_ACCOUNT, found.obstacle, about
        )
    # Of a policy that was changed since, its present word is asked for at each look: nothing is lost that could return.
    missing = list(lost([one for one in value_of(facts.reviews) or () if not _is_outdated(one)]))
    if missing:
        return reason(RefusalKind.LOST_APPROVAL, f"{found.words}: {'; '.join(missing)}", about)
    if free is not None and free.words:
        return reason(RefusalKind.GOES_ALONG, free.words, about)
    return reason(RefusalKind.TOO_FEW, found.words, about)
