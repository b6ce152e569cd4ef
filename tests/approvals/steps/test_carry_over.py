"""Approvals of the same risk: which are carried over to a new round or request, and what is said of the others (S51)."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from approvals.chat.tools.slack import Slack
from approvals.gate import reader
from approvals.ledger.deciding import deciding_objects
from approvals.models import AuditEntry, KubernetesIdentity, Report, Request, Review, VoidedRound
from approvals.steps.mirroring import conditions
from tests.support.approvals import world
from tests.support.approvals.changes import action
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import opened
from tests.support.approvals.policies import allow, look, save
from tests.support.approvals.waivers import approve, finding

FOUND = (finding(1, "notable"), finding(2, "notable", "POD-02"))


def write_rule(env: World, name: str = "anybody", uid: str = "u", **spec: Any) -> None:
    meta = {"name": name, "uid": uid, "generation": 1, "resourceVersion": "1"}
    obj = {"metadata": meta, "spec": {"require": [{"name": "anybody"}], "carryOver": True, **spec}}
    deciding_objects.observe(cluster=env.cluster, kind="ApprovalRule", obj=obj, is_listed=True)


def report(request: Request, *findings: dict[str, Any]) -> Request:
    """Bring it to review as prepare does, with the digest that reviews bind to."""
    new = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "harbour"}}
    found = world.in_review(request, actions=[action(new)])
    row = Report.objects.get(request=request, round=request.round)
    row.body = {**row.body, "version": 3, "findings": list(findings or FOUND)}
    row.save()
    digest = reader.subject_of(found, content_digest=str(found.content_id)).digest
    Request.objects.filter(pk=found.pk).update(subject_digest=digest)
    found.refresh_from_db()
    return found


def next_round(request: Request, *findings: dict[str, Any], **changes: Any) -> Request:
    request.refresh_from_db()
    ended = {"was_approved": True, "code": "x", "words": "x", "at": timezone.now(), "apply_at": request.apply_at}
    VoidedRound.objects.create(request=request, round=request.round, **ended)
    changes |= {"state": "stale", "round": request.round + 1, "apply_at": None}
    Request.objects.filter(pk=request.pk).update(**changes)
    request.refresh_from_db()
    return report(request, *findings)


def next_request(request: Request, state: str = "expired", **changes: Any) -> Request:
    """The same spec asked for once more, after the request ended so."""
    Request.objects.filter(pk=request.pk).update(state=state)
    again = Request.objects.get(pk=request.pk)
    again.pk, again.uid, again.number, again.round = None, uuid.uuid4(), request.number + 1, 1
    again.salt, again.subject_digest, again.carry_over, again.state = "other", "", {}, "preparing"
    for name, value in changes.items():
        setattr(again, name, value)
    again._state.adding = True
    again.save()
    return report(again)


@pytest.fixture
def first(env: World) -> Request:
    """In review, of a cluster whose one rule carries approvals over."""
    write_rule(env)
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return report(Request.objects.get())


def why_not(request: Request) -> list[str]:
    """What is said of earlier approvals, after one more look."""
    return [one["why_not"] for one in look(request).earlier_approvals]


@pytest.mark.parametrize("again", [next_round, next_request, lambda it: next_request(it, "withdrawn")])
def test_the_same_risk_again_needs_no_second_yes(
    env: World, first: Request, again: Callable[[Request], Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    notices: list[str] = []
    monkeypatch.setattr("approvals.wake.notice", lambda _, occasion: notices.append(occasion))
    given = approve(first, env.ada)
    second = look(again(first))
    assert second.state == "approved"
    carried = second.reviews.get(round=second.round)
    assert (carried.carries, carried.given_at, carried.user) == (given, given.given_at, env.ada)
    assert carried.subject_digest == second.subject_digest != given.subject_digest
    entry = AuditEntry.objects.get(verb="review.carried")
    about = {"reviewer": "ada", "fromRequest": 1, "fromRound": 1, "givenAt": given.given_at.isoformat()}
    assert about.items() <= entry.facts.items()
    verdict = AuditEntry.objects.filter(verb="request.approve").last()
    assert verdict and "carried over: ada of " in verdict.facts["why"]
    (told,) = second.earlier_approvals
    assert told["words"].endswith("is carried over")
    found = conditions.of_request(second, second.verdicts.get(round=second.round), None)
    assert told["words"] in next(one for one in found if one.type == "Approved").message
    assert notices.count("carried") == 1
    for occasion in ("carried", "decided"):
        message = Slack().message(second, occasion)
        assert message and told["words"] in message["text"]


def test_it_is_found_out_once_in_a_round_and_only_where_a_rule_does_so(env: World, first: Request) -> None:
    approve(first, env.ada)
    second = next_round(first, *FOUND, finding(3))
    told = look(second).carry_over
    Report.objects.filter(round=1).delete()
    assert look(second).carry_over == told
    deciding_objects.forget(cluster=env.cluster, uid="u")
    third = look(next_round(second))
    assert (third.carry_over, third.earlier_approvals) == (told, [])


def test_S51_nothing_is_carried_over_unless_every_rule_says_so(env: World, first: Request) -> None:
    approve(first, env.ada)
    write_rule(env, "strict", "v", carryOver=False, selector={"names": ["strimzi"]})
    assert why_not(next_round(first)) == ["approval rule strict carries no approval over"]
    assert look(first).state == "in_review"


def test_S51_a_rule_that_is_changed_later_does_not_let_go_what_is_open(env: World, first: Request) -> None:
    approve(first, env.ada)
    write_rule(env, description="and now for what is open as well")
    assert why_not(next_round(first)) == ["approval rule anybody was changed or deleted after it was given"]


def test_S51_a_rule_that_stops_it_takes_back_what_was_carried(env: World, first: Request) -> None:
    write_rule(env, require=[{"name": "two", "count": 2}])
    approve(first, env.ada)
    second = look(next_round(first))
    assert (second.state, second.reviews.filter(round=2).count()) == ("in_review", 1)
    write_rule(env, carryOver=False)
    assert look(second).state == "in_review"
    assert "it was carried over from round 1, and approval rule anybody carries no approval over" in second.problem
    approve(second, env.ada)
    assert look(second).state == "approved"


def other_spec(request: Request) -> Request:
    return next_request(request, options_digest="sha256:other")


def other_account(request: Request) -> Request:
    """Of the same request, whose row knows the account of now alone."""
    return next_round(request, service_account_uid="made again")


@pytest.mark.parametrize(
    ("again", "words"),
    [
        (lambda it: next_round(it, *FOUND, finding(3, rule="RB-07")), "is not the same or less; new: RB-07"),
        (lambda it: next_round(it, FOUND[0], {**FOUND[1], "evidence": {"a": 1}}), "is not the same or less"),
        (other_spec, "is not the same or less"),
        (other_account, "is not the same or less"),
        (lambda it: next_request(it, pins=[{"kind": "git", "reference": "x"}]), "is not the same or less"),
        (lambda it: next_request(it, chart_values={"replicas": "3"}), "is not the same or less"),
        (lambda it: next_request(it, purpose="rotate"), "is not the same or less"),
    ],
    ids=["a finding", "a value of one", "a spec", "an account", "a source", "values", "a purpose"],
)
def test_S51_what_is_not_the_same_or_less_is_approved_anew(
    env: World, first: Request, again: Callable[[Request], Request], words: str
) -> None:
    approve(first, env.ada)
    second = again(first)
    (said,) = why_not(second)
    assert said.endswith(words)
    assert (second.state, second.reviews.filter(round=second.round).count()) == ("in_review", 0)


@pytest.mark.parametrize("state", ["failed", "denied", "superseded", "applied"])
def test_S51_a_request_that_ended_otherwise_carries_nothing(env: World, first: Request, state: str) -> None:
    approve(first, env.ada)
    second = next_request(first, state)
    assert why_not(second) == []
    assert why_not(next_request(second)) == []  # nor past one that carried nothing


def leave(env: World) -> None:
    KubernetesIdentity.objects.filter(user=env.ada).update(uid="another person")


def ask_for_it(env: World) -> None:
    known = KubernetesIdentity.objects.get(user=env.ada)
    asker = {"username": "ada", "uid": known.uid, "user_id": env.ada.pk, "groups": [], "via": "browser"}
    Request.objects.update(requesters=[asker])


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (leave, "nobody is known by their name any more"),
        (ask_for_it, "they requested this change"),
        (lambda env: Request.objects.update(apply_at=timezone.now() + timedelta(hours=9)), "it was to be applied at"),
    ],
    ids=["their name is somebody else's", "they asked for it", "it was to be applied later"],
)
def test_S51_who_does_not_count_today_is_not_carried_over(
    env: World, first: Request, happens: Callable[[World], object], words: str
) -> None:
    approve(first, env.ada)
    happens(env)
    (said,) = why_not(next_round(first))
    assert said.startswith(words)


def test_S51_what_was_approved_days_ago_is_not_carried_over(env: World, first: Request) -> None:
    approve(first, env.ada, said_at=timezone.now() - timedelta(hours=73))
    assert why_not(next_round(first)) == ["it was given too long ago"]


def test_S51_who_may_not_approve_any_more_does_not_count(env: World, first: Request) -> None:
    approve(first, env.ada)
    env.kubernetes.allowed.discard(("ada", "approve", "*"))
    assert look(next_round(first)).state == "in_review"


def test_S51_who_may_have_written_it_may_have_after_it_was_carried_over(env: World, first: Request) -> None:
    approve(first, env.ada)
    env.kubernetes.allow("ada", "impersonate", "users /rita")
    second = next_round(first, requesters=[{**first.requesters[0], "via": "kubectl"}])
    look(second)
    carried = second.reviews.get(round=2)
    assert (second.state, carried.may_write) == ("in_review", True)
    assert "rita" in carried.doubt


def test_S51_a_no_ends_what_was_approved(env: World, first: Request) -> None:
    approve(first, env.ada)
    second = next_round(first)
    env.kubernetes.allow("bert", "approve")
    approve(second, env.bert, decision="RequestChanges", reason="smaller, please")
    third = next_request(second)
    assert why_not(third) == ["somebody denied it, objected, or requested changes"]


def test_S51_neither_a_policy_nor_a_machine_is_carried_over(env: World, first: Request) -> None:
    allow(env, save(env))
    assert look(first).reviews.get().policy
    approve(first, env.ada, channel="webhook")
    assert why_not(next_round(first)) == []


def test_S51_one_person_is_carried_over_once_and_not_past_what_they_say_now(env: World, first: Request) -> None:
    write_rule(env, require=[{"name": "two", "count": 2}])
    approve(first, env.ada)
    second = next_round(first)
    approve(second, env.ada)
    assert why_not(second) == ["they have reviewed this round"]
    # A second round on, it is what was said last that is carried, and what is carried is carried no further.
    third = look(next_round(second))
    assert [one["round"] for one in third.earlier_approvals] == [2]
    fourth = next_round(third)
    assert {one["round"] for one in look(fourth).earlier_approvals} == {2}
    # Said again in the same words it is said of this round.
    assert approve(fourth, env.ada).carries is None


def test_S51_what_is_carried_over_is_a_persons_approval_by_the_database_too(env: World, first: Request) -> None:
    given = approve(first, env.ada)
    for wrong in ({"decision": "BreakGlass", "incident": "7"}, {"user": None}):
        columns = {"decision": "Approve", "user": env.ada, "reason": "r", "given_at": given.given_at, **wrong}
        with pytest.raises(IntegrityError), transaction.atomic():
            Review.objects.create(request=first, round=2, voter="v", carries=given, **columns)


def test_a_reader_is_told_what_is_carried_and_why_not(env: World, first: Request, client: Client) -> None:
    write_rule(env, require=[{"name": "two", "count": 2}])
    approve(first, env.ada)
    world.enter(client, env.ada)
    second = look(next_request(first))
    page = opened(client, f"/requests/{second.uid}")
    assert f'Carried over from round 1 of <a href="/requests/{first.uid}">request 1</a>' in page
    third = look(next_round(second, *FOUND, finding(4, rule="RB-09")))
    page = opened(client, f"/requests/{third.uid}")
    assert "is not carried over: what would be applied" in page
    assert "new: RB-09" in page
    body = client.get(f"/api/v1/requests/{third.uid}").json()
    (told,) = body["earlier_approvals"]
    assert (told["name"], told["number"], told["round"]) == ("ada", 1, 1)
    assert [one["carries"] for one in body["reviews"] if one["round"] == 1] == [Review.objects.get(carries=None).pk]
