"""Slack's callbacks: what proves one, and what is refused at the door."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from django.core import signing as django_signing
from django.test import Client
from pytest_django import Settings

from approvals.chat.tools.slack import SALT, button_value
from approvals.models import ChatDelivery, Request
from tests.approvals.chat.callbacks import NOT_VERIFIED, refused
from tests.support.approvals.fixtures import World
from tests.support.approvals.senders import COMMAND_URL, SLACK_URL, click, form, post_slack, slack_headers

pytestmark = pytest.mark.django_db


UNPROVED = {
    "no signature": {"X-Slack-Signature": ""},
    "wrong signature": {"X-Slack-Signature": "v0=" + "0" * 64},
    "signature not ascii": {"X-Slack-Signature": "v0=\u00e9"},
    "another version": {"X-Slack-Signature": "v1=abc"},
    "no timestamp": {"X-Slack-Request-Timestamp": ""},
    "timestamp in words": {"X-Slack-Request-Timestamp": "soon"},
    "negative timestamp": {"X-Slack-Request-Timestamp": "-1"},
    "superscript timestamp": {"X-Slack-Request-Timestamp": "\u00b2"},
    "timestamp without end": {"X-Slack-Request-Timestamp": "9" * 5000},
}


@pytest.mark.parametrize("change", UNPROVED.values(), ids=UNPROVED)
def test_unproved_callbacks_all_get_the_same_401(asked: Request, change: dict[str, str]) -> None:
    body = form(click(button_value(asked, "Approve")))
    answer = post_slack(body, slack_headers(body) | change)
    assert (answer.status_code, json.loads(answer.content)) == (401, NOT_VERIFIED)
    assert not ChatDelivery.objects.exists()


def test_a_body_changed_on_the_way_is_refused(asked: Request) -> None:
    body = form(click(button_value(asked, "Deny")))
    assert refused(form(click(button_value(asked, "Approve"))), slack_headers(body))


AT_THE_DOOR: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "too old": ({}, {"at": -301}),
    "from the future": ({}, {"at": 330}),
    "from tomorrow": ({}, {"at": 86_400}),
    "another secret": ({}, {"secret": "x" * 32}),
    "another team": ({"team": {"id": "TOTHER"}}, {}),
    "somebody of another team in a shared channel": ({"user": {"id": "UADA", "team_id": "TPARTNER"}}, {}),
}


@pytest.mark.parametrize(("payload", "signing"), AT_THE_DOOR.values(), ids=AT_THE_DOOR)
def test_what_is_of_another_time_secret_or_team_is_refused(
    asked: Request, payload: dict[str, Any], signing: dict[str, Any]
) -> None:
    body = form(click(button_value(asked, "Approve"), **payload))
    times = {"at": time.time() + signing["at"]} if "at" in signing else {}
    assert refused(body, slack_headers(body, **signing | times))


@pytest.mark.parametrize("secret", ["", "   "], ids=["empty", "blank"])
def test_without_a_secret_nothing_is_believed(asked: Request, configured: Settings, secret: str) -> None:
    configured.PRATIQUE = {**configured.PRATIQUE, "SLACK_SIGNING_SECRET": secret}
    body = form(click(button_value(asked, "Approve")))
    assert refused(body, slack_headers(body, secret=secret))


def test_a_signed_body_that_is_not_utf8_is_refused(configured: Settings, env: World) -> None:
    assert refused(b"payload=\xff\xfe", slack_headers(b"payload=\xff\xfe"))


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 5 * 1024 * 1024], ids=["over ours", "over Django's"])
def test_a_body_without_end_is_refused(configured: Settings, env: World, size: int) -> None:
    body = b"payload=" + b"x" * size
    assert refused(body, slack_headers(body))


def test_a_form_of_very_many_fields_is_refused(configured: Settings, env: World) -> None:
    body = b"&".join(b"a=%d" % number for number in range(60))
    assert refused(body, slack_headers(body))
    assert refused(body, slack_headers(body), COMMAND_URL)


def test_without_a_team_nobody_counts(asked: Request, configured: Settings) -> None:
    configured.PRATIQUE = {**configured.PRATIQUE, "SLACK_TEAM": ""}
    body = form(click(button_value(asked, "Approve"), team={"id": ""}, user={"id": "UADA", "team_id": ""}))
    answer = post_slack(body, slack_headers(body))
    assert answer.status_code in {400, 401}
    assert not ChatDelivery.objects.exists()


FORGED = django_signing.dumps({"request": "x", "digest": "y", "decision": "Approve"}, key="k" * 50, salt=SALT)
OTHER_SALT = django_signing.dumps({"request": "x", "digest": "y", "decision": "Approve"}, salt="sessions")


NOT_OURS: dict[str, Any] = {
    "null": None,
    "list": [],
    "empty": {},
    "no action": {"actions": []},
    "plain value": click("Approve"),
    "value signed by somebody else": click(FORGED),
    "value signed for something else": click(OTHER_SALT),
    "actions no list": click("", actions="no list"),
    "user no object": {**click(""), "user": "ada"},
    "account without end": click("x", account="U" * 101),
    "account empty": click("x", account=""),
}


@pytest.mark.parametrize("payload", NOT_OURS.values(), ids=NOT_OURS)
def test_what_is_signed_by_slack_but_not_from_our_message_is_named(
    configured: Settings, env: World, payload: Any
) -> None:
    body = form(payload)
    answer = post_slack(body, slack_headers(body))
    assert (answer.status_code, "from a message that Pratique sent" in json.loads(answer.content)["error"]) == (
        400,
        True,
    )
    assert not ChatDelivery.objects.exists()


@pytest.mark.parametrize(
    "body",
    [b"payload={", b"nothing=1", b"payload=" + b"[" * 100_000, b""],
    ids=["no json", "no payload", "nested without end", "empty"],
)
def test_signed_rubbish_is_named(configured: Settings, env: World, body: bytes) -> None:
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


def test_a_callback_needs_no_session_and_takes_no_get(configured: Settings, env: World) -> None:
    assert Client(enforce_csrf_checks=True).get(SLACK_URL).status_code == 405
    assert Client(enforce_csrf_checks=True).post(SLACK_URL).status_code == 401
    assert Client().post("/chat/teams/decisions").status_code == 404
