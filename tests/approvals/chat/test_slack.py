"""Slack: what is proved, what is not, and what a proved click may do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.test import Client
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from approvals import services
from approvals.chat import inbox
from approvals.chat.slack import SALT, button_value
from approvals.models import ChatAccount, ChatDelivery, KubernetesIdentity, LinkCode, Report, Request, Review
from tests.approvals.chat.conftest import Listener
from tests.approvals.chat.senders import (
    COMMAND_URL,
    SLACK_URL,
    TEAM,
    click,
    form,
    post_slack,
    press,
    slack_headers,
)
from tests.approvals.core import world
from tests.approvals.core.conftest import World
from tests.approvals.core.test_policies import look, save

pytestmark = pytest.mark.django_db
NOT_VERIFIED = {"error": "not verified"}
Linker = Callable[[User, str], ChatAccount]


def act() -> ChatDelivery:
    """What the worker does with the one delivery."""
    row = ChatDelivery.objects.get()
    inbox.act(row.pk)
    row.refresh_from_db()
    return row


def test_a_linked_person_approves_with_a_click(here: World, asked: Request, link: Linker, listener: Listener) -> None:
    link(here.ada, "UADA")
    assert press(asked, reply_to=listener.url).status_code == 200
    assert act().words == "Approve by ada is recorded for strimzi"
    given = Review.objects.get()
    assert (given.user, given.decision, given.channel) == (here.ada, "Approve", "chat")
    assert given.subject_digest == asked.subject_digest
    assert [it["text"] for it in listener.received] == ["Approve by ada is recorded for strimzi"]


def test_the_answer_comes_before_any_work(here: World, asked: Request, link: Linker) -> None:
    link(here.ada, "UADA")
    here.kubernetes.asked.clear()
    assert press(asked).status_code == 200
    assert (here.kubernetes.asked, Review.objects.count()) == ([], 0)
    assert ChatDelivery.objects.get().done_at is None


def test_a_worker_is_woken_once_the_delivery_is_kept(
    asked: Request,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks() as woken:
        press(asked)
    assert len(woken) == 1


def test_a_lost_message_is_found_by_the_sweep(here: World, asked: Request, link: Linker) -> None:
    link(here.ada, "UADA")
    press(asked)
    row = ChatDelivery.objects.get()
    early = row.received_at + timedelta(seconds=inbox.OVERDUE_SECONDS - 1)
    late = row.received_at + timedelta(seconds=inbox.OVERDUE_SECONDS + 1)
    assert (inbox.overdue(early), inbox.overdue(late)) == ([], [row.pk])
    inbox.act(row.pk)
    assert inbox.overdue(late) == []


@pytest.mark.parametrize(
    "change",
    [
        {"X-Slack-Signature": ""},
        {"X-Slack-Signature": "v0=" + "0" * 64},
        {"X-Slack-Signature": "v0=\u00e9"},
        {"X-Slack-Signature": "v1=abc"},
        {"X-Slack-Request-Timestamp": ""},
        {"X-Slack-Request-Timestamp": "soon"},
        {"X-Slack-Request-Timestamp": "-1"},
        {"X-Slack-Request-Timestamp": "\u00b2"},
        {"X-Slack-Request-Timestamp": "9" * 5000},
    ],
    ids=[
        "no signature",
        "wrong signature",
        "signature not ascii",
        "another version",
        "no timestamp",
        "timestamp in words",
        "negative timestamp",
        "superscript timestamp",
        "timestamp without end",
    ],
)
def test_unproved_callbacks_all_get_the_same_401(asked: Request, change: dict[str, str]) -> None:
    body = form(click(button_value(asked, "Approve")))
    answer = post_slack(body, slack_headers(body) | change)
    assert (answer.status_code, json.loads(answer.content)) == (401, NOT_VERIFIED)
    assert not ChatDelivery.objects.exists()


def refused(body: bytes, headers: dict[str, str], url: str = SLACK_URL) -> bool:
    answer = post_slack(body, headers, url)
    is_401 = (answer.status_code, json.loads(answer.content)) == (401, NOT_VERIFIED)
    return is_401 and not ChatDelivery.objects.exists()


def test_a_body_changed_on_the_way_is_refused(asked: Request) -> None:
    body = form(click(button_value(asked, "Deny")))
    assert refused(form(click(button_value(asked, "Approve"))), slack_headers(body))


@pytest.mark.parametrize("seconds", [-301, 301, 86_400], ids=["too old", "from the future", "from tomorrow"])
def test_timestamps_far_from_now_are_refused(asked: Request, seconds: int) -> None:
    body = form(click(button_value(asked, "Approve")))
    assert refused(body, slack_headers(body, at=time.time() + seconds))


def test_another_secret_is_refused(asked: Request) -> None:
    body = form(click(button_value(asked, "Approve")))
    assert refused(body, slack_headers(body, secret="x" * 32))


@pytest.mark.parametrize("secret", ["", "   "], ids=["empty", "blank"])
def test_without_a_secret_nothing_is_believed(asked: Request, configured: Settings, secret: str) -> None:
    configured.PRATIQUE = {**configured.PRATIQUE, "SLACK_SIGNING_SECRET": secret}
    body = form(click(button_value(asked, "Approve")))
    assert refused(body, slack_headers(body, secret=secret))


def test_a_signed_body_that_is_not_utf8_is_refused(configured: Settings, here: World) -> None:
    assert refused(b"payload=\xff\xfe", slack_headers(b"payload=\xff\xfe"))


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 5 * 1024 * 1024], ids=["over ours", "over Django's"])
def test_a_body_without_end_is_refused(configured: Settings, here: World, size: int) -> None:
    body = b"payload=" + b"x" * size
    assert refused(body, slack_headers(body))


def test_a_form_of_very_many_fields_is_refused(configured: Settings, here: World) -> None:
    body = b"&".join(b"a=%d" % number for number in range(60))
    assert refused(body, slack_headers(body))
    assert refused(body, slack_headers(body), COMMAND_URL)


def test_a_replay_is_answered_but_not_acted_on_twice(here: World, asked: Request, link: Linker) -> None:
    link(here.ada, "UADA")
    body = form(click(button_value(asked, "Deny")))
    headers = slack_headers(body)
    first, second = post_slack(body, headers), post_slack(body, headers)
    assert [json.loads(it.content)["duplicate"] for it in (first, second)] == [False, True]
    assert second.status_code == 200
    assert act().done_at
    inbox.act(ChatDelivery.objects.get().pk)
    assert Review.objects.count() == 1


def test_another_team_is_refused(asked: Request) -> None:
    body = form(click(button_value(asked, "Approve"), team={"id": "TOTHER"}))
    assert refused(body, slack_headers(body))


def test_somebody_of_another_team_in_a_shared_channel_is_refused(asked: Request) -> None:
    body = form(click(button_value(asked, "Approve"), user={"id": "UADA", "team_id": "TPARTNER"}))
    assert refused(body, slack_headers(body))


def test_without_a_team_nobody_counts(asked: Request, configured: Settings) -> None:
    configured.PRATIQUE = {**configured.PRATIQUE, "SLACK_TEAM": ""}
    body = form(click(button_value(asked, "Approve"), team={"id": ""}, user={"id": "UADA", "team_id": ""}))
    answer = post_slack(body, slack_headers(body))
    assert answer.status_code in {400, 401}
    assert not ChatDelivery.objects.exists()


FORGED = signing.dumps({"request": "x", "digest": "y", "decision": "Approve"}, key="k" * 50, salt=SALT)
OTHER_SALT = signing.dumps({"request": "x", "digest": "y", "decision": "Approve"}, salt="sessions")


@pytest.mark.parametrize(
    "payload",
    [
        None,
        [],
        {},
        {"actions": []},
        click("Approve"),
        click(FORGED),
        click(OTHER_SALT),
        click("", actions="no list"),
        {**click(""), "user": "ada"},
        click("x", account="U" * 101),
        click("x", account=""),
    ],
    ids=[
        "null",
        "list",
        "empty",
        "no action",
        "plain value",
        "value signed by somebody else",
        "value signed for something else",
        "actions no list",
        "user no object",
        "account without end",
        "account empty",
    ],
)
def test_what_is_signed_by_slack_but_not_from_our_message_is_named(
    configured: Settings, here: World, payload: Any
) -> None:
    body = form(payload)
    answer = post_slack(body, slack_headers(body))
    assert (answer.status_code, "our own messages" in json.loads(answer.content)["error"]) == (400, True)
    assert not ChatDelivery.objects.exists()


@pytest.mark.parametrize(
    "body",
    [b"payload={", b"nothing=1", b"payload=" + b"[" * 100_000, b""],
    ids=["no json", "no payload", "nested without end", "empty"],
)
def test_signed_rubbish_is_named(configured: Settings, here: World, body: bytes) -> None:
    assert post_slack(body, slack_headers(body)).status_code == 400


def test_an_edited_button_is_refused(asked: Request) -> None:
    value = button_value(asked, "Deny")
    body = form(click(("a" if value[0] != "a" else "b") + value[1:]))
    assert post_slack(body, slack_headers(body)).status_code == 400
    assert not ChatDelivery.objects.exists()


def test_the_button_that_opens_the_browser_asks_for_nothing(asked: Request) -> None:
    body = form(click("", actions=[{"type": "button", "action_id": "open"}]))
    assert post_slack(body, slack_headers(body)).status_code == 200
    assert not ChatDelivery.objects.exists()


def test_S03_a_digest_that_moved_between_message_and_click_is_refused(
    here: World, asked: Request, link: Linker
) -> None:
    link(here.ada, "UADA")
    value = button_value(asked, "Approve")
    Request.objects.filter(pk=asked.pk).update(subject_digest=f"sha256:{'9' * 64}")
    body = form(click(value))
    post_slack(body, slack_headers(body))
    assert "look at it again" in act().words
    assert not Review.objects.exists()


def test_an_unlinked_account_gets_a_one_time_code_and_nothing_else(
    here: World, asked: Request, listener: Listener
) -> None:
    press(asked, account="UNOBODY", reply_to=listener.url)
    kept = act().words
    (said,) = listener.received
    assert "strimzi" not in said["text"]
    code = said["text"].split("enter the code ")[1].split(" ")[0]
    assert code not in kept
    assert not Review.objects.exists()
    account = services.link_chat_account(user=here.ada, code=code)
    assert (account.user, account.account, account.tenant) == (here.ada, "UNOBODY", TEAM)


def test_a_code_is_for_no_other_channel_than_slacks(here: World, asked: Request) -> None:
    press(asked, account="UNOBODY", reply_to="https://evil.example/collect")
    act()
    assert not LinkCode.objects.exists()


def test_the_command_gives_a_code_for_the_account_that_asked(here: World, configured: Settings) -> None:
    body = urlencode({"team_id": TEAM, "user_id": "UADA", "user_name": "ada", "text": "link"}).encode()
    answer = post_slack(body, slack_headers(body), COMMAND_URL)
    words = json.loads(answer.content)
    assert (answer.status_code, words["response_type"]) == (200, "ephemeral")
    code = words["text"].split("enter the code ")[1].split(" ")[0]
    assert services.link_chat_account(user=here.ada, code=code).account == "UADA"


@pytest.mark.parametrize(
    "fields",
    [{"team_id": "TOTHER", "user_id": "U1"}, {"team_id": TEAM}, {"user_id": "U1"}, {"team_id": TEAM, "user_id": "\0"}],
    ids=["other team", "nobody", "no team", "no name"],
)
def test_a_command_of_somebody_else_is_refused(here: World, configured: Settings, fields: dict[str, str]) -> None:
    body = urlencode(fields).encode()
    assert refused(body, slack_headers(body), COMMAND_URL)
    assert not LinkCode.objects.exists()


def test_promise_3_a_linked_person_whom_kubernetes_does_not_let_decides_nothing(
    here: World, asked: Request, link: Linker
) -> None:
    link(here.bert, "UBERT")
    press(asked, account="UBERT")
    assert "does not let bert" in act().words
    assert not Review.objects.exists()


def test_S05_a_requester_does_not_approve_in_chat_either(here: World, asked: Request, link: Linker) -> None:
    here.kubernetes.allow("rita", "approve")
    link(here.rita, "URITA")
    press(asked, account="URITA")
    assert "somebody else has to approve" in act().words
    assert not Review.objects.exists()


def test_S12_a_machine_does_not_vote_in_chat_either(here: World, asked: Request, link: Linker) -> None:
    name = "system:serviceaccount:ci:bot"
    KubernetesIdentity.objects.filter(user=here.ada).update(
        username=name, authenticator=KubernetesIdentity.Authenticator.TOKEN_REVIEW
    )
    here.kubernetes.allow(name, "approve")
    link(here.ada, "UADA")
    press(asked)
    assert "S12" in act().words
    assert not Review.objects.exists()


def test_somebody_switched_off_decides_nothing_and_gets_no_code(
    here: World, asked: Request, link: Linker, listener: Listener
) -> None:
    link(here.ada, "UADA")
    here.ada.is_active = False
    here.ada.save()
    press(asked, reply_to=listener.url)
    assert "switched off" in act().words
    assert not Review.objects.exists()
    assert not LinkCode.objects.exists()


def test_promise_4_a_cluster_that_does_not_answer_means_no(here: World, asked: Request, link: Linker) -> None:
    link(here.ada, "UADA")
    here.kubernetes.is_down = True
    press(asked)
    assert "counts as no" in act().words
    assert not Review.objects.exists()


@pytest.mark.parametrize("worst", ["dangerous", "unknown", "breaking", "critical"])
def test_S22_a_risky_request_is_denied_but_not_approved_from_chat(
    here: World, asked: Request, link: Linker, worst: str
) -> None:
    link(here.ada, "UADA")
    Report.objects.update(worst=worst)
    press(asked)
    assert "too serious" in act().words
    assert not Review.objects.exists()
    ChatDelivery.objects.all().delete()
    press(asked, "Deny")
    assert act().words == "Deny by ada is recorded for strimzi"


def test_S22_content_that_touches_pratique_is_not_approved_from_chat_however_old_the_finding(
    here: World, asked: Request, link: Linker
) -> None:
    link(here.ada, "UADA")
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
    assert "too serious" in act().words
    assert not Review.objects.exists()


def test_S03_a_deletion_cannot_be_acknowledged_by_a_click(here: World, asked: Request, link: Linker) -> None:
    link(here.ada, "UADA")
    ref = {"group": "", "version": "v1", "kind": "Secret", "namespace": "harbour", "name": "old"}
    report = asked.reports.get()
    report.body["plan"]["actions"] = [{"action": "delete", "ref": ref}]
    report.save()
    press(asked)
    assert "delete Secret harbour/old" in act().words
    assert not Review.objects.exists()


def test_a_worker_that_died_after_the_review_tells_of_it_the_second_time(
    here: World, asked: Request, link: Linker, listener: Listener
) -> None:
    link(here.ada, "UADA")
    press(asked, reply_to=listener.url)
    act()
    ChatDelivery.objects.update(done_at=None, words="")
    assert act().words == "Approve by ada is recorded for strimzi"
    assert Review.objects.count() == 1


def test_whoever_decided_otherwise_is_told_so(here: World, asked: Request, link: Linker) -> None:
    link(here.ada, "UADA")
    services.review(
        by=here.ada,
        request_id=asked.pk,
        decision="Deny",
        subject_digest=asked.subject_digest,
        reason="",
        channel="browser",
    )
    press(asked)
    assert "already decided" in act().words


def test_what_nobody_could_act_on_for_long_is_to_be_decided_anew(here: World, asked: Request, link: Linker) -> None:
    link(here.ada, "UADA")
    press(asked)
    ChatDelivery.objects.update(received_at=world.yesterday())
    assert "too late" in act().words
    assert not Review.objects.exists()


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


def test_an_answer_that_cannot_be_delivered_changes_nothing(
    here: World, asked: Request, link: Linker, listener: Listener
) -> None:
    link(here.ada, "UADA")
    press(asked, reply_to=listener.url)
    port = listener.url.split(":")[2].split("/")[0]
    ChatDelivery.objects.update(
        wish={**ChatDelivery.objects.get().wish, "reply_to": f"https://127.0.0.1:{port}/not-tls"}
    )
    assert act().done_at
    assert Review.objects.count() == 1


def test_a_callback_needs_no_session_and_takes_no_get(configured: Settings, here: World) -> None:
    assert Client(enforce_csrf_checks=True).get(SLACK_URL).status_code == 405
    assert Client(enforce_csrf_checks=True).post(SLACK_URL).status_code == 401
    assert Client().post("/chat/teams/decisions").status_code == 404


def test_S22_who_approves_past_a_guard_is_told_where_findings_are_accepted(
    here: World, asked: Request, link: Linker
) -> None:
    link(here.ada, "UADA")
    save(here, kind="guard", name="calm", expression="false")
    save(here, kind="guard", name="dry", expression="false", mode="dry-run")
    look(asked)
    press(asked)
    words = act().words
    assert "held back by calm: findings are accepted on the page, not in a chat: https://pratique.example" in words
