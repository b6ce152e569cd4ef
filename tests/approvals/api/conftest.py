"""The world of the core's tests, met over REST."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from approvals import services
from tests.approvals.core.conftest import World, here
from tests.approvals.web import scene

__all__ = ["here"]

Call = Callable[..., HttpResponse]


@pytest.fixture
def afternoon(here: World) -> dict[str, Any]:
    """Requests, a running deployment and a policy: the names are those of `scene.afternoon`."""
    return scene.afternoon(here.cluster, here.ada, here.rita)


@pytest.fixture
def call() -> Call:
    """`call(person, method, path, body)`: one call with a token of this person's, or of nobody's (None)."""

    def one(person: User | None, method: str, path: str, body: object = None, **headers: str) -> HttpResponse:
        if person is not None and "authorization" not in headers:
            _, text = services.create_api_token(user=person, name="test", days=1)
            headers["authorization"] = f"Bearer {text}"
        data = body if isinstance(body, bytes) else json.dumps(body) if body is not None else ""
        return Client().generic(
            method.upper(), f"/api/v1/{path}", data, content_type="application/json", headers=headers
        )

    return one


def problem_of(response: HttpResponse) -> dict[str, Any]:
    """The body of an error, which has one shape everywhere (RFC 9457)."""
    assert response["Content-Type"] == "application/problem+json", response.content
    body: dict[str, Any] = json.loads(response.content)
    assert {"type", "title", "status", "code", "detail"} <= set(body)
    assert body["status"] == response.status_code
    return body
