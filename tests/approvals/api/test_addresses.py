"""Every address of the API, against nobody and against a login without rights (security-rules.md S02)."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from django.apps import apps
from django.core.cache import cache
from django.db import connection
from django.test import Client

from approvals.api import authentication
from approvals.api.urls import patterns as resources
from approvals.models import ApiToken
from approvals.project import middleware
from tests.approvals.api.addresses import CLOSED, LISTS, path_of
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import enter

METHODS = ["get", "post", "put", "patch", "delete"]
# About the token that a call comes with: tests of their own.
OWN = {"api-token-current", "api-token-prove"}
# Open to everybody, since it is how a command line gets its token.
NOBODY = "checks/00000000-0000-0000-0000-000000000000"
OPEN = {
    "api-sign-in-issuers": ("sign-in/issuers", "get"),
    "api-sign-in-exchange": ("sign-in/exchange", "post"),
    # With a token of its own, which stands for no person.
    "api-check-run": (NOBODY, "post"),
}
# What a body of ours may hold, so that no refusal is only one of its shape.
BODY = {
    "decision": "Approve",
    "subject_digest": "sha256:x",
    "reason": "because",
    "cluster": "prod",
    "name": "evil",
    "spec": {"sources": []},
    "generation": 1,
    "is_paused": True,
    "is_active": False,
    "revision": 1,
    "target": "db",
    "digest": "sha256:x",
    "apply_at": None,
    "shown": "00000000-0000-0000-0000-000000000000",
    "members": [
        {
            "request": "00000000-0000-0000-0000-000000000000",
            "subject_digest": "sha256:x",
            "cluster": "prod",
            "deployment": "lighthouse",
        }
    ],
    "rings": [{"name": "all"}],
    "ring": "all",
    "version": "-",
    "deployment": "lighthouse",
    "address": "https://hooks.example.com/pratique",
}


def rows() -> dict[str, list[Any]]:
    """Every row of every table of ours, but the tokens that the calls themselves are made with."""
    found = {}
    with connection.cursor() as cursor:
        for model in apps.get_app_config("approvals").get_models():
            if model is not ApiToken:
                cursor.execute(f'SELECT * FROM "{model._meta.db_table}" ORDER BY 1')
                found[model.__name__] = [row for row in cursor.fetchall() if "token.created" not in row]
    return found


def test_S02_the_table_has_every_route() -> None:
    assert {str(route.name) for route in resources} == {*LISTS, *CLOSED, *OWN, *OPEN}


def test_S02_what_is_open_to_everybody_tells_and_changes_nothing(
    env: World, afternoon: dict[str, Any], call: Call
) -> None:
    before = rows()
    for (path, served), method in product(OPEN.values(), METHODS):
        response = call(None, method, path, BODY)
        if method != served:
            assert (response.status_code, problem_of(response)["code"]) == (405, "method-not-allowed"), (method, path)
        elif method == "get":
            assert (response.status_code, json.loads(response.content)) == (200, [])
        else:
            assert response.status_code == (401 if path == NOBODY else 422)
    assert rows() == before


def test_S02_nobody_gets_anything(
    env: World, afternoon: dict[str, Any], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More calls than one address may make in a minute.
    monkeypatch.setattr(middleware, "STRANGER", replace(middleware.STRANGER, most=1000))
    before = rows()
    for name, method in product([*LISTS, *CLOSED], METHODS):
        response = call(None, method, path_of(name, afternoon), BODY)
        assert response.status_code == 401, (name, method)
        assert response["WWW-Authenticate"].startswith("Bearer")
        problem_of(response)
    assert rows() == before


def methods_of(name: str) -> set[str]:
    """What the router really serves at this address."""
    return set().union(*(route.callback.actions for route in resources if route.name == name)) - {"head"}


SERVED = [(name, method) for name in CLOSED for method in METHODS if method in methods_of(name)]
NOT_SERVED = [(name, method) for name in [*LISTS, *CLOSED] for method in METHODS if method not in methods_of(name)]


def test_S02_the_table_has_every_method_that_changes_something() -> None:
    assert {pair for pair in SERVED if pair[1] != "get"} == {
        ("api-deployment-detail", "put"),
        ("api-deployment-detail", "delete"),
        ("api-deployment-pause", "post"),
        ("api-deployment-ask-again", "post"),
        ("api-deployment-rollback", "post"),
        ("api-deployment-rotate", "post"),
        ("api-deployment-revoke", "post"),
        ("api-deployment-reinstate", "post"),
        ("api-request-reviews", "post"),
        ("api-request-apply-at", "post"),
        ("api-request-run-check", "post"),
        ("api-request-withdraw", "post"),
        ("api-request-dependencies", "post"),
        ("api-request-dismiss", "post"),
        ("api-set-review", "post"),
        ("api-set-order", "post"),
        ("api-set-order-approve", "post"),
        ("api-set-order-take-out", "post"),
        ("api-set-order-end", "post"),
        ("api-catalog-changes", "post"),
        ("api-policy-detail", "put"),
        ("api-policy-detail", "delete"),
        ("api-policy-tests", "post"),
        ("api-notification-target-detail", "put"),
        ("api-notification-target-detail", "delete"),
        ("api-notification-target-stop", "post"),
        ("api-notification-target-secret", "post"),
        ("api-notification-target-test", "post"),
        ("api-notification-target-send-again", "post"),
        ("api-change-windows-list", "post"),
        ("api-change-windows-detail", "put"),
        ("api-change-windows-detail", "delete"),
        ("api-finding-exceptions-list", "post"),
        ("api-finding-exceptions-detail", "put"),
        ("api-finding-exceptions-detail", "delete"),
        ("api-finding-exceptions-confirm", "post"),
        ("api-external-checks-list", "post"),
        ("api-external-checks-detail", "put"),
        ("api-external-checks-detail", "delete"),
        ("api-external-checks-secret", "post"),
        ("api-approval-policies-list", "post"),
        ("api-approval-policies-detail", "put"),
        ("api-approval-policies-detail", "delete"),
        ("api-cluster-guard", "put"),
        ("api-deputies-list", "post"),
        ("api-deputies-detail", "put"),
        ("api-deputies-detail", "delete"),
        ("api-approval-rules-list", "post"),
        ("api-approval-rules-detail", "put"),
        ("api-approval-rules-detail", "delete"),
    }
    assert [name for name in LISTS if "post" in methods_of(name)] == [
        "api-deployment-list",
        "api-policy-list",
        "api-notification-target-list",
    ]


def test_S02_a_login_without_rights_sees_and_changes_nothing(env: World, afternoon: dict[str, Any], call: Call) -> None:
    """With a body of the right shape, so that it is the right that is missing and nothing else."""
    before = rows()
    for name, method in SERVED:
        response = call(env.bert, method, path_of(name, afternoon), BODY)
        assert (response.status_code, problem_of(response)["code"]) == (404, "not-found"), (name, method)
    assert rows() == before


def test_S02_a_method_that_is_not_served_changes_nothing_for_anybody(
    env: World, afternoon: dict[str, Any], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More calls than one person may make in a minute.
    monkeypatch.setattr(authentication, "WRITING", replace(authentication.WRITING, most=1000))
    before = rows()
    for (name, method), person in product(NOT_SERVED, (env.bert, env.ada)):
        cache.clear()  # more calls than one person may make in a minute
        response = call(person, method, path_of(name, afternoon), BODY)
        assert (response.status_code, problem_of(response)["code"]) == (405, "method-not-allowed"), (name, method)
        assert set(response["Allow"].lower().split(", ")) - {"options", "head"} == methods_of(name)
    assert rows() == before


def test_S02_the_address_itself_tells_a_login_without_rights_nothing(
    env: World, afternoon: dict[str, Any], call: Call
) -> None:
    """HEAD and OPTIONS answer for an object that is there as for one that is not."""
    for name, method in product(CLOSED, ("head", "options")):
        path = path_of(name, afternoon)
        absent = path.replace(str(afternoon["deployment"].uid), "x").replace(str(afternoon["serious"].uid), "x")
        there, nowhere = (call(env.bert, method, each) for each in (path, absent))
        assert (there.status_code, there.content) == (nowhere.status_code, nowhere.content), (name, method)


def test_S02_lists_of_a_login_without_rights_are_empty(env: World, afternoon: dict[str, Any], call: Call) -> None:
    for name in LISTS:
        response = call(env.bert, "get", path_of(name, afternoon))
        assert (response.status_code, json.loads(response.content)["results"]) == (200, []), name


def test_S02_a_deployment_cannot_be_made_on_a_cluster_that_one_may_not_read(
    env: World, afternoon: dict[str, Any], call: Call
) -> None:
    before = rows()
    assert call(env.bert, "post", "deployments", BODY).status_code == 404
    assert rows() == before
    assert not env.kubernetes.objects


def test_what_one_may_not_see_looks_like_what_is_not_there(env: World, afternoon: dict[str, Any], call: Call) -> None:
    hidden = call(env.bert, "get", path_of("api-request-detail", afternoon))
    absent = call(env.bert, "get", "requests/00000000-0000-0000-0000-000000000000")
    nowhere = call(env.bert, "get", "no/such/address")
    assert hidden.content == absent.content == nowhere.content


def test_an_address_that_nothing_has_is_refused_in_the_one_shape(env: World) -> None:
    stranger, person = Client(), Client()
    enter(person, env.ada)
    for path, method in product(("/api", "/api/", "/api/v1", "/api/v2/requests", "/api/v1/nothing"), METHODS):
        assert problem_of(stranger.generic(method.upper(), path))["code"] == "not-authenticated", (path, method)
        assert problem_of(person.generic(method.upper(), path))["code"] == "not-found", (path, method)


def test_a_host_that_is_not_served_is_told_to_programs() -> None:
    response = Client(headers={"host": "elsewhere.example"}).get("/api/v1/requests")
    assert (response.status_code, problem_of(response)["code"]) == (400, "bad-request")


def test_promise_4_a_cluster_that_does_not_answer_is_no_404(env: World, afternoon: dict[str, Any], call: Call) -> None:
    env.kubernetes.is_down = True
    response = call(env.ada, "get", path_of("api-request-detail", afternoon))
    assert (response.status_code, problem_of(response)["code"]) == (503, "could-not-ask")
    listed = call(env.ada, "get", "requests")
    assert (json.loads(listed.content)["results"], listed["Pratique-Could-Not-Ask"]) == ([], "prod")
