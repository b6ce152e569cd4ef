"""Pages of external checks: how they stand beside a request, the button that asks again, and the secret."""

from __future__ import annotations

import re

from django.core.cache import cache

from approvals.models import CheckRun, CheckSecret, Request
from approvals.steps import evaluate
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of

NEW = "/rules/external-checks/new"
TICKETS = "/rules/external-checks/of/prod/tickets"
FORM = {"name": "tickets", "cluster": "prod", "url": "https://checks.example.com/t", "timeoutSeconds": "30"}


def test_a_check_is_written_gets_its_secret_and_is_run_again_beside_the_request(
    env: World, browse: Browse, request_: Request
) -> None:
    assert browse(env.ada).post(NEW, {**FORM, "stage": "AfterReport"})["Location"] == TICKETS
    assert env.kubernetes.objects["tickets"]["spec"] == {
        "url": "https://checks.example.com/t",
        "timeoutSeconds": 30,
        "stage": "AfterReport",
    }
    evaluate.run(request_, "")
    page = f"/requests/{request_.uid}"
    assert "it has no signing secret" in text_of(browse(env.ada).get(page))
    assert "No secret yet. Pratique sends no events" in text_of(browse(env.ada).get(TICKETS))
    assert "Make a secret" not in text_of(browse(env.ada).get(TICKETS))
    assert browse(env.ada).post(f"{TICKETS}/secret").status_code == 403

    env.kubernetes.allow("ada", "update")
    cache.clear()
    shown = browse(env.ada).post(f"{TICKETS}/secret").content.decode()
    assert CheckSecret.objects.get().secret in shown
    assert not re.search("whsec_", browse(env.ada).get(TICKETS).content.decode())

    evaluate.run(request_, "")
    told = text_of(browse(env.ada).get(page))
    assert "Waiting for external check tickets" in told
    assert "the event is about to be sent" in told
    assert "Run again<span" in told
    assert browse(env.ada).post(f"{page}/external-checks/tickets/run").status_code == 302
    assert CheckRun.objects.count() == 2
    env.kubernetes.allow("bert", "get")
    cache.clear()
    assert "Run again" not in text_of(browse(env.bert).get(page))
    assert browse(env.bert).post(f"{page}/external-checks/tickets/run").status_code == 403


def test_other_kinds_have_no_secret(env: World, browse: Browse) -> None:
    env.kubernetes.allow("ada", "update")
    form = {"name": "four-eyes", "cluster": "prod", "require": "- {name: a}"}
    browse(env.ada).post("/rules/approval-rules/new", form)
    assert browse(env.ada).post("/rules/approval-rules/of/prod/four-eyes/secret").status_code == 404
