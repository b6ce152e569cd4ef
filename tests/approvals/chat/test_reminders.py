"""Reminders: once in each round, and when a rule asks somebody else because those who were asked did not answer."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals.chat.tools.slack import Slack
from approvals.ledger.deciding import deciding_objects
from approvals.models import Report, Request
from tests.support.approvals.fixtures import World
from tests.support.approvals.policies import look
from tests.support.approvals.world import acting, review


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The occasions of which chats were told."""
    found: list[str] = []
    monkeypatch.setattr("approvals.steps.evaluate.wake.notice", lambda _, occasion: found.append(occasion))
    return found


def wait(request: Request, hours: int) -> None:
    """So long ago it came to review."""
    then = timezone.now() - timedelta(hours=hours)
    Request.objects.filter(pk=request.pk).update(changed_at=then)
    Report.objects.update(computed_at=then)


def test_a_round_that_nobody_decides_is_brought_up_once(
    env: World, request_: Request, told: list[str], settings: Any
) -> None:
    wait(request_, 23)
    look(request_)
    assert told == []
    wait(request_, 24)
    look(request_)
    look(request_)
    assert told == ["reminder"]
    Request.objects.update(reminded_round=0)
    settings.PRATIQUE = {**settings.PRATIQUE, "REMIND_HOURS": 0}
    look(request_)
    assert told == ["reminder"]


def test_nobody_is_reminded_while_the_requester_has_to_change_something(
    env: World, request_: Request, told: list[str]
) -> None:
    review(request_, acting(env.ada), "RequestChanges", reason="smaller, please")
    told.clear()
    wait(request_, 30)
    look(request_)
    assert told == []


def test_others_are_asked_once_where_a_rule_escalates(env: World, request_: Request, told: list[str]) -> None:
    part = {"name": "security", "groups": ["security"], "escalateAfterHours": 2, "escalateTo": ["leads"]}
    meta = {"name": "slow", "uid": "u", "generation": 1, "resourceVersion": "1"}
    obj = {"metadata": meta, "spec": {"require": [part]}}
    deciding_objects.observe(cluster=env.cluster, kind="ApprovalRule", obj=obj, is_listed=True)
    assert "escalated" not in look(request_).approval_rules[0]
    wait(request_, 2)
    look(request_)
    look(request_)
    assert (told, request_.approval_rules[0]["escalated"]) == (["reminder"], ["leads"])
    assert request_.approval_rules[0]["needed"][0] == "1 of groups security, leads"


def test_a_reminder_says_for_how_long(env: World, request_: Request) -> None:
    wait(request_, 26)
    request_.refresh_from_db()
    message = Slack().message(request_, "reminder")
    assert message is not None
    assert "still needs a review, for 26 hours" in message["text"]
