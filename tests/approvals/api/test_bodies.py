"""What comes in may be anything; what goes out has one shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from approvals.models import BundleDeployment
from tests.approvals.api.conftest import Call, check_described, problem_of
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import api_token, enter


@pytest.mark.parametrize(
    ("body", "status"),
    [
        pytest.param(b'{"name": "' + b"x" * (2 * 1024 * 1024) + b'"}', 413, id="too large"),
        pytest.param(b'{"name": "a", "name": "b"}', 400, id="a key twice"),
        pytest.param(b'{"name": "\\u0000"}', 400, id="NUL"),
        pytest.param(b'{"name": "\\ud800"}', 400, id="half a character"),
        pytest.param(b'{"name": NaN}', 400, id="NaN"),
        pytest.param(b"[" * 100_000, 400, id="a tower"),
        pytest.param(b'{"name": "\xff"}', 400, id="no UTF-8"),
        pytest.param(b'{"name": ' + b"9" * 10_000 + b"}", 400, id="a number without end"),
        pytest.param(b"", 422, id="nothing"),
        pytest.param(b"null", 422, id="null"),
        pytest.param(b'"text"', 422, id="a text"),
        pytest.param(b"[]", 422, id="a list"),
        pytest.param(b'{"cluster": {}, "name": 1, "spec": "x"}', 422, id="other types"),
    ],
)
def test_a_hostile_body_is_refused_in_words(env: World, call: Call, body: bytes, status: int) -> None:
    response = call(env.ada, "post", "deployments", body)
    assert response.status_code == status, response.content
    assert len(problem_of(response)["detail"]) < 1000
    assert not BundleDeployment.objects.exists()


def test_another_kind_of_body_is_said_to_be_one(env: World, call: Call) -> None:
    client = Client()
    enter(client, env.ada)
    response = client.post("/api/v1/deployments", {"name": "x"})
    assert response.status_code == 415
    problem_of(response)


def test_errors_of_fields_are_named(env: World, call: Call) -> None:
    response = call(env.ada, "post", "deployments", {"cluster": "prod", "name": "x" * 60, "spec": {}})
    assert set(problem_of(response)["errors"]) == {"name"}


def test_a_method_that_is_not_there_is_said_so(env: World, call: Call) -> None:
    response = call(env.ada, "delete", "clusters/prod")
    assert (response.status_code, problem_of(response)["code"]) == (405, "method-not-allowed")


def test_the_answer_is_json_whatever_is_asked_for(env: World, call: Call) -> None:
    response = call(env.ada, "get", "clusters", accept="text/html")
    assert response.status_code in (200, 406)
    assert json.loads(response.content)


WRITES = [
    ("deployments", "post"),
    ("deployments/{deployment}", "put"),
    ("deployments/{deployment}/pause", "post"),
    ("requests/{request}/reviews", "post"),
    ("requests/{request}/withdraw", "post"),
]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"reason": "' + b"x" * (2 * 1024 * 1024) + b'"}', id="too large"),
        pytest.param(b'{"spec": ' + b'{"a":' * 100_000, id="a deep object"),
        pytest.param(b'{"spec": ' + b'{"a":' * 400 + b"1" + b"}" * 400 + b"}", id="a deep object that is whole"),
        pytest.param(b'{"reason": "\\u0000", "spec": {"a": "\\u0000"}}', id="NUL"),
        pytest.param(b'{"\\u0000": 1}', id="NUL in a key"),
        pytest.param(b'{"reason": "a", "reason": "b"}', id="a key twice"),
        pytest.param(b'{"spec": {"a": 1, "a": 2}}', id="a key twice further down"),
        pytest.param(b"\xff\xfe{\x00}\x00", id="UTF-16"),
        pytest.param(b"\xef\xbb\xbf{}", id="a byte order mark"),
        pytest.param(b"{} {}", id="two bodies"),
        pytest.param(b"reason=x&spec=y", id="a form"),
        pytest.param(
            b'{"generation": -1, "name": "' + b"n" * 5000 + b'", "decision": "' + b"d" * 5000 + b'"}', id="long"
        ),
        pytest.param(b'{"generation": 1e400, "is_paused": 1e400, "decision": 1e400, "reason": 1e400}', id="infinite"),
        pytest.param(
            b'{"generation": ' + b"9" * 4000 + b', "is_paused": [], "reason": {}}', id="a number of 4000 digits"
        ),
    ],
)
def test_no_body_is_an_error_of_ours(env: World, afternoon: dict[str, Any], call: Call, body: bytes) -> None:
    env.kubernetes.allow("ada", "impersonate")
    for path, method in WRITES:
        address = path.format(deployment=afternoon["deployment"].uid, request=afternoon["serious"].uid)
        response = call(env.ada, method, address, body)
        assert 400 <= response.status_code < 500, (path, response.content)
        assert len(problem_of(response)["detail"]) < 1000, path
    assert not env.kubernetes.objects


NOWHERE = [
    "requests/-1",
    "requests/0",
    "requests/%00",
    "requests/%ff%fe",
    "requests/" + "x" * 5000,
    "requests/..%2f..%2fadmin",
    "requests/00000000-0000-0000-0000-000000000000%00",
    "deployments/-1",
    "deployments/%00",
    "deployments/" + "x" * 5000,
    "deployments/%00/revisions",
    "deployments/' OR 1=1 --",
    "audit/-1",
    "audit/1e3",
    "audit/%00",
    "audit/99999999999999999999999999",
    "audit/" + "9" * 5000,
    "policies/%00",
    "policies/-1",
    "clusters/%00",
    "catalogs/prod/%00",
    "catalogs/%00/operators/packages",
    "clusters/%ed%a0%80",
    "clusters/" + "x" * 5000,
]


def test_an_address_of_nothing_is_a_404_however_it_is_written(env: World, call: Call) -> None:
    for path in NOWHERE:
        response = call(env.ada, "get", path)
        assert (response.status_code, problem_of(response)["code"]) == (404, "not-found"), path


@pytest.mark.parametrize(
    "headers",
    [{"x-http-method-override": "DELETE"}, {"x-http-method": "DELETE"}, {"x-method-override": "DELETE"}],
    ids=lambda headers: next(iter(headers)),
)
def test_no_header_makes_another_method_of_a_call(
    env: World, afternoon: dict[str, Any], call: Call, headers: dict[str, str]
) -> None:
    path = f"deployments/{afternoon['deployment'].uid}"
    assert call(env.ada, "get", path, **headers).status_code == 200
    assert call(env.ada, "post", path, {"_method": "DELETE"}, **headers).status_code == 405
    afternoon["deployment"].refresh_from_db()
    assert afternoon["deployment"].deletion_requested_at is None


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml", "json", "", "\xe9/x"],
)
def test_S02_a_decision_is_read_as_json_only(env: World, afternoon: dict[str, Any], content_type: str) -> None:
    serious = afternoon["serious"]
    body = json.dumps({"decision": "Approve", "subject_digest": serious.subject_digest})
    client = Client()
    enter(client, env.ada)
    response = client.generic("POST", f"/api/v1/requests/{serious.uid}/reviews", body, content_type=content_type)
    assert response.status_code in (415, 422), response.content
    problem_of(response)
    assert not serious.reviews.exists()


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        pytest.param(OperationalError("deadlock detected"), 503, "unavailable", id="one of two that waited"),
        pytest.param(InterfaceError("connection already closed"), 503, "unavailable", id="cut"),
        pytest.param(RuntimeError("the secret of the code"), 500, "failed", id="anything else"),
    ],
)
@pytest.mark.parametrize("path", ["policies", "clusters/prod"])
def test_what_fails_is_a_problem_that_tells_no_code(
    env: World, error: Exception, status: int, code: str, path: str
) -> None:
    _, token = api_token(env.ada)
    client = Client(raise_request_exception=False)

    def fail(*_: object) -> None:
        raise error

    with connection.execute_wrapper(fail):
        response = client.get(f"/api/v1/{path}", headers={"authorization": f"Bearer {token}"})
    assert response.status_code == status
    assert problem_of(response)["code"] == code
    assert (response.headers.get("Retry-After") is not None) == (status == 503)
    assert str(error) not in response.content.decode()
    check_described(response)
