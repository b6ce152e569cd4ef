"""What changed since is seen without an event: rights, policies and accounts are asked anew at each look."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from approvals import services, tasks, wake
from approvals.errors import Collides
from approvals.models import Finding, KubernetesIdentity, Request, Review, Verdict
from approvals.steps import evaluate
from approvals.steps.mirroring.conditions import of_request
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import allow, look, save, words_of
from tests.support.approvals.waivers import approve, report
from tests.support.approvals.world import acting

ADOPTION = {
    "action": "adopt",
    "ref": {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "harbour", "name": "old"},
    "problem": "ConfigMap harbour/old exists already and does not belong to this deployment",
    "problemCode": "already-exists",
}


@pytest.fixture
def unasked(env: World) -> Request:
    """Written with kubectl, so that nobody knows by whom."""
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()))
    return world.in_review(Request.objects.get())


@pytest.fixture
def asked(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    return world.in_review(Request.objects.get())


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(wake, "request", found.append)
    return found


def test_S07_a_reviewer_whose_right_to_the_account_came_later_approves(env: World, unasked: Request) -> None:
    approve(unasked, env.ada)
    found = look(unasked)
    assert (found.state, found.problem_code) == ("in_review", "held-back")
    assert "impersonate" in found.remedy
    env.kubernetes.allow("ada", "impersonate")
    found = look(unasked)
    assert (found.state, found.problem, found.remedy) == ("approved", "", "")
    assert not Review.objects.get().may_use_account, "the record says what was so when it was given"


def test_S07_a_reviewer_who_lost_the_right_to_the_account_does_not_approve(env: World, unasked: Request) -> None:
    env.kubernetes.allow("ada", "impersonate")
    assert approve(unasked, env.ada).may_use_account
    env.kubernetes.allowed.discard(("ada", "impersonate", "*"))
    assert look(unasked).state == "in_review"
    assert not Verdict.objects.exists()


def test_S13_a_grant_whose_own_right_came_later_approves(env: World, asked: Request) -> None:
    policy = save(env)
    assert look(asked).state == "in_review"
    assert words_of(policy)[0] == "silent"
    allow(env, policy)
    assert look(asked).state == "approved"
    assert words_of(policy)[0] == "approves"


def test_S25_an_approval_that_does_not_count_is_said_and_counts_again_once_it_does(env: World, asked: Request) -> None:
    approve(asked, env.ada)
    env.kubernetes.allowed.discard(("ada", "approve", "*"))
    found = look(asked)
    assert (found.state, found.problem_code) == ("in_review", "approval-lost")
    assert "the approval of ada does not count: Kubernetes does not allow ada to approve" in found.problem
    assert "which Pratique detects automatically" in found.remedy
    env.kubernetes.allow("ada", "approve")
    assert look(asked).state == "approved"


def test_S25_groups_that_are_too_old_do_not_count_in_review_either(env: World, asked: Request) -> None:
    approve(asked, env.ada)
    proved = KubernetesIdentity.Authenticator.TOKEN_REVIEW
    env.ada.kubernetes_identities.update(authenticator=proved, groups_seen_at=world.yesterday())
    assert "they must sign in again" in look(asked).problem
    env.ada.kubernetes_identities.update(groups_seen_at=timezone.now())
    assert look(asked).state == "approved"


def test_promise_4_while_the_cluster_does_not_answer_there_is_no_verdict(env: World, asked: Request) -> None:
    approve(asked, env.ada)
    env.kubernetes.is_down = True
    found = look(asked)
    assert (found.state, found.problem_code) == ("in_review", "could-not-ask")
    assert "counts as no" in found.problem
    env.kubernetes.is_down = False
    assert look(asked).state == "approved"


def test_a_denial_counts_while_the_cluster_does_not_answer(env: World, asked: Request) -> None:
    approve(asked, env.ada, decision="Deny")
    env.kubernetes.is_down = True
    assert look(asked).state == "denied"


def test_a_review_that_comes_while_the_others_are_asked_about_is_not_passed_over(
    env: World, asked: Request, woken: list[int]
) -> None:
    env.kubernetes.allow("bert", "approve")
    approve(asked, env.ada)
    ask = env.kubernetes.ask

    def ask_and_deny(*words: Any) -> Any:
        env.kubernetes.ask = ask  # type: ignore[method-assign] # replaced for one call
        approve(asked, env.bert, decision="Deny")
        return ask(*words)

    woken.clear()
    env.kubernetes.ask = ask_and_deny  # type: ignore[method-assign] # somebody decides meanwhile
    found = look(asked)
    assert (found.state, Verdict.objects.count()) == ("in_review", 0)
    assert asked.pk in woken, "it is looked at again at once"
    assert look(asked).state == "denied"


def test_who_turns_out_to_have_asked_meanwhile_does_not_approve(env: World, unasked: Request) -> None:
    env.kubernetes.allow("ada", "impersonate")
    approve(unasked, env.ada)
    ask, obj = env.kubernetes.ask, world.seen("strimzi", world.spec(), uid=unasked.deployment.uid)

    def ask_and_learn(*words: Any) -> Any:
        env.kubernetes.ask = ask  # type: ignore[method-assign] # replaced for one call
        world.submit_spec(env.cluster, obj, env.ada)
        return ask(*words)

    env.kubernetes.ask = ask_and_learn  # type: ignore[method-assign] # the door says who wrote it
    assert look(unasked).state == "in_review"
    assert look(unasked).state == "in_review"
    assert not Verdict.objects.exists()


def test_what_is_not_decided_is_looked_at_again_after_a_while_with_jitter(env: World, asked: Request) -> None:
    shortest, longest = (timedelta(seconds=one) for one in evaluate.LOOK_AGAIN_SECONDS)
    waits = set()
    for _ in range(5):
        began = timezone.now()
        found = look(asked)
        assert found.look_again_at is not None
        assert began + shortest <= found.look_again_at <= timezone.now() + longest
        waits.add(found.look_again_at - began)
    assert len(waits) == 5


def test_the_sweep_finds_what_is_due_in_review_and_no_more_than_a_few_at_once(
    env: World, asked: Request, woken: list[int]
) -> None:
    look(asked)
    woken.clear()
    tasks.sweep()
    assert woken == []
    with time_machine.travel(timezone.now() + timedelta(minutes=1), tick=False):
        tasks.sweep()
    assert woken == [asked.pk]
    for number in range(tasks.IN_REVIEW_AT_ONCE + 5):
        world.submit_spec(env.cluster, world.seen(f"d{number}", world.spec()))
        world.in_review(Request.objects.get(deployment__name=f"d{number}"))
    Request.objects.exclude(pk=asked.pk).update(look_again_at=world.yesterday())
    Request.objects.filter(pk=asked.pk).update(look_again_at=timezone.now())
    woken.clear()
    tasks.sweep()
    assert len(woken) == tasks.IN_REVIEW_AT_ONCE
    assert asked.pk not in woken, "those come first that were looked at longest ago"


def test_a_review_whose_message_is_lost_is_found_by_the_next_sweep(
    env: World, asked: Request, woken: list[int]
) -> None:
    look(asked)
    approve(asked, env.ada)
    woken.clear()
    tasks.sweep()
    assert woken == [asked.pk]


@pytest.fixture
def colliding(env: World) -> Request:
    world.submit_spec(env.cluster, world.seen("strimzi", world.spec()), env.rita)
    request = report(Request.objects.get())
    row = request.reports.get()
    row.body["plan"]["actions"] = [ADOPTION]
    row.save(update_fields=["body"])
    return request


def test_S20_what_is_somebody_elses_is_not_asked_to_be_acknowledged_and_nobody_approves_it(
    env: World, colliding: Request
) -> None:
    assert services.to_acknowledge(colliding) == []
    with pytest.raises(Collides, match=r"harbour/old exists already .* IfNoController") as refused:
        approve(colliding, env.ada)
    assert refused.value.facts == {"objects": 1}
    assert not Review.objects.exists()
    assert approve(colliding, env.ada, decision="Deny").decision == "Deny"


def test_an_adoption_that_may_be_is_still_to_be_acknowledged(env: World, colliding: Request) -> None:
    row = colliding.reports.get()
    row.body["plan"]["actions"] = [{**ADOPTION, "problem": "", "problemCode": ""}]
    row.save(update_fields=["body"])
    assert services.to_acknowledge(colliding) == ["adopt ConfigMap harbour/old"]
    assert approve(colliding, env.ada, acknowledges=["adopt ConfigMap harbour/old"]).decision == "Approve"


def test_the_mirror_shows_the_answer_of_the_gate(env: World, unasked: Request) -> None:
    approve(unasked, env.ada)
    Request.objects.update(mirrored_at=timezone.now())
    found = look(unasked)
    assert found.mirrored_at is None, "it is shown anew"
    shown = {one.type: one for one in of_request(found, None, None)}
    assert (shown["Applied"].is_true, shown["Applied"].reason) == (False, "HeldBack")
    assert shown["Applied"].message == f"{found.problem}. {found.remedy}"


def test_findings_about_pratique_stay_for_people(env: World, asked: Request) -> None:
    Finding.objects.create(
        report=asked.reports.get(),
        position=0,
        rule="OWN-PRATIQUE-1",
        section="objects",
        severity="critical",
        message="m",
        fingerprint="f",
    )
    policy = save(env, expression="true")
    allow(env, policy)
    assert look(asked).state == "in_review"
    approve(asked, acting(env.ada).user)
    assert look(asked).state == "approved"
