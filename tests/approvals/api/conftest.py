"""The world of the core's tests, met over REST."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator

from tests.support.approvals import world

Call = Callable[..., HttpResponse]


@pytest.fixture
def call() -> Call:
    """`call(person, method, path, body)`: one call with a token of this person's, or of nobody's (None)."""
    token_of = functools.cache(lambda person: world.api_token(person)[1])

    def one(person: User | None, method: str, path: str, body: object = None, **headers: str) -> HttpResponse:
        if person is not None and "authorization" not in headers:
            headers["authorization"] = f"Bearer {token_of(person)}"
        data = body if isinstance(body, bytes) else json.dumps(body) if body is not None else ""
        response = Client().generic(
            method.upper(), f"/api/v1/{path}", data, content_type="application/json", headers=headers
        )
        check_described(response)
        return response

    return one


def problem_of(response: HttpResponse) -> dict[str, Any]:
    """The body of an error, which has one shape everywhere (RFC 9457)."""
    assert response["Content-Type"] == "application/problem+json", response.content
    body: dict[str, Any] = json.loads(response.content)
    assert {"type", "title", "status", "code", "detail"} <= set(body)
    assert body["status"] == response.status_code
    return body


@functools.cache
def described() -> dict[str, Any]:
    """The operations of the published description, by path and method."""
    with GENERATOR_STATS.silence():
        schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return schema["paths"]  # type: ignore[no-any-return]  # JSON


def check_described(response: HttpResponse) -> None:
    """Every answer that a test meets is described for its route, an error with its code; only 405 has no operation to
    stand at."""
    match = response.resolver_match  # type: ignore[attr-defined]  # the test client's responses carry it
    is_problem = response.get("Content-Type") == "application/problem+json"
    if match.url_name == "api-nothing" or not (is_problem or response.status_code < 300):
        return
    if response.status_code == 405 or response.wsgi_request.method in ("HEAD", "OPTIONS"):  # type: ignore[attr-defined]  # the test client's responses carry it
        return
    path = "/" + re.sub(r"\(\?P<(\w+)>[^)]*\)|[$^]", lambda found: f"{{{found[1]}}}" if found[1] else "", match.route)
    method = response.wsgi_request.method.lower()  # type: ignore[attr-defined]  # the test client's responses carry it
    known = described().get(path, {}).get(method)
    if known is None:
        # Refused before the method was looked at, such as nobody's call of a method that is not served.
        return
    assert str(response.status_code) in known["responses"], (path, method, response.status_code)
    if not is_problem:
        return
    shape = known["responses"][str(response.status_code)]["content"]["application/problem+json"]["schema"]
    assert json.loads(response.content)["code"] in shape["allOf"][1]["properties"]["code"]["enum"], (path, method)
