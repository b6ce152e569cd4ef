"""Whose word counts now, by what was learned of them. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from approvals.gate.answers import GateQuestion, Reason
from approvals.gate.facts import (
    ExceptionFacts,
    Fact,
    GateFacts,
    PolicyFacts,
    ReadUnattended,
    ReviewFacts,
    Right,
    Sources,
    Unknown,
    Unreviewed,
    value_of,
)
from approvals.gate.remedies import RefusalKind, missing_right, reason
from approvals.policy import BREAK_GLASS, REQUEST_CHANGES, Ballot, Decision, Tally, decide, why_nobody_vouches

APPROVES = "approves"
HOLDS = ("holds", "error")
NOT_LET_GO = "this deletion needs a review now: a new report is prepared"
# Enough by itself, as a grant is. A Deny and guards count all the same, and so does that nobody knows who asked (S07).
ENOUGH = Ballot("Approve", is_grant=True, counts=True, may_use_account=False)
# What lets a request go, each by a right of its own.
LETS_GO = ("Approve", BREAK_GLASS)


@dataclass(frozen=True, slots=True)
class Accepted:
    """Fingerprints of the findings that are accepted now; `lost` says of each waiver and exception that does not count
    why. `approvals` are those of people that count; of those who may have asked for it, one does not."""

    fingerprints: frozenset[str] = frozenset()
    lost: tuple[str, ...] = ()
    approvals: int = 0


def accepted(reviews: Sequence[ReviewFacts]) -> Accepted:
    """What approvals accept whose givers may still decide and `override`, and how many people approve."""
    fingerprints: set[str] = set()
    lost = []
    given = [it for it in reviews if it.decision == "Approve" and not it.is_policy and not why_not(it)]
    voters = [it for it in given if not (it.voter and it.voter.is_machine)]
    approvals = len(voters) - any(voter.doubt for voter in voters)
    for review in sorted(reviews, key=_key_of):
        if review.decision != "Approve" or not review.waives:
            continue
        if review.is_by_a_requester:
            objection = "they requested this change"
        elif not _is_given(review.decides):
            objection = "they may no longer decide"
        else:
            objection = _words_against(review.overrides)
        if objection:
            lost.append(f"what {review.name} accepted no longer counts: {objection}")
        else:
            fingerprints |= review.waives
    return Accepted(frozenset(fingerprints), tuple(lost), approvals)


def with_exceptions(found: Accepted, exceptions: Fact[tuple[ExceptionFacts, ...]]) -> Accepted:
    """With what FindingExceptions accept; nothing where nobody could read them."""
    if isinstance(exceptions, Unknown):
        return replace(found, lost=(*found.lost, f"finding exceptions accept nothing: {exceptions.words}"))
    counting = [one.fingerprints for one in exceptions.value if not one.why_not]
    lost = [f"finding exception {one.name} accepts nothing: {one.why_not}" for one in exceptions.value if one.why_not]
    return replace(found, fingerprints=found.fingerprints.union(*counting), lost=(*found.lost, *lost))


def count(facts: GateFacts) -> Tally:
    """The reviews of this round, without guards: those who hold it back say so themselves."""
    grants = [
        Ballot("Approve", is_grant=True, counts=True, may_use_account=may_use_account(grant))
        for grant in value_of(facts.grants) or ()
        if is_grant(grant)
    ]
    return tally(facts, [*map(ballot, value_of(facts.reviews) or ()), *grants, *([ENOUGH] if is_let_go(facts) else [])])


def break_glass_of(facts: GateFacts) -> ReviewFacts | None:
    """The break-glass that counts now. It stands for everything that people and policies still have to say before: how
    many approve, and what guards hold. Whatever else asks for that asks here first; nothing else is answered by it, and
    a no of people is not.
    """
    broken = [it for it in value_of(facts.reviews) or () if it.decision == BREAK_GLASS and not why_not(it)]
    return min(broken, key=_key_of, default=None)


def is_let_go(facts: GateFacts) -> bool:
    """Whether it stands on the operator's word about deletions, and on nobody's who saw it."""
    return (value_of(facts.unreviewed) or Unreviewed(False)).is_enough


def tally(facts: GateFacts, ballots: Iterable[Ballot]) -> Tally:
    return decide(
        ballots,
        needed=facts.about.needed,
        held_by=(),
        is_requester_known=facts.about.is_requester_known,
        too_old=value_of(facts.too_old) or (),
        why_unknown=facts.about.why_unknown,
    )


def ballot(review: ReviewFacts) -> Ballot:
    counts, uses_account = not why_not(review), may_use_account(review)
    if review.decision == BREAK_GLASS:
        return Ballot("Approve", is_grant=True, counts=counts, may_use_account=uses_account)
    return Ballot(review.decision, review.is_policy, counts, uses_account, review.doubt)


def may_use_account(approval: ReviewFacts | PolicyFacts) -> bool:
    return _is_given(approval.uses_account)


def why_not(review: ReviewFacts) -> str:
    """Why a review does not count; "" where it does. A Deny was allowed when it was given, and stays; a request for
    changes stays until it is dismissed."""
    if review.decision == REQUEST_CHANGES and _is_given(review.dismissal):
        return f"{review.dismissed_by} dismissed it"
    if review.decision not in LETS_GO:
        return ""
    if review.is_by_a_requester:
        return "they requested this change"
    if review.decision == BREAK_GLASS and review.doubt:
        return f"they may have requested this change ({review.doubt})"
    if not review.is_in_force:
        return "the policy was changed since"
    if review.lapse:
        return f"it was carried over from {review.carried_from}, and {review.lapse}"
    return _words_against(review.decides)


def lost(reviews: Sequence[ReviewFacts]) -> Iterator[str]:
    """Say of each approval that does not count why."""
    for review in sorted(reviews, key=_key_of):
        words = why_not(review)
        if words and review.decision in LETS_GO:
            what = "break-glass" if review.decision == BREAK_GLASS else "approval"
            yield f"the {what} of {review.name} does not count: {words}"


def change_requests(reviews: Iterable[ReviewFacts]) -> list[ReviewFacts]:
    """Who requests changes and was not dismissed: nobody's approval counts past them."""
    asking = [review for review in reviews if review.decision == REQUEST_CHANGES and not why_not(review)]
    return sorted(asking, key=_key_of)


