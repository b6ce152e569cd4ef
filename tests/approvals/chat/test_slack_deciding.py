"""Deciding by a click in Slack: what a proved click may do, and what is answered."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from approvals.chat import deliveries
from approvals.chat.tools.slack import button_value
from approvals.models import ChatDelivery, KubernetesIdentity, LinkCode, Report, Request, Review
from tests.approvals.chat.callbacks import Linker, act, check_refused
from tests.support.approvals import world
from tests.support.approvals.chat import Listener
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import look, save
from tests.support.approvals.senders import click, form, post_slack, press, slack_headers
from tests.support.approvals.world import acting

pytestmark = pytest.mark.django_db


@pytest.fixture
def linked(env: World, link: Linker) -> None:
    link(env.ada, "UADA")


def test_a_linked_person_approves_with_a_click(env: World, asked: Request, linked: None, listener: Listener) -> None:
    assert press(asked, reply_to=listener.url).status_code == 200
    assert act().words == "Approve by ada is recorded for strimzi"
    given = Review.objects.get()
    assert (given.user, given.decision, given.channel) == (env.ada, "Approve", "chat")
    assert given.subject_digest == asked.subject_digest
    assert [it["text"] for it in listener.received] == ["Approve by ada is recorded for strimzi"]


def test_the_answer_comes_before_any_work(env: World, asked: Request, linked: None) -> None:
    env.kubernetes.asked.clear()
    assert press(asked).status_code == 200
    assert (env.kubernetes.asked, Review.objects.count()) == ([], 0)
    assert ChatDelivery.objects.get().done_at is None


def test_a_worker_is_woken_once_the_delivery_is_kept(
    asked: Request, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks() as woken:
        press(asked)
    assert len(woken) == 1


def test_a_lost_message_is_found_by_the_sweep(asked: Request, linked: None) -> None:
    press(asked)
    row = ChatDelivery.objects.get()
    early = row.received_at + timedelta(seconds=deliveries.OVERDUE_SECONDS - 1)
    late = row.received_at + timedelta(seconds=deliveries.OVERDUE_SECONDS + 1)
    assert (deliveries.overdue(early), deliveries.overdue(late)) == ([], [row.pk])
    deliveries.act(row.pk)
    assert deliveries.overdue(late) == []


def test_a_replay_is_answered_but_not_acted_on_twice(asked: Request, linked: None) -> None:
    body = form(click(button_value(asked, "Deny")))
    headers = slack_headers(body)
    first, second = post_slack(body, headers), post_slack(body, headers)
    assert [json.loads(it.content)["duplicate"] for it in (first, second)] == [False, True]
    assert second.status_code == 200
    assert act().done_at
    deliveries.act(ChatDelivery.objects.get().pk)
    assert Review.objects.count() == 1


def test_S03_a_digest_that_moved_between_message_and_click_is_refused(asked: Request, linked: None) -> None:
    value = button_value(asked, "Approve")
    Request.objects.filter(pk=asked.pk).update(subject_digest=f"sha256:{'9' * 64}")
    body = form(click(value))
    post_slack(body, slack_headers(body))
    check_refused("review it again")


def test_promise_3_a_linked_person_whom_kubernetes_does_not_let_decides_nothing(
    env: World, asked: Request, link: Linker
) -> None:
    link(env.bert, "UBERT")
    press(asked, account="UBERT")
    check_refused("does not allow bert")


def test_S05_a_requester_does_not_approve_in_chat_either(env: World, asked: Request, link: Linker) -> None:
    env.kubernetes.allow("rita", "approve")
    link(env.rita, "URITA")
    press(asked, account="URITA")
    check_refused("someone else must approve")


def test_S12_a_machine_does_not_vote_in_chat_either(env: World, asked: Request, linked: None) -> None:
    name = "system:serviceaccount:ci:bot"
    KubernetesIdentity.objects.filter(user=env.ada).update(
        username=name, authenticator=KubernetesIdentity.Authenticator.TOKEN_REVIEW
    )
    env.kubernetes.allow(name, "approve")
    press(asked)
    check_refused("machine account")


def test_somebody_switched_off_decides_nothing_and_gets_no_code(
    env: World, asked: Request, linked: None, listener: Listener
) -> None:
    env.ada.is_active = False
    env.ada.save()
    press(asked, reply_to=listener.url)
    check_refused("is disabled")
    assert not LinkCode.objects.exists()


def test_promise_4_a_cluster_that_does_not_answer_means_no(env: World, asked: Request, linked: None) -> None:
    env.kubernetes.is_down = True
    press(asked)
    check_refused("counts as no")


@pytest.mark.parametrize("worst", ["dangerous", "unknown", "breaking", "critical"])
def test_S22_a_risky_request_is_denied_but_not_approved_from_chat(asked: Request, linked: None, worst: str) -> None:
    Report.objects.update(worst=worst)
    press(asked)
    check_refused("cannot be approved without seeing")
    ChatDelivery.objects.all().delete()
    press(asked, "Deny")
    assert act().words == "Deny by ada is recorded for strimzi"


def test_S22_content_that_touches_pratique_is_not_approved_from_chat_however_old_the_finding(
    asked: Request, linked: None
) -> None:
    asked.reports.get().findings.create(
        position=0,
        rule="OWN-PRATIQUE-01",
        section="content",
        severity="critical",
        message="our own",
        fingerprint="f",
        is_new=False,
    )
    press(asked)
    check_refused("cannot be approved without seeing")


def test_S03_a_deletion_cannot_be_acknowledged_by_a_click(asked: Request, linked: None) -> None:
    ref = {"group": "", "version": "v1", "kind": "Secret", "namespace": "harbour", "name": "old"}
    report = asked.reports.get()
    report.body["plan"]["actions"] = [{"action": "delete", "ref": ref}]
    report.save()
    press(asked)
    check_refused("delete Secret harbour/old")


def test_a_worker_that_died_after_the_review_tells_of_it_the_second_time(
    asked: Request, linked: None, listener: Listener
) -> None:
    press(asked, reply_to=listener.url)
    act()
    for state in ("in_review", "approved"):
        Request.objects.update(state=state)
        ChatDelivery.objects.update(done_at=None, words="")
        assert act().words == "Approve by ada is recorded for strimzi"
        assert Review.objects.count() == 1


def test_who_presses_a_button_after_deciding_elsewhere_decides_again(env: World, asked: Request, linked: None) -> None:
    world.review(asked, acting(env.ada), "Deny")
    press(asked)
    assert act().words == "Approve by ada is recorded for strimzi"
    assert [one.decision for one in Review.objects.counted()] == ["Approve"]
    assert [one.decision for one in Review.objects.all()] == ["Deny", "Approve"]


@pytest.mark.parametrize("is_acted_on", [False, True], ids=["it waits", "the worker died after it"])
def test_an_old_button_does_not_replace_what_was_decided_since(
    env: World, asked: Request, linked: None, is_acted_on: bool
) -> None:
    press(asked)
    if is_acted_on:
        act()
        ChatDelivery.objects.update(done_at=None, words="")
    world.review(asked, acting(env.ada), "Deny")
    assert "you made a later decision in the browser: Deny" in act().words
    assert [one.decision for one in Review.objects.counted()] == ["Deny"]


def test_what_nobody_could_act_on_for_long_is_to_be_decided_anew(asked: Request, linked: None) -> None:
    press(asked)
    ChatDelivery.objects.update(received_at=world.yesterday())
    check_refused("too old to process")


@pytest.mark.parametrize(
    ("url", "is_ours"),
    [
        ("https://hooks.slack.com/actions/T/1/x", True),
        ("http://hooks.slack.com/actions/T/1/x", False),
        ("https://hooks.slack.com.evil.example/", False),
        ("https://ada@hooks.slack.com/", False),
        ("https://hooks.slack.com:8443/", False),
        ("//hooks.slack.com/actions", False),
        ("/etc/passwd", False),
        ("file:///etc/passwd", False),
        ("http://169.254.169.254/latest/meta-data", False),
        ("", False),
    ],
)
def test_answers_go_to_slack_and_nowhere_else(asked: Request, url: str, is_ours: bool) -> None:
    press(asked, reply_to=url)
    assert ChatDelivery.objects.get().wish["reply_to"] == (url if is_ours else "")


def test_an_answer_that_cannot_be_delivered_changes_nothing(asked: Request, linked: None, listener: Listener) -> None:
    press(asked, reply_to=listener.url)
    port = listener.url.split(":")[2].split("/")[0]
    row = ChatDelivery.objects.get()
    row.wish = {**row.wish, "reply_to": f"https://127.0.0.1:{port}/not-tls"}
    row.save()
    assert act().done_at
    assert Review.objects.count() == 1


def test_S22_who_approves_past_a_guard_is_told_where_findings_are_accepted(
    env: World, asked: Request, linked: None
) -> None:
    save(env, kind="guard", name="calm", expression="false")
    save(env, kind="guard", name="dry", expression="false", mode="dry-run")
    look(asked)
    press(asked)
    words = act().words
    assert "held back by calm: accept findings on the request page, not in chat: https://pratique.example" in words
