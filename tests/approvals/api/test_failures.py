"""What nobody foresaw comes in the one error shape too, without the words of what failed."""

from __future__ import annotations

import pytest
from django.db import InterfaceError, OperationalError, connection
from django.test import Client

from tests.approvals.api.conftest import check_described, problem_of
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import api_token


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
    here: World, error: Exception, status: int, code: str, path: str
) -> None:
    _, token = api_token(here.ada)
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