def _key_of(review: ReviewFacts) -> int:
    return review.key


def _describe_change_requests(asking: Iterable[ReviewFacts]) -> Iterator[str]:
    for review in asking:
        lost = f"; what {review.dismissed_by} dismissed counts again: {_words_against(review.dismissal)}"
        yield f"{review.name} requested changes{lost if review.dismissal is not None else ''}"


def is_grant(said: PolicyFacts) -> bool:
    """Whether it approves now and is in force; one that has approved before counts by its review."""
    return said.is_enforced and said.result == APPROVES and not said.has_approved


def holding(guards: Iterable[PolicyFacts]) -> dict[str, str]:
    """The guards in force that hold it back, and what they say, by name."""
    return {guard.name: guard.words for guard in guards if guard.is_enforced and guard.result in HOLDS}


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
        yield reason(RefusalKind.CHANGES_REQUESTED, "; ".join(_describe_change_requests(asking)), about)
    elif found.decision == Decision.UNDECIDED:
        yield _explain_undecided(facts, found)
    held_by = sorted(holding(value_of(facts.guards) or ()))
    if held_by and break_glass_of(facts) is None:
        yield reason(RefusalKind.HELD_BY_GUARD, f"held back by {', '.join(held_by)}", about)


def still_approved(facts: GateFacts) -> Iterator[Reason]:
    """Whether the approval would be given today: by whom it was given, and what they accepted (S25)."""
    reviews = value_of(facts.reviews)
    if reviews is None:
        return
    found = count(facts)
    if not is_enough(found):
        words = "; ".join(
            [*(list(_describe_change_requests(change_requests(reviews))) or [found.words]), *lost(reviews)]
        )
        words = f"checked again before applying, some approvals no longer count: {words}"
        # An approval by a policy as it was never counts again, nor does one that is carried over no longer: where only
        # these are lacking, waiting would be in vain. Nobody can tell while the right of another reviewer could not be
        # asked.
        before = [
            replace(ballot(review), counts=True) if review.lapse or _is_outdated(review) else ballot(review)
            for review in reviews
        ]
        is_unclear = any(isinstance(review.decides, Unknown) for review in reviews) or (
            are_rules_unclear(facts) and any(review.lapse for review in reviews)
        )
        if is_unclear or not is_enough(tally(facts, before)):
            kind = RefusalKind.NOT_APPROVED_ANY_MORE
        elif facts.question in (GateQuestion.GO_ON, GateQuestion.RESTORE):
            kind = RefusalKind.POLICY_CHANGED_MIDWAY
        elif any(review.lapse for review in reviews):
            kind = RefusalKind.NOT_CARRIED_ANY_MORE
        else:
            kind = RefusalKind.POLICY_CHANGED
        yield reason(kind, words, facts.about)
    waivers = accepted(reviews).lost
    if waivers:
        yield reason(RefusalKind.WAIVER_LOST, f"checked again before applying: {'; '.join(waivers)}", facts.about)


