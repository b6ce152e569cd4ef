"""What exactly is answered where one thing is worse than well: the consequence and the code, question by question."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from approvals.errors import ASK_ANEW, CHANGED
from approvals.gate.answers import GateQuestion, Next
from approvals.gate.facts import (
    Account,
    Collisions,
    GateFacts,
    How,
    Known,
    ReadUnattended,
    Running,
    Sources,
    Unknown,
    Unreviewed,
)
from approvals.gate.judge import FRESH, judge
from approvals.gate.people import are_requesters_proved
from approvals.gate.remedies import RefusalKind
from approvals.lifecycle import MAX_ROUNDS
from approvals.policy import Lapsed
from provisioner.errors import DigestMismatch
from provisioner.missing_kinds import Lack
from tests.support.approvals.gate_facts import (
    ABOUT,
    ACCOUNT,
    NO,
    NOW,
    PLAN,
    REFUSED,
    SUBJECT,
    WISH,
    WORSE,
    YES,
    all_well,
    any_facts,
    is_said_well,
    known,
    policy,
    review,
    unknown,
)

ANSWERS: dict[str, dict[str, str]] = {
    "another cluster": {"MEET PREPARE PLAN APPLY CORRECT CREATE TAKE_AWAY": "end: precondition-failed"},
    "another deployment of the name": {
        "PLAN APPLY": "wait: no-longer-wished",
        "GO_ON RESTORE": "end: no-longer-wished",
        "CORRECT CREATE": "wait: other-wish",
    },
    "it is being deleted": {
        "PLAN APPLY": "wait: no-longer-wished",
        "GO_ON RESTORE": "end: no-longer-wished",
        "CORRECT CREATE": "wait: being-deleted",
    },
    "a freeze": {"PLAN APPLY CREATE": "wait: outside-window"},
    # Nothing keeps Pratique from putting back what ran before a failed apply.
    "a freeze of everything": {"PLAN APPLY GO_ON CORRECT CREATE": "wait: outside-window"},
    "a window that nobody can read": {"PLAN APPLY CREATE CORRECT": "wait: window-unreadable"},
    "it is to be applied later": {"PLAN APPLY": "wait: apply-later"},
    "an earlier ring is not healthy": {"PLAN APPLY": "wait: waits-for-ring"},
    "it is paused": {"PLAN APPLY GO_ON RESTORE CORRECT CREATE TAKE_AWAY": "wait: paused"},
    "another wish": {
        "PLAN APPLY": "wait: no-longer-wished",
        "GO_ON": "end: no-longer-wished",
        "CREATE": "wait: other-wish",
    },
    "drift is reported only": {"CORRECT": "wait: other-wish"},
    "no account": {"PREPARE PLAN APPLY GO_ON RESTORE CORRECT CREATE": "end: digest-mismatch"},
    "no account named": {"PREPARE PLAN APPLY GO_ON RESTORE CORRECT CREATE": "end: bad-source"},
    "another account of the name": {"PREPARE PLAN APPLY GO_ON RESTORE CORRECT CREATE": "end: digest-mismatch"},
    "the account was made again": {"PLAN APPLY": "report again: account-changed"},
    "the account is gone": {"PREPARE PLAN APPLY GO_ON RESTORE CORRECT CREATE": "wait: missing-account"},
    "Pratique lacks a right": {"PREPARE": "wait: missing-right"},
    "a requester may not": {"PREPARE PLAN APPLY": "wait: forbidden"},
    "nobody knows who asked": {"PREPARE PLAN APPLY": "end: forbidden"},
    "who asked is known by old groups": {"PREPARE": "end: groups-too-old"},
    "what was read unattended is withdrawn": {"PREPARE DECIDE PLAN APPLY GO_ON CREATE": "wait: reads-withdrawn"},
    "another subject": {"PLAN APPLY": "end: digest-mismatch"},
    "no verdict": {"PLAN APPLY CORRECT CREATE": "end: digest-mismatch"},
    "nobody approved": {
        "DECIDE": "wait: needs-approval",
        "PLAN APPLY GO_ON RESTORE CREATE": "wait: no-longer-approved",
    },
    "who approved may not any more": {
        "DECIDE": "wait: approval-lost",
        "PLAN APPLY GO_ON RESTORE CREATE": "wait: no-longer-approved",
    },
    "who approved asked for it": {
        "DECIDE": "wait: approval-lost",
        "PLAN APPLY GO_ON RESTORE CREATE": "wait: no-longer-approved",
    },
    "who accepted may not any more": {"PLAN APPLY GO_ON RESTORE CREATE": "wait: waiver-lost"},
    "somebody denied it": {"DECIDE": "deny: denied", "PLAN APPLY GO_ON RESTORE CREATE": "wait: no-longer-approved"},
    "somebody requests changes": {
        "DECIDE": "wait: changes-requested",
        "PLAN APPLY GO_ON RESTORE CREATE": "wait: no-longer-approved",
    },
    "who dismissed a request for changes may not any more": {
        "DECIDE": "wait: changes-requested",
        "PLAN APPLY GO_ON RESTORE CREATE": "wait: no-longer-approved",
    },
    "what was carried over does not count again": {
        "DECIDE": "wait: approval-lost",
        "PLAN APPLY CREATE": "report again: not-carried-over",
        "GO_ON RESTORE": "wait: policy-changed",
    },
    "the policy was changed since": {
        "DECIDE": "wait: needs-approval",
        "PLAN APPLY CREATE": "report again: policy-changed",
        "GO_ON RESTORE": "wait: policy-changed",
    },
    "more have to approve": {
        "DECIDE": "wait: needs-approval",
        "PLAN APPLY GO_ON RESTORE CREATE": "wait: no-longer-approved",
    },
    "a guard holds": {"DECIDE": "wait: held-back", "PLAN APPLY GO_ON RESTORE CREATE": "wait: guard-holds"},
    "a guard cannot be asked": {"DECIDE": "wait: held-back", "PLAN APPLY GO_ON RESTORE CREATE": "wait: guard-holds"},
    "constraints are not met": {"PLAN APPLY": "wait: unmet-constraints"},
    "a catalog says worse": {"DECIDE PLAN APPLY": "report again: catalog-changed"},
    "the plan does more": {"APPLY": "report again: plan-changed"},
    "it meets what is somebody else's": {"DECIDE": "wait: collides"},
    "what it met is gone": {"DECIDE": "report again: collision-over"},
    "what was missing is there": {"DECIDE": "report again: cause-over"},
    "rights are missing": {"APPLY": "wait: missing-rights"},
    "objects are refused": {"APPLY": "wait: collides"},
    "a rule needs others": {"DECIDE": "wait: approval-rule", "PLAN APPLY CREATE": "report again: approval-rule"},
    "a check has not answered": {"DECIDE PLAN APPLY": "wait: external-check"},
    "a check failed": {"DECIDE PLAN APPLY": "wait: external-check-failed"},
    "a check cannot be read": {"DECIDE PLAN APPLY": "wait: external-check-unreadable"},
    "a check before the apply has not answered": {"PLAN APPLY": "wait: external-check"},
    "a rule cannot be read": {"DECIDE PLAN APPLY CREATE": "wait: approval-rule-unreadable"},
    "a rule was lowered": {"DECIDE": "wait: approval-rule-changed"},
    "nobody knows who holds a role": {"DECIDE PLAN APPLY CREATE": "wait: could-not-ask"},
    "another revision runs": {"COMPARE CORRECT CREATE TAKE_AWAY": "wait: not-running"},
    "something is applied": {"COMPARE CORRECT CREATE TAKE_AWAY": "wait: at-work"},
    "what it met is gone once too often": {"DECIDE": "end: changes-again"},
    "the plan does more once too often": {"APPLY": "end: changes-again"},
    "more objects would go than can be looked through": {"APPLY GO_ON": "wait: too-many-to-see"},
    "a conversion webhook does not work": {"APPLY GO_ON": "wait: conversion-fails"},
    "data would go that was to stay": {"APPLY": "report again: loses-data", "GO_ON": "end: loses-data"},
    "the report tells less than one made now": {"APPLY": "report again: untold"},
    "objects would go that nobody was shown": {"APPLY": "report again: goes-along-unseen"},
    "objects would go by now that nobody was shown": {"GO_ON": "end: goes-along-unseen"},
    "the data of a deletion is not as it was": {"APPLY": "report again: plan-changed"},
    "the revision is revoked": {"RESTORE": "end: precondition-failed"},
    "it expired": {"DECIDE PLAN APPLY": "wait: expired"},
}


def said(facts: GateFacts) -> tuple[str, str]:
    answer = judge(facts, NOW)
    return (str(answer.next), answer.reason.code if answer.reasons else "")


@pytest.mark.parametrize("name", WORSE)
def test_what_is_worse_has_its_own_answer_and_no_other_question_is_bothered(name: str) -> None:
    found = {}
    for question in GateQuestion:
        answer = judge(WORSE[name][0](all_well(question)), NOW)
        assert is_said_well(answer)
        if answer.reasons:
            found[question.name] = f"{answer.next}: {answer.reason.code}"
    expected = {question: words for questions, words in ANSWERS[name].items() for question in questions.split()}
    assert found == expected
    assert set(expected) == {one.name for one in WORSE[name][1]}


DELETION = replace(ABOUT, purpose="delete")
DYING = known(replace(WISH, is_being_deleted=True))


def deletion(question: GateQuestion, **changes: Any) -> GateFacts:
    return replace(all_well(question), about=DELETION, desired_spec=DYING, **changes)


@pytest.mark.parametrize("question", [GateQuestion.PLAN, GateQuestion.APPLY, GateQuestion.GO_ON])
def test_S15_a_deletion_needs_that_it_is_being_deleted(question: GateQuestion) -> None:
    assert judge(deletion(question), NOW).may
    words = judge(replace(deletion(question), desired_spec=known(WISH)), NOW).reason.words
    assert words == "BundleDeployment harbour is not being deleted"


@pytest.mark.parametrize("question", [GateQuestion.PLAN, GateQuestion.APPLY])
def test_S15_a_deletion_that_nothing_lets_go_any_more_is_reviewed(question: GateQuestion) -> None:
    assert said(deletion(question, reviews=known(()))) == ("report again", "plan-changed")
    for approval in (review(), review(is_policy=True)):
        assert judge(deletion(question, reviews=known((approval,))), NOW).may
    two = replace(DELETION, needed=2)
    by_policy = deletion(question, reviews=known((review(is_policy=True, decides=known(NO)),)))
    assert said(replace(by_policy, about=two)) == ("wait", "no-longer-approved")
    assert said(replace(deletion(question), about=two)) == ("report again", "plan-changed")
    assert said(replace(all_well(question), reviews=known(()))) == ("wait", "no-longer-approved"), "of a deletion only"


def test_S15_the_operators_word_lets_a_deletion_go_and_a_no_stops_it_all_the_same() -> None:
    free = known(Unreviewed(True))
    for question in (GateQuestion.DECIDE, GateQuestion.PLAN, GateQuestion.APPLY, GateQuestion.GO_ON):
        found = deletion(question, reviews=known(()), unreviewed=free)
        assert judge(found, NOW).may, question
        assert not judge(replace(found, reviews=known((review(decision="Deny"),))), NOW).may
        assert not judge(replace(found, guards=known((policy(1, "holds"),))), NOW).may
        # Nobody asked whether somebody may use the account: the operator's word says nothing of that (S07).
        nobody = replace(found, about=replace(DELETION, is_requester_known=False, has_requesters=False))
        assert not judge(nobody, NOW).may


def test_S15_what_people_saw_may_hold_more_data_by_now_and_what_nobody_saw_may_not() -> None:
    taking = known(replace(PLAN, takes_data=True))
    assert judge(deletion(GateQuestion.APPLY, plan=taking), NOW).may
    let_go = deletion(GateQuestion.APPLY, plan=taking, reviews=known(()), unreviewed=known(Unreviewed(True)))
    assert said(let_go) == ("report again", "plan-changed")
    unasked = deletion(GateQuestion.APPLY, plan=taking, reviews=known((review(decides=unknown()),)))
    assert said(unasked)[0] == "wait", "no answer voids no approval"


def test_S07_of_an_account_that_went_another_thing_is_said_than_of_one_that_never_was() -> None:
    for question in (
        GateQuestion.PREPARE,
        GateQuestion.GO_ON,
        GateQuestion.RESTORE,
        GateQuestion.CORRECT,
        GateQuestion.CREATE,
    ):
        gone = replace(all_well(question), account=known(replace(ACCOUNT, uid="")))
        assert "the approved ServiceAccount with uid" in judge(gone, NOW).reason.words
        never = replace(all_well(question), account=known(replace(ACCOUNT, uid="", approved_uid="")))
        assert said(never) == ("wait", "missing-account")
    for question in (GateQuestion.PLAN, GateQuestion.APPLY):
        account = replace(ACCOUNT, approved_uid="")
        gone = replace(all_well(question), account=known(replace(account, uid="")))
        assert said(gone) == ("wait", "missing-account")
        again = judge(replace(gone, account=known(replace(account, uid="new"))), NOW)
        assert (again.next, again.reason.code) == (Next.REPORT_AGAIN, "account-changed")
        assert "was recreated" in again.reason.words
        nobody = replace(SUBJECT, service_account_uid="")
        unbound = replace(ABOUT, subject_digest=nobody.digest)
        found = replace(
            all_well(question), about=unbound, subject=known(nobody), account=known(replace(account, uid=""))
        )
        found = replace(found, approved=known(frozenset({nobody.digest})))
        assert said(found) == ("wait", "missing-account"), "nothing is applied as nobody, whatever was approved"


@pytest.mark.parametrize(
    ("about", "is_known"), [({"is_requester_known": False}, False), ({"has_requesters": False}, False), ({}, True)]
)
def test_S08_what_sources_name_is_read_for_somebody_known(about: dict[str, bool], is_known: bool) -> None:
    for question in (GateQuestion.PREPARE, GateQuestion.PLAN, GateQuestion.APPLY):
        found = replace(all_well(question), about=replace(ABOUT, **about))
        assert judge(found, NOW).may is is_known
        assert judge(replace(found, sources=known(Sources())), NOW).may


@pytest.mark.parametrize(
    ("is_read", "is_unattended", "is_listed", "may"),
    [
        (False, False, False, False),
        (True, False, False, True),
        (False, True, False, False),
        (False, False, True, False),
        (False, True, True, True),
    ],
)
def test_S08_by_groups_that_are_too_old_nothing_is_read_but_what_the_operator_listed(
    is_read: bool, is_unattended: bool, is_listed: bool, may: bool
) -> None:
    sources = Sources(("Secret harbour/pull",), is_read, is_unattended, is_listed, hours=12)
    found = replace(all_well(GateQuestion.PREPARE), too_old=known((Lapsed("rita"),)), sources=known(sources))
    assert judge(found, NOW).may is may
    words = "" if may else judge(found, NOW).reason.words
    assert ("PRATIQUE_UNATTENDED_READS" in words) is (is_unattended and not may)


def test_S08_what_is_not_read_is_named_whether_sources_or_config_lookup_name_it() -> None:
    named = ("Deployment.apps harbour/crane",)
    well = replace(all_well(GateQuestion.PREPARE), sources=known(Sources(named, hours=12)))
    unknown_one = replace(well, about=replace(ABOUT, is_requester_known=False))
    read = ReadUnattended(named, is_listed=False, too_old=(Lapsed("rita"),))
    for found in (
        unknown_one,
        replace(well, too_old=known((Lapsed("rita"),))),
        replace(well, read_unattended=known(read)),
    ):
        words = judge(found, NOW).reason.words
        assert words.startswith("the spec names Deployment.apps harbour/crane, "), words


def test_S08_what_the_operator_let_be_read_counts_while_they_do_or_who_asked_may_be_asked() -> None:
    read = ReadUnattended(("Secret harbour/pull",), is_listed=False, too_old=(Lapsed("rita"),))
    for question in GateQuestion:
        if "read_unattended" not in question.needs:
            continue
        withdrawn = replace(all_well(question), read_unattended=known(read))
        answer = judge(withdrawn, NOW)
        assert (answer.next, answer.reason.code) == (Next.WAIT, "reads-withdrawn")
        assert "Secret harbour/pull" in answer.reason.words
        assert "prod/harbour in PRATIQUE_UNATTENDED_READS again" in answer.reason.remedy
        for well in (replace(read, is_listed=True), replace(read, too_old=()), replace(read, names=())):
            assert judge(replace(all_well(question), read_unattended=known(well)), NOW).may


def test_S31_the_command_names_the_account_unless_everybody_who_asked_was_let() -> None:
    lacking = replace(all_well(GateQuestion.PREPARE), own_right=known(NO))
    assert "--installer" not in judge(lacking, NOW).reason.words
    reserved = replace(lacking, account=known(replace(ACCOUNT, is_reserved=True)))
    unproved = replace(lacking, requesters=known((known(NO),)))
    for found in (reserved, unproved):
        words = "\n".join(one.words for one in judge(found, NOW).reasons)
        assert "--installer harbour/installer" in words
        assert "pratique-manage" not in judge(found, NOW).reason.remedy, "one command; a second one would leave it out"
    assert not are_requesters_proved(unproved)
    assert not are_requesters_proved(
        replace(all_well(GateQuestion.PREPARE), too_old=known((Lapsed("rita"),)), sources=known(Sources()))
    )


def test_S25_what_putting_back_waits_for_people_to_change_ends_and_a_missing_answer_does_not() -> None:
    other = known(replace(WISH, options_digest="others"))
    found = replace(all_well(GateQuestion.RESTORE), desired_spec=other)
    assert judge(found, NOW).may
    assert said(replace(found, is_untouched=True)) == ("end", "no-longer-wished"), "nothing was written yet"
    assert judge(replace(all_well(GateQuestion.RESTORE), is_untouched=True), NOW).may, "the same wish"
    held = replace(found, guards=known((policy(1, "holds"),)))
    assert said(held) == ("end", "no-longer-wished")
    for silent in ({"account": unknown()}, {"guards": unknown()}, {"reviews": known((review(decides=unknown()),))}):
        assert judge(replace(found, **silent), NOW).next != Next.GO
    assert said(replace(found, account=unknown())) == ("wait", "could-not-ask")
    old = replace(ACCOUNT)
    assert said(replace(found, account=known(old, at=NOW - 2 * FRESH))) == ("wait", "too-old")


AGAIN = [name for name, answers in ANSWERS.items() if any(one.startswith("report again") for one in answers.values())]


@pytest.mark.parametrize("name", AGAIN)
def test_S20_nothing_is_reported_again_by_itself_for_ever(name: str) -> None:
    """Whatever for: after so many rounds somebody has to look, who can ask anew."""
    for questions, words in ANSWERS[name].items():
        for question in questions.split() if words.startswith("report again") else ():
            if question == "CREATE":
                continue  # below: there is no round of it
            worse = WORSE[name][0](all_well(GateQuestion[question]))
            before = replace(worse, about=replace(worse.about, rounds=MAX_ROUNDS - 1))
            assert judge(before, NOW).next == Next.REPORT_AGAIN
            answer = judge(replace(worse, about=replace(worse.about, rounds=MAX_ROUNDS)), NOW)
            assert (answer.next, answer.reason.code) == (Next.END, "changes-again")
            assert answer.reason.words.endswith(
                f"reported again {MAX_ROUNDS} times already, and will not be reported again"
            )
            assert judge(before, NOW).reason.words in answer.reason.words
            assert "ask-again" in answer.reason.remedy


@pytest.mark.parametrize("question", GateQuestion)
@given(st.data())
def test_S20_rounds_are_counted_only_where_another_one_could_follow(
    question: GateQuestion, data: st.DataObject
) -> None:
    """What was left out asks people by a new request: an end would have it looked at for ever."""
    found = data.draw(any_facts(st.just(question)))
    first, last = (judge(replace(found, about=replace(found.about, rounds=made)), NOW) for made in (0, MAX_ROUNDS))
    is_of_a_round = question in (GateQuestion.DECIDE, GateQuestion.PLAN, GateQuestion.APPLY)
    assert is_of_a_round or first == last
    assert not is_of_a_round or Next.REPORT_AGAIN not in {one.next for one in last.reasons}


@given(any_facts(st.just(GateQuestion.DECIDE)), st.integers(0, 2 * MAX_ROUNDS))
def test_S05_a_no_of_a_reviewer_is_the_verdict_whatever_else_is_wrong(found: GateFacts, made: int) -> None:
    assume(isinstance(found.reviews, Known))
    assert isinstance(found.reviews, Known)
    denied = known((*found.reviews.value, review(9, decision="Deny")))
    found = replace(found, reviews=denied, about=replace(found.about, rounds=made))
    answer = judge(found, NOW)
    assert (answer.next, answer.reason.code) == (Next.DENY, "denied")


def test_S20_what_stands_in_the_way_opens_no_round() -> None:
    many = replace(ABOUT, rounds=MAX_ROUNDS)
    stays = replace(all_well(GateQuestion.DECIDE), about=many, collisions=known(Collisions(("a exists",), False)))
    assert said(stays) == ("wait", "collides")
    assert judge(replace(all_well(GateQuestion.DECIDE), about=many), NOW).may


def test_refused_objects_are_told_apart_by_why() -> None:
    other = replace(REFUSED, is_foreign=False)
    unserved, removed, elsewhere, off = (
        replace(other, lack=lack) for lack in (Lack.UNDEFINED, Lack.REMOVED, Lack.OTHER_VERSION, Lack.NOT_IN_RELEASE)
    )
    for refused, code in (
        ((REFUSED,), "collides"),
        ((REFUSED, other), "objects-refused"),
        ((unserved,), "unknown-kind"),
        ((unserved, other), "objects-refused"),
        ((unserved, REFUSED), "objects-refused"),
        ((removed,), "removed-api"),
        ((removed, unserved), "removed-api"),
        ((removed, other), "removed-api"),
        ((elsewhere,), "unknown-version"),
        ((off,), "unknown-version"),
        ((unserved, off), "unknown-version"),
        ((elsewhere, other), "objects-refused"),
    ):
        found = replace(all_well(GateQuestion.APPLY), plan=known(replace(PLAN, refused=refused)))
        answer = judge(found, NOW)
        assert (answer.next, answer.reason.code) == (Next.WAIT, code)
        assert answer.reason.words.startswith(f"{len(refused)} of 0 objects would be rejected: ")
        assert answer.reason.said == tuple((one.ref, one.said) for one in refused)


def test_what_is_applied_and_what_is_no_more_are_two_reasons() -> None:
    found = replace(all_well(GateQuestion.CORRECT), running=known(Running(3, False, True)))
    assert {one.code for one in judge(found, NOW).reasons} == {"not-running", "at-work"}


def test_S13_what_an_edited_grant_approved_is_reviewed_again_unless_something_else_is_lacking() -> None:
    edited = review(
        is_policy=True, is_in_force=False, decides=None, uses_account=None, overrides=None, waives=frozenset()
    )
    lost, silent = review(2, decides=known(NO)), review(2, decides=unknown())
    two = replace(ABOUT, needed=2)
    for question in (GateQuestion.PLAN, GateQuestion.APPLY, GateQuestion.CREATE):
        found = replace(all_well(question), reviews=known((edited,)))
        assert said(found) == ("report again", "policy-changed")
        assert said(replace(found, reviews=known((edited, lost)), about=two)) == ("report again", "policy-changed")
        # It may be enough without the grant: nobody could ask.
        assert judge(replace(found, reviews=known((edited, silent))), NOW).next == Next.WAIT
        assert judge(replace(found, reviews=known((edited, review(2)))), NOW).may, "enough without it"
        own = replace(edited, is_by_a_requester=True)
        assert said(replace(found, reviews=known((own,)))) == ("wait", "no-longer-approved")
        denied = replace(edited, decision="Deny")
        assert said(replace(found, reviews=known((denied,)))) == ("wait", "no-longer-approved")
    decided = replace(all_well(GateQuestion.DECIDE), reviews=known((edited,)))
    answer = judge(decided, NOW)
    assert (answer.reason.code, answer.reason.is_problem) == ("needs-approval", False), "its present word is asked for"
    both = replace(decided, reviews=known((edited, lost)))
    assert judge(both, NOW).reason.code == "approval-lost"
    assert "changed since" not in judge(both, NOW).reason.words


def test_S13_a_grant_counts_once_in_force_and_saying_yes() -> None:
    grant = policy(1, "approves", uses_account=known(YES))
    found = replace(all_well(GateQuestion.DECIDE), reviews=known(()), grants=known((grant,)))
    assert judge(found, NOW).may
    for worse in ({"is_enforced": False}, {"result": "silent"}, {"has_approved": True}):
        assert not judge(replace(found, grants=known((replace(grant, **worse),))), NOW).may, worse
    unknown_asker = replace(found, about=replace(ABOUT, is_requester_known=False))
    assert judge(unknown_asker, NOW).may
    for uses in (None, known(NO)):
        grants = known((replace(grant, uses_account=uses),))
        assert judge(replace(unknown_asker, grants=grants), NOW).reason.code == "held-back"


@pytest.mark.parametrize("result", ["holds", "error"])
def test_S14_a_guard_holds_where_it_is_in_force(result: str) -> None:
    for question in (
        GateQuestion.DECIDE,
        GateQuestion.PLAN,
        GateQuestion.GO_ON,
        GateQuestion.RESTORE,
        GateQuestion.CREATE,
    ):
        found = replace(all_well(question), guards=known((policy(1, result),)))
        assert not judge(found, NOW).may
        assert judge(replace(found, guards=known((policy(1, result, is_enforced=False),))), NOW).may
        assert judge(replace(found, guards=known((policy(1, "not-selected"),))), NOW).may


@pytest.mark.parametrize(
    ("worse", "words"),
    [
        ({"is_by_a_requester": True}, "they requested this change"),
        ({"decides": known(NO)}, "they may no longer decide"),
        ({"overrides": known(NO)}, "Kubernetes does not allow it"),
        ({"overrides": None}, "it was not checked"),
    ],
)
def test_S25_what_somebody_accepted_counts_while_they_may(worse: dict[str, Any], words: str) -> None:
    found = replace(all_well(GateQuestion.PLAN), reviews=known((review(1, waives=frozenset()), review(2, **worse))))
    answer = judge(found, NOW)
    assert (answer.next, answer.reason.code) == (Next.WAIT, "waiver-lost")
    assert words in answer.reason.words
    denied = review(2, decision="Deny", **worse)
    codes = {one.code for one in judge(replace(found, reviews=known((review(1), denied))), NOW).reasons}
    assert "waiver-lost" not in codes, "who says no accepts nothing"


def test_S07_S05_where_nobody_knows_who_asked_one_approver_vouches_and_one_is_doubted() -> None:
    about = replace(ABOUT, is_requester_known=False)
    found = replace(all_well(GateQuestion.DECIDE), about=about)
    assert judge(found, NOW).may
    unvouched = replace(found, reviews=known((review(uses_account=known(NO)),)))
    answer = judge(unvouched, NOW)
    assert (answer.reason.code, answer.reason.awaits) == ("held-back", "rights")
    doubted = replace(found, reviews=known((review(doubt="ada may write it"),)))
    answer = judge(doubted, NOW)
    assert (answer.reason.code, answer.reason.awaits) == ("held-back", "")
    assert "One more person" in answer.reason.remedy
    assert judge(replace(doubted, reviews=known((review(1, doubt="ada may write it"), review(2)))), NOW).may


def test_S15_why_a_deletion_is_reviewed_is_said_while_people_have_not() -> None:
    found = deletion(GateQuestion.DECIDE, reviews=known(()), unreviewed=known(Unreviewed(False, "a Secret goes along")))
    answer = judge(found, NOW)
    assert (answer.reason.code, answer.reason.words) == ("needs-review", "a Secret goes along")


def test_what_is_final_ends_with_the_remedy_that_fits() -> None:
    spec = Unknown("the constraint cannot be read", NOW, How.CLUSTER, "invalid-constraint", is_final=True)
    bytes_ = Unknown("the content was changed", NOW, How.CLUSTER, DigestMismatch.code, is_final=True)
    for fact, remedy in ((spec, "corrects its spec"), (bytes_, CHANGED.format(name="harbour"))):
        answer = judge(replace(all_well(GateQuestion.PLAN), unmet=fact), NOW)
        assert answer.next == Next.END
        assert remedy in answer.reason.remedy


def test_nobody_is_told_to_ask_anew_while_that_would_do_nothing() -> None:
    """To ask again does something once a request is settled: one that expires is in a moment, a denied one by then."""
    told = {
        one for one in RefusalKind if one.value.next in (Next.WAIT, Next.REPORT_AGAIN) and ASK_ANEW in one.value.remedy
    }
    assert told == {RefusalKind.EXPIRED}


def test_every_known_fact_is_as_old_as_it_is() -> None:
    """Just not too old is young enough, and what records say does not age."""
    at_the_edge = NOW - FRESH
    found = replace(all_well(GateQuestion.GO_ON), account=known(ACCOUNT, at=at_the_edge))
    assert judge(found, NOW).may
    assert judge(replace(found, guards=Known((), at_the_edge - FRESH, How.RECORDS)), NOW).may
    account = known(Account("harbour", "installer", "account", "account"), at=at_the_edge - FRESH)
    assert said(replace(found, account=account)) == ("wait", "too-old")
