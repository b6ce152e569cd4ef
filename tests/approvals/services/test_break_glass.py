"""Break-glass: who may, what it skips and what not, and the review that is owed for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from approvals import services
from approvals.chat.tools.slack import Slack
from approvals.clock import database_now
from approvals.deciding.change_windows import Windows
from approvals.deciding.rings import MemberState
from approvals.errors import DigestMoved, InvalidInput, NotAllowed, NotOpen, ReviewOwed, SelfApproval
from approvals.gate.answers import GateQuestion
from approvals.gate.facts import GateFacts, RuleFacts
from approvals.gate.judge import judge
from approvals.models import AuditEntry, Finding, Policy, Report, Request, Review
from approvals.selectors import debts, figures
from approvals.steps import evaluate
from approvals.steps.mirroring import conditions
from approvals.steps.mirroring.events import event_of
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.gate_facts import NO, NOW, all_well, check, known, order, policy, review, rule, unknown
from tests.support.approvals.policies import save
from tests.support.approvals.world import acting

BROKEN = review(1, decision="BreakGlass", overrides=None, waives=frozenset())
HOLDING = {
    "guards": known((policy(1, "holds"),)),
    "rules": known((RuleFacts("four-eyes", rule=rule("two", count=2)),)),
    "windows": known(Windows((), ("change window nights cannot be read",))),
    "orders": known((order(MemberState.SETTLING),)),
    "checks": known((check("failed"), check())),
}
ASK_PEOPLE = [GateQuestion.DECIDE, GateQuestion.PLAN, GateQuestion.APPLY, GateQuestion.GO_ON, GateQuestion.RESTORE]


@pytest.mark.parametrize("question", ASK_PEOPLE)
@pytest.mark.parametrize(
    ("reviews", "more", "may"),
    [
        pytest.param([BROKEN], HOLDING, True, id="it answers for counts, guards, rules, windows, rings and checks"),
        pytest.param(
            [BROKEN],
            {name: unknown() for name in ("rules", "windows", "orders", "checks")},
            True,
            id="and where these cannot be read",
        ),
        pytest.param([review(1)], HOLDING, False, id="an approval does not answer for guards"),
        pytest.param([BROKEN, review(2, decision="Deny")], {}, False, id="a Deny stays a no"),
        pytest.param([BROKEN, review(2, decision="RequestChanges")], {}, False, id="requested changes stay a no"),
        pytest.param([replace(BROKEN, decides=known(NO))], {}, False, id="who may not any more"),
        pytest.param([replace(BROKEN, decides=unknown())], {}, False, id="who could not be asked about"),
        pytest.param([replace(BROKEN, is_by_a_requester=True)], {}, False, id="who asked for it"),
        pytest.param([replace(BROKEN, doubt="ada may write")], {}, False, id="who may have asked for it"),
        pytest.param([review(1, decision="Accept", waives=frozenset())], {}, False, id="acceptance lets nothing go"),
    ],
)
def test_what_a_break_glass_answers_for(
    question: GateQuestion, reviews: list[Any], more: dict[str, Any], may: bool
) -> None:
    facts = replace(all_well(question), reviews=known(tuple(reviews)), **more)
    assert judge(facts, NOW).may == may


@pytest.mark.parametrize(
    "lacking",
    [
        pytest.param({"requesters": known((known(NO),))}, id="S07 an account that the requester may not use"),
        pytest.param({"approved": known(frozenset())}, id="other bytes than were approved"),
        pytest.param({"account": unknown()}, id="an account that nobody could look at"),
        pytest.param({"unmet": known("Kubernetes is too old")}, id="constraints"),
    ],
)
def test_a_break_glass_answers_for_nothing_else(lacking: dict[str, Any]) -> None:
    facts: GateFacts = replace(all_well(GateQuestion.PLAN), reviews=known((BROKEN,)))
    assert judge(facts, NOW).may
    assert not judge(replace(facts, **lacking), NOW).may


def test_S07_an_unknown_requester_needs_a_breaker_who_may_use_the_account() -> None:
    facts = all_well(GateQuestion.DECIDE)
    facts = replace(facts, about=replace(facts.about, is_requester_known=False))
    assert judge(replace(facts, reviews=known((BROKEN,))), NOW).may
    assert not judge(replace(facts, reviews=known((replace(BROKEN, uses_account=known(NO)),))), NOW).may


def smash(request: Request, by: User, **changes: Any) -> Review:
    wish = {
        "by": acting(by),
        "request_id": request.pk,
        "decision": "BreakGlass",
        "subject_digest": request.subject_digest,
        "reason": "the registry is down",
        "incident": "INC-7",
        "channel": "browser",
        **changes,
    }
    return services.give_review(**wish)


def look(request: Request) -> Request:
    evaluate.run(Request.objects.select_related("deployment__cluster").get(pk=request.pk), "test")
    request.refresh_from_db()
    return request


def test_the_account_of_the_decision_webhook_breaks_no_glass(env: World, held: Request, settings: Settings) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "DECISION_WEBHOOK_USER": "bert"}
    with pytest.raises(NotAllowed, match="machine account"):
        smash(held, env.bert, channel="rest")


@pytest.mark.parametrize(("state", "is_open"), [("approved", True), ("applying", False), ("preparing", False)])
def test_what_is_approved_and_waits_is_let_go_until_it_began(
    env: World, request_: Request, state: str, is_open: bool
) -> None:
    env.kubernetes.allow("bert", "break-glass", "strimzi")
    Request.objects.filter(pk=request_.pk).update(state=state)
    if is_open:
        assert smash(request_, env.bert).decision == "BreakGlass"
    else:
        with pytest.raises(NotOpen, match="approved ones that wait"):
            smash(request_, env.bert)


@pytest.fixture
def held(env: World, request_: Request, settings: Settings) -> Request:
    """A serious request that needs two approvals and that a guard holds; bert may break glass."""
    settings.PRATIQUE = {**settings.PRATIQUE, "APPROVALS_NEEDED": 2}
    save(env, kind=Policy.Kind.GUARD, expression="false")
    Report.objects.update(worst="critical")
    env.kubernetes.allow("bert", "break-glass", "strimzi")
    return request_


@pytest.mark.parametrize("channel", ["browser", "rest", "kubectl"])
def test_a_request_goes_by_break_glass_and_a_review_is_owed(env: World, held: Request, channel: str) -> None:
    smash(held, env.bert, channel=channel)
    assert look(held).state == "approved"
    (broken,) = debts.owed()
    assert (broken.username, broken.incident, broken.channel) == ("bert", "INC-7", channel)
    facts = AuditEntry.objects.get(verb="review.given").facts
    assert (facts["decision"], facts["incident"], facts["reason"]) == ("BreakGlass", "INC-7", "the registry is down")
    assert "bert broke glass" in AuditEntry.objects.get(verb="request.approve").facts["why"]
    condition = conditions.of_break_glass(broken, None, debts.due_at(broken))
    assert (condition.type, condition.is_true) == ("ReviewOwed", True)
    event = event_of(held.deployment, held, name="strimzi-1", url="https://x", now=database_now())
    assert event["type"] == "Warning"
    assert "by break-glass of bert for incident INC-7" in event["note"]
    message = Slack().message(held, "break_glass")
    assert message is not None and ":rotating_light: *BREAK-GLASS*" in message["text"]
    assert figures.break_glass(database_now()) == figures.BreakGlassFigures(1, 1, 0)
    late = database_now() + timedelta(hours=25)
    assert figures.break_glass(late) == figures.BreakGlassFigures(1, 1, 1)


def test_it_is_paid_by_somebody_else_who_may_approve(env: World, held: Request) -> None:
    answer: dict[str, Any] = {"decision": "Accept", "reason": "", "incident": ""}
    smash(held, env.bert)
    env.kubernetes.allow("bert", "approve")
    env.kubernetes.allow("rita", "approve")
    with pytest.raises(NotOpen):  # nothing went yet
        smash(held, env.ada, **answer)
    look(held)
    for person in (env.bert, env.rita):
        with pytest.raises(SelfApproval):
            smash(held, person, **answer)
    with pytest.raises(NotAllowed):
        smash(held, world.user("carla", env.cluster), **answer)
    with pytest.raises(DigestMoved):
        smash(held, env.ada, **answer, subject_digest=f"sha256:{'0' * 64}")
    with pytest.raises(InvalidInput, match="reason"):
        smash(held, env.ada, **{**answer, "decision": "Object"})
    with pytest.raises(NotAllowed):
        smash(held, env.ada, **answer, channel="chat")
    paid = smash(held, env.ada, **{**answer, "decision": "Object", "reason": "the mirror was up"})
    (broken,) = debts.broken()
    assert (list(debts.owed()), debts.answer_to(broken)) == ([], paid)
    condition = conditions.of_break_glass(broken, paid, debts.due_at(broken))
    assert (condition.is_true, condition.reason) == (False, "Objected")
    message = Slack().message(held, "reviewed")
    assert message is not None and "ada objects to the break-glass of bert" in message["text"]
    with pytest.raises(NotOpen):
        smash(held, env.ada, **answer)
    held.refresh_from_db()
    assert held.state == "approved"


def test_who_reviews_it_afterwards_keeps_their_own_approval(env: World, held: Request) -> None:
    world.review(held, acting(env.ada))
    smash(held, env.bert)
    look(held)
    smash(held, env.ada, decision="Accept", reason="", incident="")
    assert sorted(held.reviews.counted().values_list("decision", flat=True)) == ["Accept", "Approve", "BreakGlass"]
    assert not debts.owed().exists()


def test_two_who_broke_glass_do_not_pay_for_each_other(env: World, held: Request) -> None:
    answer: dict[str, Any] = {"decision": "Accept", "reason": "", "incident": ""}
    env.kubernetes.allow("ada", "break-glass")
    smash(held, env.bert)
    smash(held, env.ada)
    look(held)
    with pytest.raises(SelfApproval, match="you broke the glass"):
        smash(held, env.ada, **answer)


def another(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen("kiali", world.spec()), env.rita)
    env.kubernetes.allow("bert", "break-glass", "kiali")
    return world.in_review(Request.objects.get(deployment__name="kiali"))


def test_who_owes_a_review_cannot_break_glass_again(env: World, held: Request) -> None:
    second = another(env)
    smash(held, env.bert)
    with pytest.raises(ReviewOwed, match="INC-7"):  # also before anything went by it
        smash(second, env.bert)
    look(held)
    with pytest.raises(ReviewOwed):
        smash(second, env.bert)
    smash(held, env.ada, decision="Accept", reason="", incident="")
    smash(second, env.bert)


def test_a_break_glass_by_which_nothing_went_is_not_owed(env: World, held: Request) -> None:
    second = another(env)
    smash(held, env.bert)
    services.withdraw(by=acting(env.rita), request_id=held.pk, reason="", via="browser")
    assert not debts.owed().exists()
    smash(second, env.bert)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"reason": " "}, InvalidInput, id="no reason"),
        pytest.param({"incident": ""}, InvalidInput, id="no incident"),
        pytest.param({"incident": "x" * 201}, InvalidInput, id="long incident"),
        pytest.param({"subject_digest": f"sha256:{'0' * 64}"}, DigestMoved, id="another digest"),
        pytest.param({"channel": "chat"}, NotAllowed, id="in chat"),
        pytest.param({"channel": "webhook"}, NotAllowed, id="by a machine"),
    ],
)
def test_what_a_break_glass_has_to_say(
    env: World, held: Request, changes: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        smash(held, env.bert, **changes)
    assert not Review.objects.exists()


def test_S05_nobody_breaks_glass_for_their_own_change_unless_the_operator_allows_it(
    env: World, held: Request, settings: Settings
) -> None:
    env.kubernetes.allow("rita", "break-glass")
    with pytest.raises(SelfApproval):
        smash(held, env.rita)
    settings.PRATIQUE = {**settings.PRATIQUE, "BREAK_GLASS_ALONE": True}
    smash(held, env.rita)
    assert look(held).state == "approved"
    env.kubernetes.allow("rita", "approve")
    with pytest.raises(SelfApproval):
        smash(held, env.rita, decision="Accept", reason="", incident="")


def test_the_verb_and_the_groups_are_asked_for_again_each_time(env: World, held: Request, settings: Settings) -> None:
    with pytest.raises(NotAllowed, match="break glass"):
        smash(held, env.ada)  # approve is not enough
    settings.PRATIQUE = {**settings.PRATIQUE, "BREAK_GLASS_GROUPS": ["on-call"]}
    with pytest.raises(NotAllowed, match="PRATIQUE_BREAK_GLASS_GROUPS"):
        smash(held, env.bert)
    settings.PRATIQUE = {**settings.PRATIQUE, "BREAK_GLASS_GROUPS": ["on-call", "developers"]}
    smash(held, env.bert)
    env.kubernetes.allowed.discard(("bert", "break-glass", "strimzi"))
    assert look(held).state == "in_review"


def test_S22_nobody_breaks_glass_for_what_affects_pratique_itself(env: World, held: Request) -> None:
    own = {"rule": "OWN-PRATIQUE-01", "section": "own", "severity": "critical", "message": "x"}
    Finding.objects.create(report=Report.objects.get(), position=1, **own)
    with pytest.raises(NotAllowed, match="affects Pratique itself"):
        smash(held, env.bert)


def test_a_break_glass_takes_the_place_of_an_approval_by_the_same_person(env: World, held: Request) -> None:
    env.kubernetes.allow("ada", "break-glass")
    smash(held, env.ada, decision="Approve", incident="")
    smash(held, env.ada)
    (counted,) = held.reviews.counted()
    assert (counted.decision, counted.replaces and counted.replaces.decision) == ("BreakGlass", "Approve")