def are_rules_unclear(facts: GateFacts) -> bool:
    """Whether nobody can tell at the moment what ApprovalRules say: no round ends of it. Another round would be decided
    by what the watch saw last."""
    rules = value_of(facts.rules)
    return rules is None or any(rule.note or rule.problem or not rule.is_seen for rule in rules)


def _is_outdated(review: ReviewFacts) -> bool:
    return review.decision == "Approve" and not review.is_by_a_requester and not review.is_in_force


def guards_let_go(facts: GateFacts) -> Iterator[Reason]:
    """A guard that is new, changed or no longer waived holds back what was approved without it."""
    found = holding(value_of(facts.guards) or ())
    if found and break_glass_of(facts) is None:
        words = "; ".join(f"guard {name}: {said}" for name, said in sorted(found.items()))
        yield reason(RefusalKind.GUARD_HOLDS, f"held back when checked again before applying: {words}", facts.about)


def still_lets_go(facts: GateFacts) -> Iterator[Reason]:
    """A deletion that was approved for want of data alone, where that is not enough any more: nobody could review it
    where it is, so that it would wait for ever."""
    reviews, free = value_of(facts.reviews), value_of(facts.unreviewed)
    if not facts.about.is_removal or reviews is None or free is None or free.is_enough:
        return
    if any(review.decision == BREAK_GLASS for review in reviews):
        return  # whether it still counts is said by still_approved
    given = [review for review in reviews if review.decision == "Approve"]
    if len(given) < facts.about.needed and not any(review.is_policy for review in given):
        yield reason(RefusalKind.NOT_LET_GO, NOT_LET_GO, facts.about)


def _explain_undecided(facts: GateFacts, found: Tally) -> Reason:
    about, free = facts.about, value_of(facts.unreviewed)
    if found.obstacle:
        kind = RefusalKind.DOUBTED if found.is_doubted else RefusalKind.NOBODY_USES_ACCOUNT
        return reason(kind, found.obstacle, about)
    # Of a policy that was changed since, its present word is asked for at each look: nothing is lost that could return.
    missing = list(lost([review for review in value_of(facts.reviews) or () if not _is_outdated(review)]))
    if missing:
        return reason(RefusalKind.LOST_APPROVAL, f"{found.words}: {'; '.join(missing)}", about)
    if free is not None and free.words:
        return reason(RefusalKind.GOES_ALONG, free.words, about)
    return reason(RefusalKind.TOO_FEW, found.words, about)


