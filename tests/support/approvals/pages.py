"""The world of the core's tests, with people who browse it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.models import Request
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import enter

# Words that only those may see who may read the cluster `prod`.
SECRETS = ("harbour", "lighthouse", "tugboat", "buoy", "orders.shop.example.com", "routine")


Browse = Callable[[User], Client]


@pytest.fixture
def afternoon(env: World) -> dict[str, Any]:
    """Requests, a running deployment and a policy: the names are those of `scene.afternoon`."""
    env.kubernetes.allow("rita", "get")
    return scene.afternoon(env.cluster, env.ada, env.rita)


def text_of(response: Any) -> str:
    return str(response.content.decode())


def decide(client: Client, request: Request, **form: Any) -> Any:
    """Press a button of the decision, with what was on the screen."""
    facts = {"decision": "Approve", "subject_digest": request.subject_digest, "reason": "", **form}
    return client.post(f"/requests/{request.uid}/review", facts)


@pytest.fixture
def browse() -> Browse:
    """A browser in which this person is signed in."""

    def signed_in(person: User) -> Client:
        client = Client()
        enter(client, person)
        return client

    return signed_in


def opened(client: Client, address: str) -> str:
    """The page at this address, which opens."""
    answer = client.get(address)
    assert answer.status_code == 200
    return text_of(answer)


def told_in(response: Any) -> str:
    """The page without the address that it was asked for by, which the form for light and dark comes back to."""
    return text_of(response).replace(response.wsgi_request.get_full_path(), "")


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as caught:
        assert client.get(path).status_code == 200
    return len(caught)
