"""What becomes of a Slack callback: it is refused at the door, or a worker acts on it."""

from __future__ import annotations

import json
from collections.abc import Callable

from django.contrib.auth.models import User

from approvals.chat import deliveries
from approvals.models import ChatAccount, ChatDelivery, Review
from tests.support.approvals.senders import SLACK_URL, post_slack

NOT_VERIFIED = {"error": "not verified"}
Linker = Callable[[User, str], ChatAccount]


def act() -> ChatDelivery:
    """What the worker does with the one delivery."""
    row = ChatDelivery.objects.get()
    deliveries.act(row.pk)
    row.refresh_from_db()
    return row


def refused(body: bytes, headers: dict[str, str], url: str = SLACK_URL) -> bool:
    answer = post_slack(body, headers, url)
    is_401 = (answer.status_code, json.loads(answer.content)) == (401, NOT_VERIFIED)
    return is_401 and not ChatDelivery.objects.exists()


def check_refused(words: str) -> None:
    """The worker acts on the one delivery, records no review, and says why."""
    assert words in act().words
    assert not Review.objects.exists()