def are_requesters_proved(facts: GateFacts) -> bool:
    """Whether everybody who asked is known and may have done what they ask for (S07, S08, S31)."""
    about, asked = facts.about, value_of(facts.requesters)
    if not (about.is_requester_known and about.has_requesters and asked) or value_of(facts.too_old) != ():
        return False
    return not any(isinstance(right, Unknown) for right in asked) and not any(may_have_it(facts))


def may_have_it(facts: GateFacts) -> Iterator[Reason]:
    """Every known requester may use the ServiceAccount, and get what the spec names in the cluster (S07, S08)."""
    about, sources = facts.about, value_of(facts.sources) or Sources()
    named, why = ", ".join(sources.names), f" ({about.why_unknown})" if about.why_unknown else ""
    if sources.names and not (about.is_requester_known and about.has_requesters):
        yield reason(
            RefusalKind.REQUESTER_UNKNOWN,
            f"the spec names {named}, and the requester is unknown{why}, so nothing is read: Pratique reads "
            "of the cluster only what the requester may get",
            about,
        )
    for fact in value_of(facts.requesters) or ():
        right = value_of(fact)
        if right is not None and not right.is_given:
            words = f"{right.words}; this would allow it:\n{right.rule}" if right.rule else right.words
            yield reason(RefusalKind.REQUESTER_LACKS, words, about)
    too_old = value_of(facts.too_old)
    is_to_be_read = facts.question == GateQuestion.PREPARE and not sources.is_read
    # Of a Catalog only a no counts by old groups: it is asked for again at each request, and tells nobody's secrets.
    if sources.private and too_old and is_to_be_read and not (sources.is_unattended and sources.is_listed):
        what, mend = why_nobody_vouches(too_old)
        words = (
            f"the spec names {', '.join(sources.private)}, and {what} (an identity counts for {sources.hours} hours), "
            "so nothing is read"
        )
        if sources.is_unattended:
            remedy = f"Request it again as someone who may get it, or an operator adds {about.cluster}/{about.name} to"
            words = f"this request was created automatically; {words}. {remedy} PRATIQUE_UNATTENDED_READS"
        else:
            words = f"{words}: {mend}, and it must be requested again"
        yield reason(RefusalKind.GROUPS_TOO_OLD, words, about)


def reads_unattended(facts: GateFacts) -> tuple[str, ...]:
    """What would be read now because the operator lists the deployment, and for no other reason."""
    sources = value_of(facts.sources) or Sources()
    is_on_their_word = bool(value_of(facts.too_old)) and sources.is_unattended and sources.is_listed
    return sources.private if is_on_their_word and not sources.is_read else ()


def reads_still_allowed(facts: GateFacts) -> Iterator[Reason]:
    """What the operator let be read is not used once they take that back, unless those who asked may be asked (S08)."""
    about, read = facts.about, value_of(facts.read_unattended) or ReadUnattended()
    if read.names and read.too_old and not read.is_listed:
        listed = f"because PRATIQUE_UNATTENDED_READS listed {about.cluster}/{about.name}"
        why = f"{listed}; it no longer does"
        if not read.is_sure:
            why = f"by an earlier version of Pratique, perhaps {listed}; it does not now"
        words = (
            f"the spec names {', '.join(read.names)}, which was read {why}, and {why_nobody_vouches(read.too_old)[0]}"
        )
        yield reason(RefusalKind.READS_WITHDRAWN, words, about)


def own_right(facts: GateFacts) -> Iterator[Reason]:
    """Whether we may act as the account (S31). Only one that everybody who asked may use is given to us unnamed."""
    right, account = value_of(facts.own_right), value_of(facts.account)
    if right is None or right.is_given:
        return
    is_given_unnamed = are_requesters_proved(facts) and not (account and account.is_reserved)
    named = f"{account.namespace}/{account.name}" if account and not is_given_unnamed else ""
    yield reason(RefusalKind.OWN_RIGHT, missing_right(facts.about.cluster, right.words, named), facts.about)
