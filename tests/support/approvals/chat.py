"""A chat that is set up: secrets, a linked account, a local server in the place of Slack's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from pytest_django import Settings

from approvals.models import ChatAccount, Request
from tests.support.approvals import world
from tests.support.approvals.fixtures import World
from tests.support.approvals.senders import SIGNING_SECRET, TEAM, WEBHOOK_SECRET
from tests.support.servers.serving import Handler, serving


@dataclass
class Listener:
    """What a local HTTP server was sent, in its words; `status` is what it answers."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    received: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture
def listener() -> Iterator[Listener]:
    heard = Listener()

    class Hook(Handler):
        def do_POST(self) -> None:
            heard.received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(heard.status)
            for name, value in heard.headers.items():
                self.send_header(name, value)
            self.end_headers()

    with serving(Hook) as url:
        heard.url = f"{url}/services/hook"
        yield heard


@pytest.fixture
def configured(settings: Settings, listener: Listener) -> Settings:
    settings.PRATIQUE = {
        **settings.PRATIQUE,
        "SLACK_SIGNING_SECRET": SIGNING_SECRET,
        "SLACK_TEAM": TEAM,
        "SLACK_WEBHOOK_URL": listener.url,
        "DECISION_WEBHOOK_SECRET": WEBHOOK_SECRET,
        "DECISION_WEBHOOK_USER": "robot",
        "PUBLIC_URL": "https://pratique.example/",
    }
    return settings


@pytest.fixture
def asked(configured: Settings, request_: Request) -> Request:
    """The request in review, where chats are told of it."""
    return request_


@pytest.fixture
def robot(env: World) -> User:
    env.kubernetes.allow("robot", "approve")
    return world.user("robot", env.cluster, "robots")


@pytest.fixture
def link() -> Callable[[User, str], ChatAccount]:
    def linked(person: User, account: str) -> ChatAccount:
        now = timezone.now()
        made = ChatAccount.objects.create(
            user=person, tool="slack", tenant=TEAM, account=account, name=account.lower(), linked_at=now
        )
        made.identities.set(person.kubernetes_identities.all())
        User.objects.filter(pk=person.pk).update(last_login=now)
        return made

    return linked
