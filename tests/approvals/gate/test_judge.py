"""What the judge answers, whatever the facts are."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from approvals.gate.answers import GateQuestion, Next
from approvals.gate.facts import NOT_READ, GateFacts, Known, Unknown
from approvals.gate.judge import FRESH, judge
from approvals.gate.people import are_requesters_proved
from approvals.gate.remedies import RefusalKind
from approvals.policy import Lapsed
from tests.support.approvals.gate_facts import (
    ABOUT,
    NO,
    NOW,
    PLAN,
    REFUSED,
    WORSE,
    YES,
    all_well,
    any_facts,
    is_said_well,
    known,
    policy,
    questions,
    review,
    unknown,
)


@pytest.mark.parametrize("question", GateQuestion)
def test_where_all_is_well_the_answer_is_yes(question: GateQuestion) -> None:
    answer = judge(all_well(question), NOW)
    assert (answer.may, answer.next, answer.reasons) == (True, Next.GO, ())


@given(any_facts())
def test_promise_4_no_facts_with_an_unknown_give_a_yes(found: GateFacts) -> None:
    """Every no has words, a code and a remedy."""
    answer = judge(found, NOW)
    if any(isinstance(fact, Unknown) for _, fact in found.needed()):
        assert not answer.may
    assert answer.may == (answer.next == Next.GO) == (not answer.reasons)
    assert is_said_well(answer)


@given(questions, st.data())
def test_promise_4_one_unknown_is_enough_for_a_no(question: GateQuestion, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(question.needs))
    lost = data.draw(st.sampled_from([NOT_READ, unknown(), unknown(is_final=True)]))
    answer = judge(replace(all_well(question), **{name: lost}), NOW)
    assert not answer.may
    assert is_said_well(answer)


@pytest.mark.parametrize("part", ["decides", "overrides", "uses_account"])
@pytest.mark.parametrize("question", [one for one in GateQuestion if "reviews" in one.needs])
def test_promise_4_a_right_that_nobody_could_ask_about_is_no_yes(question: GateQuestion, part: str) -> None:
    """Also where the others alone would be enough: it is asked again in a moment."""
    found = replace(all_well(question), reviews=known((review(1), review(2, **{part: unknown()}))))
    answer = judge(found, NOW)
    assert (answer.next, answer.reason.code) == (Next.WAIT, "could-not-ask")


@given(questions, st.data())
def test_more_reasons_against_never_turn_a_no_into_a_yes(question: GateQuestion, data: st.DataObject) -> None:
    # What is no reason against here may well replace one that is: the account that is gone by one that was made again.
    against = sorted(name for name, (_, asked) in WORSE.items() if question in asked)
    names = data.draw(st.lists(st.sampled_from(against), min_size=1, max_size=5, unique=True))
    found, was_no = all_well(question), False
    for name in names:
        found = WORSE[name][0](found)
        answer = judge(found, NOW)
        # Two things that are worse may be about one fact: then the second stands for both.
        assert not (was_no and answer.may), names
        was_no = was_no or not answer.may


AGAINST = [
    review(9, decision="Deny"),
    review(9, decides=unknown()),
    review(9, decision="RequestChanges"),
    review(9, decision="RequestChanges", dismissal=known(NO)),
    review(9, decision="RequestChanges", dismissal=unknown()),
]


@given(any_facts(), st.sampled_from(AGAINST))
def test_one_more_word_against_never_turns_a_no_into_a_yes(found: GateFacts, against: object) -> None:
    before = judge(found, NOW)
    if isinstance(found.reviews, Known):
        found = replace(found, reviews=known((*found.reviews.value, against)))
    if isinstance(found.guards, Known):
        found = replace(found, guards=known((*found.guards.value, policy(9, "holds"))))
    assert before.may or not judge(found, NOW).may


@given(any_facts(), st.randoms(use_true_random=False))
def test_the_order_in_which_people_and_policies_spoke_does_not_matter(found: GateFacts, dice: random.Random) -> None:
    shuffled = found
    for name in ("reviews", "guards", "grants", "requesters"):
        fact = getattr(found, name)
        if isinstance(fact, Known):
            several = list(fact.value)
            dice.shuffle(several)
            shuffled = replace(shuffled, **{name: known(tuple(several))})
    one, other = judge(found, NOW), judge(shuffled, NOW)
    assert (one.may, one.next, set(one.reasons)) == (other.may, other.next, set(other.reasons))
    assert not one.reasons or one.reason == other.reason


@given(questions, st.integers(1, 10_000))
def test_what_was_learned_too_long_ago_is_no_yes(question: GateQuestion, seconds: int) -> None:
    later = NOW + FRESH + timedelta(seconds=seconds)
    found = all_well(question)
    found = replace(found, about=replace(ABOUT, expires_at=later + timedelta(hours=1)))
    asked_of_the_cluster = [name for name, _ in found.needed()]
    answer = judge(found, later)
    assert asked_of_the_cluster
    assert (answer.next, answer.reason.code) == (Next.WAIT, "too-old")


@pytest.mark.parametrize("question", [one for one in GateQuestion if one != GateQuestion.COMPARE])
def test_what_was_learned_before_the_clock_was_put_back_is_no_yes(question: GateQuestion) -> None:
    """Nobody can tell how long ago that was."""
    answer = judge(all_well(question), NOW - FRESH - timedelta(seconds=1))
    assert (answer.next, answer.reason.code) == (Next.WAIT, "too-old")


def test_the_gravest_reason_says_what_happens() -> None:
    found = WORSE["it is paused"][0](WORSE["another wish"][0](all_well(GateQuestion.GO_ON)))
    answer = judge(found, NOW)
    assert (answer.next, answer.reason.code) == (Next.END, "no-longer-wished")
    assert {one.code for one in answer.reasons} == {"no-longer-wished", "paused"}


def test_what_putting_back_waits_for_ends_where_something_else_is_wished_for() -> None:
    paused = WORSE["it is paused"][0](all_well(GateQuestion.RESTORE))
    assert judge(paused, NOW).next == Next.WAIT
    answer = judge(WORSE["another wish"][0](paused), NOW)
    assert (answer.next, answer.reason.code) == (Next.END, "no-longer-wished")
    assert judge(WORSE["another wish"][0](all_well(GateQuestion.RESTORE)), NOW).may


def test_objects_of_others_have_a_remedy_of_their_own() -> None:
    found = replace(all_well(GateQuestion.APPLY), plan=known(replace(PLAN, refused=(REFUSED,))))
    assert "IfNoController" in judge(found, NOW).reason.remedy
    other = replace(REFUSED, is_foreign=False)
    found = replace(all_well(GateQuestion.APPLY), plan=known(replace(PLAN, refused=(REFUSED, other))))
    assert "IfNoController" not in judge(found, NOW).reason.remedy


def test_every_kind_of_no_is_a_kind_of_its_own() -> None:
    assert len(RefusalKind) == len(RefusalKind.__members__)


def test_S31_an_old_yes_does_not_prove_who_asked() -> None:
    well = all_well(GateQuestion.PREPARE)
    assert are_requesters_proved(well)
    for worse in (
        replace(well, too_old=known((Lapsed("rita"),))),
        replace(well, too_old=unknown()),
        replace(well, requesters=known((unknown(),))),
        replace(well, requesters=known(())),
        replace(well, about=replace(ABOUT, is_requester_known=False)),
    ):
        assert not are_requesters_proved(worse)


@given(any_facts(), st.booleans())
def test_nobody_and_no_policy_approves_past_requested_changes(found: GateFacts, is_lost: bool) -> None:
    asking = review(9, decision="RequestChanges", dismissal=known(NO) if is_lost else None, dismissed_by="carol")
    if isinstance(found.reviews, Known):
        found = replace(found, reviews=known((*found.reviews.value, asking)))
    answer = judge(found, NOW)
    assert not answer.may or "reviews" not in found.question.needs
    if found.question == GateQuestion.DECIDE and isinstance(found.reviews, Known):
        codes = {one.code for one in answer.reasons}
        assert codes & {"changes-requested", "denied"}


@pytest.mark.parametrize("question", [one for one in GateQuestion if "reviews" in one.needs])
def test_a_dismissed_request_for_changes_stands_in_nobodys_way(question: GateQuestion) -> None:
    dismissed = review(9, decision="RequestChanges", dismissal=known(YES), dismissed_by="carol")
    assert judge(replace(all_well(question), reviews=known((review(), dismissed))), NOW).may


def test_requested_changes_never_end_a_request_and_say_what_to_do() -> None:
    found = replace(all_well(GateQuestion.DECIDE), reviews=known((review(), review(9, decision="RequestChanges"))))
    answer = judge(found, NOW)
    assert (answer.next, answer.reason.code) == (Next.WAIT, "changes-requested")
    assert answer.reason.words == "ada-9 requested changes"
    assert "override" in answer.reason.remedy
