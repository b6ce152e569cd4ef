"""Linking a Slack account to a person: a one-time code for whoever Slack says it is, and for nobody else."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest
from pytest_django import Settings

from approvals import services
from approvals.models import LinkCode, Request, Review
from tests.approvals.chat.callbacks import act, refused
from tests.support.approvals.chat import Listener
from tests.support.approvals.fixtures import World
from tests.support.approvals.senders import COMMAND_URL, TEAM, post_slack, press, slack_headers
from tests.support.approvals.world import acting

pytestmark = pytest.mark.django_db


def test_an_unlinked_account_gets_a_one_time_code_and_nothing_else(
    env: World, asked: Request, listener: Listener
) -> None:
    press(asked, account="UNOBODY", reply_to=listener.url)
    kept = act().words
    (said,) = listener.received
    assert "strimzi" not in said["text"]
    code = said["text"].split("enter the code ")[1].split(" ")[0]
    assert code not in kept
    assert not Review.objects.exists()
    account = services.link_chat_account(by=acting(env.ada), code=code)
    assert (account.user, account.account, account.tenant) == (env.ada, "UNOBODY", TEAM)


def test_a_code_is_for_no_other_channel_than_slacks(env: World, asked: Request) -> None:
    press(asked, account="UNOBODY", reply_to="https://evil.example/collect")
    act()
    assert not LinkCode.objects.exists()


def test_the_command_gives_a_code_for_the_account_that_asked(env: World, configured: Settings) -> None:
    body = urlencode({"team_id": TEAM, "user_id": "UADA", "user_name": "ada", "text": "link"}).encode()
    answer = post_slack(body, slack_headers(body), COMMAND_URL)
    words = json.loads(answer.content)
    assert (answer.status_code, words["response_type"]) == (200, "ephemeral")
    code = words["text"].split("enter the code ")[1].split(" ")[0]
    assert services.link_chat_account(by=acting(env.ada), code=code).account == "UADA"


@pytest.mark.parametrize(
    "fields",
    [{"team_id": "TOTHER", "user_id": "U1"}, {"team_id": TEAM}, {"user_id": "U1"}, {"team_id": TEAM, "user_id": "\0"}],
    ids=["other team", "nobody", "no team", "no name"],
)
def test_a_command_of_somebody_else_is_refused(env: World, configured: Settings, fields: dict[str, str]) -> None:
    body = urlencode(fields).encode()
    assert refused(body, slack_headers(body), COMMAND_URL)
    assert not LinkCode.objects.exists()
