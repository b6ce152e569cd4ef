"""Approval rules at the gate: whose approvals count, what is still needed, and that lowering one approves nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.deciding.approval_rules import ApprovalRule, Voter
from approvals.gate.answers import GateQuestion, Next
from approvals.gate.facts import EarlierRule, GateFacts, ReviewFacts, RuleFacts, value_of
from approvals.gate.judge import judge
from approvals.gate.rules import check_rules, standings, with_lapses
from tests.support.approvals.gate_facts import NO, NOW, YES, all_well, known, policy, review, rule, unknown

DECIDE = GateQuestion.DECIDE
TWO_AND_ONE = ApprovalRule.parse(
    {
        "require": [
            {"name": "platform", "count": 2, "groups": ["platform"]},
            {"name": "security", "groups": ["security"], "distinctFrom": ["platform"]},
        ]
    }
)


def by(name: str, *groups: str, **changes: Any) -> ReviewFacts:
    return review(hash(name), name=name, voter=Voter(name, frozenset(groups)), **changes)


def facts(
    reviews: Iterable[ReviewFacts], *rules: RuleFacts, question: GateQuestion = DECIDE, **changes: Any
) -> GateFacts:
    return replace(all_well(question), reviews=known(tuple(reviews)), rules=known(rules), **changes)


def needed(found: GateFacts) -> list[str]:
    return [words for one in standings(found) for words in (*one.needed, one.problem) if words]


ADA, BEN, CLEO = by("ada", "platform"), by("ben", "platform", "security"), by("cleo", "security")
SECURITY = rule("security", groups=["security"])
LEFT = "1 of group security, not the same people as for platform"


@pytest.mark.parametrize(
    ("reviews", "expected"),
    [
        ([ADA, BEN], [LEFT]),
        ([ADA, BEN, CLEO], []),
        ([ADA, BEN, replace(CLEO, is_by_a_requester=True)], [LEFT]),
        ([ADA, BEN, replace(CLEO, decides=known(NO))], [LEFT]),
        ([ADA, BEN, replace(CLEO, decides=unknown())], [LEFT]),
        # Of two that may have asked, any one may be who did.
        ([ADA, BEN, replace(CLEO, doubt="cleo may write it")], [LEFT]),
        ([ADA, BEN, CLEO, by("dan", "security", doubt="dan may write it")], []),
    ],
    ids=["two", "all", "who asked", "may not any more", "could not be asked", "doubted", "one more is doubted"],
)
def test_whoever_may_not_decide_counts_for_no_rule(reviews: list[ReviewFacts], expected: list[str]) -> None:
    found = facts(reviews, RuleFacts("payments", TWO_AND_ONE))
    assert needed(found) == expected
    assert judge(found, NOW).may is (expected == [])


def test_all_rules_that_select_the_request_hold() -> None:
    found = facts([ADA], RuleFacts("a", rule("platform", groups=["platform"])), RuleFacts("b", SECURITY))
    (reason,) = check_rules(found)
    assert (reason.words, reason.code) == (
        "approval rule b: still needed: 1 of group security",
        "approval-rule",
    )


def test_S45_a_grant_satisfies_no_rule_but_one_that_lists_it() -> None:
    grants = known((policy(5, "approves", name="night"),))
    assert needed(facts([], RuleFacts("a", SECURITY), grants=grants)) == ["1 of group security"]
    by_night = RuleFacts("a", rule("security", groups=["security"], policies=["night"]))
    assert needed(facts([], by_night, grants=grants)) == []
    assert judge(facts([], by_night, grants=grants), NOW).may


def test_S45_a_machine_is_not_the_person_who_has_to_approve_after_a_lowering() -> None:
    lowered = RuleFacts("security", rule("any", users=["ci"]), earlier=(EarlierRule(SECURITY, NOW),))
    robot = review(9, name="ci", voter=Voter("ci", is_machine=True), given_at=NOW + timedelta(seconds=1))
    assert needed(facts([robot], RuleFacts("a", SECURITY))) == ["1 of group security"]
    assert not judge(facts([ADA, robot], lowered), NOW).may


def test_what_the_operator_lets_go_without_a_review_is_held_by_a_rule_all_the_same() -> None:
    unreviewed = known(replace(value_of(all_well(DECIDE).unreviewed), is_enough=True))  # type: ignore[type-var] # known: all_well has every fact
    assert judge(facts([], unreviewed=unreviewed), NOW).may
    assert not judge(facts([], RuleFacts("a", SECURITY), unreviewed=unreviewed), NOW).may


def test_a_group_that_vanished_holds_and_the_words_say_so() -> None:
    found = facts([ADA], RuleFacts("a", SECURITY, nobody=("security",)))
    assert needed(found) == ["1 of group security", "nobody who is known here is a member of security"]


def test_holders_of_a_role_count_and_nobody_does_where_they_cannot_be_read() -> None:
    by_role = rule("release", clusterRoles=["release"])
    held = known({"release": frozenset({"Group platform", "User eve"})})
    assert needed(facts([ADA], RuleFacts("a", by_role, holders=held))) == []
    assert needed(facts([by("eve")], RuleFacts("a", by_role, holders=held))) == []
    assert needed(facts([CLEO], RuleFacts("a", by_role, holders=held))) == ["1 of ClusterRole release"]
    lost = facts([ADA], RuleFacts("a", by_role, holders=unknown()))
    assert [reason.next for reason in judge(lost, NOW).reasons] == [Next.WAIT, Next.WAIT]


def test_a_rule_that_nobody_can_read_or_evaluate_holds_and_says_why() -> None:
    unread = facts([ADA], RuleFacts("a", problem="spec.require is empty"))
    assert needed(unread) == ["it cannot be read, so it holds the request: spec.require is empty"]
    assert judge(unread, NOW).reason.code == "approval-rule-unreadable"
    in_doubt = facts([ADA], RuleFacts("a", SECURITY, note="`x` could not be evaluated"))
    assert standings(in_doubt)[0].words == (
        "approval rule a: still needed: 1 of group security; `x` could not be evaluated"
    )


CHANGED = NOW + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("now", "earlier"),
    [
        (None, SECURITY),
        (rule("any"), SECURITY),
        (rule("any"), None),
    ],
    ids=["deleted, or it selects no longer", "lowered", "it could not be read"],
)
def test_S45_lowering_a_rule_approves_nothing_until_somebody_approves_again(
    now: ApprovalRule | None, earlier: ApprovalRule | None
) -> None:
    lowered = RuleFacts("security", now, earlier=(EarlierRule(earlier, CHANGED),))
    found = facts([ADA], lowered)
    (reason,) = judge(found, NOW).reasons
    assert reason.code == "approval-rule-changed"
    assert "and nobody approved since" in reason.words
    assert judge(facts([replace(ADA, given_at=CHANGED + timedelta(seconds=1))], lowered), NOW).may
    assert judge(facts([ADA, CLEO], lowered), NOW).may is (earlier is not None)  # it held nothing
    later = replace(by("dan"), given_at=CHANGED + timedelta(seconds=1), doubt="dan may write it")
    assert not judge(facts([ADA, later], lowered), NOW).may  # they may have lowered it for their own change
    # Nor is it a policy that approves in its place.
    grants = known((policy(5, "approves", name="night"),))
    assert not judge(facts([], lowered, grants=grants), NOW).may


def test_a_change_in_between_hides_no_rule_that_held() -> None:
    spent = RuleFacts("security", None, earlier=(EarlierRule(SECURITY, CHANGED), EarlierRule(rule("any"), CHANGED)))
    assert judge(facts([ADA], spent), NOW).reason.code == "approval-rule-changed"


def test_a_rule_that_is_new_is_reported_again_before_the_apply_and_old_groups_are_waited_for() -> None:
    held = RuleFacts("a", SECURITY)
    assert judge(facts([ADA], held, question=GateQuestion.PLAN), NOW).next == Next.REPORT_AGAIN
    # Their groups are too old now: they sign in again, and nobody has to decide anew.
    expired = facts([replace(CLEO, decides=known(NO))], held, question=GateQuestion.PLAN)
    assert {reason.code for reason in judge(expired, NOW).reasons} == {"no-longer-approved", "waiver-lost"}


def test_S25_an_approval_that_counts_no_more_satisfies_no_rule_and_is_waited_for() -> None:
    held = RuleFacts("payments", TWO_AND_ONE)
    for lost in ({"decides": known(NO)}, {"decides": unknown()}):
        found = facts([ADA, BEN, replace(CLEO, **lost, waives=frozenset())], held, question=GateQuestion.PLAN)
        answer = judge(found, NOW)
        assert answer.next == Next.WAIT
        assert "no-longer-approved" in {it.code for it in answer.reasons}


def test_what_nobody_could_evaluate_ends_no_round() -> None:
    doubted = RuleFacts("a", SECURITY, note="the evaluators were busy")
    found = facts([ADA], doubted, question=GateQuestion.PLAN)
    assert [(it.next, it.code) for it in judge(found, NOW).reasons] == [(Next.WAIT, "approval-rule-unreadable")]


_GROUPS = ("platform", "security", "other")


@st.composite
def _reviews(draw: st.DrawFn) -> list[ReviewFacts]:
    found = []
    for number in range(draw(st.integers(0, 5))):
        groups = draw(st.sets(st.sampled_from(_GROUPS)))
        changes: dict[str, Any] = {
            "is_by_a_requester": draw(st.booleans()),
            "decides": known(draw(st.sampled_from([YES, YES, NO]))),
            "decision": draw(st.sampled_from(["Approve", "Approve", "Approve", "Deny", "RequestChanges"])),
        }
        found.append(by(f"person-{number}", *groups, **changes))
    return found


@given(_reviews(), st.randoms())
def test_S45_no_order_of_reviews_approves_what_a_rule_holds_or_counts_somebody_who_may_not(
    reviews: list[ReviewFacts], chance: Any
) -> None:
    turned = list(reviews)
    chance.shuffle(turned)
    rules = RuleFacts("payments", TWO_AND_ONE)
    answer, again = judge(facts(reviews, rules), NOW), judge(facts(turned, rules), NOW)
    assert (answer.may, answer.next) == (again.may, again.next)
    if answer.may:
        counting = [
            one.voter
            for one in reviews
            if one.decision == "Approve" and not one.is_by_a_requester and one.decides == known(YES) and one.voter
        ]
        platform = {one.username for one in counting if "platform" in one.groups}
        security = {one.username for one in counting if "security" in one.groups}
        assert len(platform) >= 2
        assert security
        assert len(platform | security) >= 3


CARRIES = replace(SECURITY, carry_over=True)
BEFORE, OLDEST = NOW - timedelta(hours=2), NOW - timedelta(hours=72)
CARRIED = by("cleo", "security", given_at=NOW - timedelta(hours=1), carried_from="round 1")
ALLOWS = RuleFacts("security", CARRIES, changes=(BEFORE,))


def lapse(*rules: RuleFacts, review: ReviewFacts = CARRIED) -> str:
    (found,) = with_lapses([review], known(rules), OLDEST)
    return found.lapse


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([ALLOWS], ""),
        ([ALLOWS, replace(ALLOWS, name="other")], ""),
        ([replace(ALLOWS, earlier=(EarlierRule(CARRIES, BEFORE),))], ""),
        ([], "no approval rule selects the request that carries approvals over"),
        ([replace(ALLOWS, rule=SECURITY)], "approval rule security carries no approval over"),
        ([ALLOWS, RuleFacts("other", SECURITY, changes=(BEFORE,))], "approval rule other carries no approval over"),
        ([replace(ALLOWS, is_sure=False)], "no approval rule selects the request"),
        ([ALLOWS, RuleFacts("gone", changes=(NOW,))], "approval rule gone was changed or deleted after it was given"),
        ([replace(ALLOWS, changes=(NOW,))], "approval rule security was changed or deleted after it was given"),
        ([replace(ALLOWS, changes=(CARRIED.given_at,))], "was changed or deleted after it was given"),
        ([replace(ALLOWS, changes=(BEFORE, NOW))], "was changed or deleted after it was given"),
        ([RuleFacts("gone", earlier=(EarlierRule(CARRIES, BEFORE),))], "no approval rule selects"),
    ],
    ids=[
        "it lets it",
        "all let it",
        "it was changed before",
        "nothing selects",
        "it does not",
        "one of two does not",
        "not by all labels",
        "one was deleted since",
        "it was changed since",
        "in the same moment",
        "one of its changes is later",
        "only one that is gone let it",
    ],
)
def test_S51_every_rule_that_selects_lets_it_be_carried_over_or_nothing_is(rules: list[RuleFacts], words: str) -> None:
    assert words in lapse(*rules) if words else lapse(*rules) == ""
    said = with_lapses([CARRIED], known(tuple(rules)), OLDEST)
    assert judge(facts(said, *rules), NOW).may is (words == "")
    assert lapse(*rules, review=replace(CARRIED, carried_from="")) == ""  # what was said of this round


def test_S51_what_is_carried_over_ages_and_counts_for_no_more_than_what_was_said() -> None:
    assert lapse(ALLOWS, review=replace(CARRIED, given_at=OLDEST)) == "it was given too long ago"
    assert lapse(ALLOWS, review=replace(CARRIED, given_at=None)) == "it was given too long ago"
    # Their rights, and that they did not ask for it, are asked as of every approval.
    for worse in ({"decides": known(NO)}, {"is_by_a_requester": True}, {"decides": unknown()}):
        assert not judge(facts([replace(CARRIED, **worse)], ALLOWS), NOW).may
    # Nor is it the approval that has to follow after a rule was lowered.
    lowered = RuleFacts("platform", earlier=(EarlierRule(rule("a", groups=["platform"]), CHANGED),))
    assert not judge(facts([CARRIED], ALLOWS, lowered), NOW).may


@pytest.mark.parametrize("question", [GateQuestion.PLAN, GateQuestion.APPLY])
def test_S51_what_does_not_count_again_is_reviewed_again_and_what_nobody_can_tell_is_waited_for(
    question: GateQuestion,
) -> None:
    def asked(rules: Any) -> Any:
        said = known(with_lapses([CARRIED], rules, OLDEST))
        return judge(replace(all_well(question), reviews=said, rules=rules), NOW)

    again = asked(known((replace(ALLOWS, rule=SECURITY),)))
    assert (again.next, again.reason.code) == (Next.REPORT_AGAIN, "not-carried-over")
    assert "it was carried over from round 1, and approval rule security carries no approval over" in again.reason.words
    in_doubt = RuleFacts("other", SECURITY, note="`x` could not be evaluated", changes=(BEFORE,))
    for rules in (unknown(), known((ALLOWS, in_doubt)), known((ALLOWS, RuleFacts("other", problem="odd")))):
        assert asked(rules).next == Next.WAIT
    # Whoever approves beside it is not held up by that.
    both = known((*with_lapses([CARRIED], known((in_doubt,)), OLDEST), by("sam", "security")))
    assert judge(replace(all_well(question), reviews=both, rules=known((in_doubt,))), NOW).may
