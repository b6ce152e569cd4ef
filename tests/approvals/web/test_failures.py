"""What pages say where they fail, and whether the service is well."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test import Client

from approvals.health_endpoints import checks
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.servers.s3 import S3Server
from tests.support.stores import use_bucket


@pytest.mark.django_db
def test_healthz_answers_without_asking_anybody() -> None:
    assert Client().get("/healthz").json() == {"status": "ok"}


@pytest.fixture
def _nothing_kept() -> None:
    checks._kept.forget()


@pytest.mark.django_db
@pytest.mark.usefixtures("_nothing_kept")
def test_readyz_names_what_is_missing(settings: Any, tmp_path: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": "redis://:secret@127.0.0.1:1/0"}
    answer = checks.readyz({})
    found = json.loads(answer.body)["checks"]
    assert answer.status == 503
    assert found["database"] == found["migrations"] == "ok"
    assert found["redis"] == "Redis is not responding: see PRATIQUE_REDIS_URL"
    assert b"secret" not in answer.body


@pytest.mark.django_db
@pytest.mark.usefixtures("_nothing_kept")
def test_readyz_says_that_the_bucket_is_away_and_why(
    s3: S3Server, redis: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": redis}
    location = use_bucket(settings, monkeypatch, s3.bucket())
    assert checks.readyz({}).status == 200
    checks._kept.forget()
    s3.client.delete_bucket(Bucket=location.bucket)
    answer = checks.readyz({})
    assert answer.status == 503
    words = json.loads(answer.body)["checks"]["content"]
    assert words.endswith("the bucket does not exist; create it, or correct PRATIQUE_CONTENT_S3_BUCKET or _ENDPOINT")
    assert location.bucket not in words


@pytest.mark.django_db
@pytest.mark.usefixtures("_nothing_kept")
def test_S29_strangers_are_not_told_what_is_missing(settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": "redis://127.0.0.1:1/0"}
    response = Client().get("/readyz")
    assert (response.status_code, response.json()) == (503, {"status": "not ready"})


@pytest.mark.usefixtures("_nothing_kept")
def test_readyz_is_ready_with_its_queue(db: None, redis: str, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "REDIS_URL": redis}
    response = Client().get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "ok")
    assert checks.readyz({}).status == 200


@pytest.mark.django_db
def test_a_page_that_does_not_exist_says_so() -> None:
    response = Client().get("/nowhere")
    assert response.status_code == 404
    assert "Page not found" in text_of(response)


def test_a_page_that_fails_says_so_without_telling_code(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RuntimeError("the secret of the code")

    monkeypatch.setattr("approvals.selectors.lists.policies", fail)
    client = browse(env.ada)
    client.raise_request_exception = False
    response = client.get("/policies")
    assert response.status_code == 500
    assert ("Something went wrong" in text_of(response), "secret of the code" in text_of(response)) == (True, False)
    assert "Request ID" in text_of(response)


def test_a_database_that_is_away_is_said_with_when_to_come_back(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    client.raise_request_exception = False
    with connection.execute_wrapper(away):
        response = client.get("/policies")
    assert (response.status_code, response["Retry-After"]) == (503, "5")
    assert "The database is not responding" in text_of(response)
    assert ("deadlock" in text_of(response), "Nothing was changed" in text_of(response)) == (False, True)


def test_a_form_that_fails_says_that_nobody_knows_what_was_done(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    client.raise_request_exception = False
    with connection.execute_wrapper(away):
        response = client.post("/me/tokens", {"name": "x", "days": "1"})
    assert response.status_code == 503
    assert "It is not known whether anything was changed" in text_of(response)


@pytest.mark.parametrize(
    "sql",
    [
        pytest.param("SELECT * FROM approvals_nothing", id="table"),
        pytest.param("SELECT depth FROM approvals_policy", id="column"),
        pytest.param("INSERT INTO approvals_policy (depth) VALUES (1)", id="column that is written"),
    ],
)
def test_a_database_that_was_not_migrated_is_no_matter_of_trying_again(
    sql: str, env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(**_: object) -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql)

    monkeypatch.setattr("approvals.selectors.lists.policies", ask)
    client = browse(env.ada)
    client.raise_request_exception = False
    response = client.get("/policies")
    assert (response.status_code, "Retry-After" in response) == (500, False)
    assert "<code>pratique-manage migrate</code>" in text_of(response)


def test_a_failed_page_is_as_dark_as_the_others(env: World, browse: Browse) -> None:
    client = browse(env.ada)
    client.raise_request_exception = False
    client.cookies["theme"] = "dark"
    with connection.execute_wrapper(away):
        assert '<html lang="en" data-theme="dark">' in text_of(client.get("/policies"))


@pytest.mark.parametrize(("error", "status"), [(OperationalError("gone"), 503), (RuntimeError("code"), 500)])
def test_the_log_says_what_was_answered(
    error: Exception,
    status: int,
    env: World,
    browse: Browse,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr("approvals.selectors.lists.policies", fail)
    client = browse(env.ada)
    client.raise_request_exception = False
    assert client.get("/policies").status_code == status
    failed = [one for one in caplog.records if one.name == "django.request"]
    answered = [one for one in caplog.records if one.name == "approvals.project.middleware"]
    assert [one.exc_info[0] for one in failed if one.exc_info] == [type(error)]
    assert [vars(one)["status"] for one in answered] == [status]


def test_a_host_that_is_not_served_is_refused_on_a_page() -> None:
    response = Client(headers={"host": "elsewhere.example"}).get("/")
    assert (response.status_code, "Bad request" in text_of(response)) == (400, True)


@pytest.mark.parametrize(
    ("address", "back"),
    [
        ("/requests/{}/review", "/requests/{}"),
        ("/deployments/prod/lighthouse/pause", "/deployments/prod/lighthouse"),
        ("/me/tokens", "/me"),
        ("/me/tokens/1/revoke", "/me"),
        ("/me/chat/1/unlink", "/me"),
        ("/sign-out", "/"),
    ],
)
def test_who_comes_to_the_address_of_a_form_is_led_back(
    address: str, back: str, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    uid = afternoon["serious"].uid
    client = browse(env.ada)
    response = client.get(address.format(uid))
    assert (response.status_code, response["Allow"]) == (405, "POST")
    assert f'<a class="button" href="{back.format(uid)}">' in text_of(response)
    assert client.get(back.format(uid)).status_code == 200


def test_who_signs_in_again_after_a_form_comes_to_its_page(env: World, afternoon: dict[str, Any]) -> None:
    """Their session ended while they wrote: the address of the form itself shows nothing."""
    uid = afternoon["serious"].uid
    assert Client().post(f"/requests/{uid}/review")["Location"] == f"/sign-in?next=/requests/{uid}"


def test_the_theme_is_chosen_on_a_page_that_a_form_came_back_with(
    env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    uid = afternoon["serious"].uid
    response = browse(env.ada).post(f"/requests/{uid}/review", {"decision": "nonsense"})
    assert f'<input type="hidden" name="next" value="/requests/{uid}">' in text_of(response)


def away(*_: object) -> None:
    raise OperationalError("deadlock detected")


@pytest.mark.parametrize("path", ["/", "/?tab=all", "/deployments", "/policies", "/audit", "/deployments/new"])
def test_promise_4_a_list_says_which_cluster_is_missing_in_it(
    path: str, env: World, afternoon: dict[str, Any], browse: Browse
) -> None:
    env.kubernetes.is_down = True
    text = text_of(browse(env.ada).get(path))
    assert 'Data from <span class="mono">prod</span> is missing' in text
    for claim in ("requests of any cluster", "No deployments", "No policies", "No entr", "No request"):
        assert claim not in text
    env.kubernetes.is_down = False
    assert "is missing: the API server" not in text_of(browse(env.ada).get(path))
