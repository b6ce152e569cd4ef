"""What pages say where they fail, and whether the service is well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client

from tests.approvals.core.conftest import World

Browse = Callable[[User], Client]


def text_of(response: Any) -> str:
    return str(response.content.decode())


@pytest.mark.django_db
def test_healthz_answers_without_asking_anybody() -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readyz_names_what_is_missing(settings: Any, tmp_path: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": "redis://:secret@127.0.0.1:1/0"}
    response = Client().get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["database"] == response.json()["checks"]["migrations"] == "ok"
    assert response.json()["checks"]["redis"] == "Redis does not answer: see PRATIQUE_REDIS_URL"
    assert "secret" not in text_of(response)


def test_readyz_is_ready_with_its_queue(db: None, redis: str, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": redis}
    response = Client().get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "ok")


@pytest.mark.django_db
def test_a_page_that_does_not_exist_says_so() -> None:
    response = Client().get("/nowhere")
    assert response.status_code == 404
    assert "There is no such page" in text_of(response)


def test_a_page_that_fails_says_so_without_telling_code(
    here: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("the secret of the code")

    monkeypatch.setattr("approvals.selectors.lists.policies", fail)
    client = browse(here.ada)
    client.raise_request_exception = False
    response = client.get("/policies")
    assert response.status_code == 500
    assert ("This page failed" in text_of(response), "secret of the code" in text_of(response)) == (True, False)
    assert "Request id" in text_of(response)


def test_a_database_that_is_away_is_said_with_when_to_come_back(here: World, browse: Browse) -> None:
    client = browse(here.ada)
    client.raise_request_exception = False
    with connection.execute_wrapper(away):
        response = client.get("/policies")
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert "The database does not answer" in text_of(response)
    assert "deadlock" not in text_of(response)


def away(*_: object) -> None:
    raise OperationalError("deadlock detected")
