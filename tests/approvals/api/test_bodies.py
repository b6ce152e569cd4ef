"""What comes in may be anything; what goes out has one shape."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from approvals.models import BundleDeployment
from tests.approvals.api.conftest import Call, problem_of
from tests.approvals.core.conftest import World


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
def test_a_hostile_body_is_refused_in_words(here: World, call: Call, body: bytes, status: int) -> None:
    response = call(here.ada, "post", "deployments", body)
    assert response.status_code == status, response.content
    assert len(problem_of(response)["detail"]) < 1000
    assert not BundleDeployment.objects.exists()


def test_another_kind_of_body_is_said_to_be_one(here: World, call: Call) -> None:
    client = Client()
    client.force_login(here.ada)
    response = client.post("/api/v1/deployments", {"name": "x"})
    assert response.status_code == 415
    problem_of(response)


def test_errors_of_fields_are_named(here: World, call: Call) -> None:
    response = call(here.ada, "post", "deployments", {"cluster": "prod", "name": "x" * 60, "spec": {}})
    assert set(problem_of(response)["errors"]) == {"name"}


def test_a_method_that_is_not_there_is_said_so(here: World, call: Call) -> None:
    response = call(here.ada, "delete", "clusters/prod")
    assert (response.status_code, problem_of(response)["code"]) == (405, "method-not-allowed")


def test_the_answer_is_json_whatever_is_asked_for(here: World, call: Call) -> None:
    response = call(here.ada, "get", "clusters", accept="text/html")
    assert response.status_code in (200, 406)
    assert json.loads(response.content)
