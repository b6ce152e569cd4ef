"""External checks over REST: an answer comes with the token of its event, and with nothing else."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest
from django.core.cache import cache

from approvals import rate_limits
from approvals.ledger.deciding import check_runs
from approvals.models import CheckRun, Request
from approvals.rate_limits.clients import Door
from approvals.steps import evaluate
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals.fixtures import World

CHECKS = "clusters/prod/external-checks"
URL = "https://checks.example.com/tickets"


def body_of(response: Any) -> Any:
    return json.loads(response.content)


@pytest.fixture
def run(env: World, request_: Request, call: Call) -> CheckRun:
    assert call(env.ada, "post", CHECKS, {"name": "tickets", "spec": {"url": URL}}).status_code == 201
    env.kubernetes.allow("ada", "update")
    cache.clear()
    made = call(env.ada, "post", f"{CHECKS}/tickets/secret")
    assert (made.status_code, body_of(made)["secret"][:6]) == (201, "whsec_")
    evaluate.run(request_, "")
    return CheckRun.objects.get()


def answer(call: Call, run: CheckRun, outcome: str = "passed", token: str | None = None, **more: Any) -> Any:
    token = check_runs.token_of(run) if token is None else token
    said = {"outcome": outcome, "subject_digest": run.subject_digest, **more}
    return call(None, "post", f"checks/{run.uid}", said, authorization=f"Bearer {token}")


def test_a_check_answers_and_the_request_tells_how_it_stands(
    env: World, call: Call, request_: Request, run: CheckRun
) -> None:
    told = answer(call, run, "pending", message="waits for CHG-7", link="https://tickets.example.com/7")
    assert (told.status_code, body_of(told)["outcome"]) == (200, "pending")
    evaluate.run(request_, "")
    (check,) = body_of(call(env.ada, "get", f"requests/{request_.uid}"))["external_checks"]
    assert (check["name"], check["state"], check["holds"], check["link"]) == (
        "tickets",
        "pending",
        True,
        "https://tickets.example.com/7",
    )
    again = call(env.ada, "post", f"requests/{request_.uid}/external-checks/tickets/run")
    assert (again.status_code, CheckRun.objects.count()) == (200, 2)
    assert problem_of(answer(call, run))["code"] == "check-closed"
    assert call(env.ada, "post", f"requests/{request_.uid}/external-checks/other/run").status_code == 404


@pytest.mark.parametrize(
    ("wish", "status", "code"),
    [
        ({"token": "prc_wrong"}, 401, "check-token"),
        ({"token": ""}, 401, "check-token"),
        ({"outcome": "approved"}, 422, "invalid-input"),
        ({"link": "javascript:alert(1)"}, 422, "invalid-input"),
        ({"message": "x" * 1001}, 422, "invalid-input"),
        ({"subject_digest": "sha256:other"}, 409, "digest-moved"),
    ],
)
def test_S49_what_is_no_answer_of_this_run_is_refused(
    call: Call, run: CheckRun, wish: dict[str, Any], status: int, code: str
) -> None:
    refused = answer(call, run, **wish)
    assert (refused.status_code, problem_of(refused)["code"]) == (status, code)
    assert CheckRun.objects.get().outcome == ""


def test_S49_the_token_of_an_event_opens_nothing_else_and_a_persons_token_answers_nothing(
    env: World, call: Call, request_: Request, run: CheckRun
) -> None:
    token = check_runs.token_of(run)
    for method, path in (
        ("get", "requests"),
        ("get", f"requests/{request_.uid}"),
        ("post", f"requests/{request_.uid}/reviews"),
    ):
        assert call(None, method, path, {}, authorization=f"Bearer {token}").status_code == 401, path
    said = {"outcome": "passed", "subject_digest": run.subject_digest}
    assert call(env.ada, "post", f"checks/{run.uid}", said).status_code == 401
    assert CheckRun.objects.get().outcome == ""


def test_S49_guessing_tokens_is_limited(call: Call, run: CheckRun, monkeypatch: pytest.MonkeyPatch) -> None:
    few = Door("check-token", None, rate_limits.Limit("few-checks", 3, 60))
    monkeypatch.setattr("approvals.api.external_checks.CHECK_TOKEN", few)
    assert [answer(call, run, token="x").status_code for _ in range(4)] == [401, 401, 401, 429]


def test_S49_wrong_tokens_of_others_behind_its_address_lock_out_no_check_that_has_answered(
    env: World, call: Call, request_: Request, run: CheckRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = Door("check-token", None, rate_limits.Limit("few-checks", 3, 60))
    monkeypatch.setattr("approvals.api.external_checks.CHECK_TOKEN", few)
    assert answer(call, run).status_code == 200
    call(env.ada, "post", f"requests/{request_.uid}/external-checks/tickets/run")
    newer = CheckRun.objects.latest("pk")
    guess = CheckRun(uid=uuid4(), subject_digest="sha256:x")
    assert [answer(call, guess).status_code for _ in range(4)] == [401, 401, 401, 429]
    assert answer(call, newer).status_code == 200


def test_S02_whoever_may_not_change_a_check_gets_no_secret(env: World, call: Call) -> None:
    call(env.ada, "post", CHECKS, {"name": "tickets", "spec": {"url": URL}})
    refused = call(env.ada, "post", f"{CHECKS}/tickets/secret")
    assert (refused.status_code, problem_of(refused)["code"]) == (403, "not-allowed")
    assert call(env.bert, "post", f"{CHECKS}/tickets/secret").status_code == 404
