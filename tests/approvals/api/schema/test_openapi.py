"""The published description of the API."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from approvals.api.urls import patterns as resources
from tests.approvals.api.addresses import CLOSED, LISTS, path_of
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import enter


def test_the_description_is_valid_and_complete() -> None:
    with GENERATOR_STATS.silence():
        schema = SchemaGenerator().get_schema(request=None, public=True)
    assert not GENERATOR_STATS._warn_cache
    assert not GENERATOR_STATS._error_cache
    validate_schema(schema)
    described = [path for path in schema["paths"] if path not in ("/api/v1/schema", "/api/v1/docs")]
    assert len(described) == len({str(route.pattern) for route in resources})
    review = schema["components"]["schemas"]["ReviewInput"]
    assert {"decision", "subject_digest"} <= set(review["required"])


def test_every_route_describes_how_it_refuses_in_one_shape() -> None:
    with GENERATOR_STATS.silence():
        schema = SchemaGenerator().get_schema(request=None, public=True)
    operations = {
        (path, method): operation
        for path, methods in schema["paths"].items()
        if path not in ("/api/v1/schema", "/api/v1/docs")
        for method, operation in methods.items()
    }
    for where, operation in operations.items():
        refusals = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
        always = {"400", "401", "404", "503"} | (set() if where[1] == "get" else {"403", "412"})
        assert always <= set(refusals), where
        for answer in refusals.values():
            shape, narrowed = answer["content"]["application/problem+json"]["schema"]["allOf"]
            assert shape == {"$ref": "#/components/schemas/Problem"}
            assert narrowed["properties"]["code"]["enum"], where
    assert {"type", "title", "status", "code", "detail"} == set(schema["components"]["schemas"]["Problem"]["required"])


def test_the_description_and_its_page_are_for_people_who_signed_in(env: World) -> None:
    client = Client()
    assert {client.get(f"/api/v1/{name}").status_code for name in ("schema", "docs")} == {401}
    enter(client, env.ada)
    page = client.get("/api/v1/docs")
    assert page.status_code == 200
    assert "<script>" not in page.content.decode()
    assert json.loads(client.get("/api/v1/schema?format=json").content)["openapi"].startswith("3.")


OTHERS = {
    "api-token-current": "tokens/current",
    "api-token-prove": "tokens/current/prove",
    "api-sign-in-issuers": "sign-in/issuers",
    "api-sign-in-exchange": "sign-in/exchange",
    "api-check-run": "checks/00000000-0000-0000-0000-000000000000",
}
# Outside of the router, and only read.
PAGES = {"api-schema": "schema", "api-docs": "docs"}
ROUTES = [*LISTS, *CLOSED, *OTHERS]


def address(name: str, afternoon: dict[str, Any]) -> str:
    return {**OTHERS, **PAGES}.get(name) or path_of(name, afternoon)


def methods_of(name: str) -> set[str]:
    """What the router serves at this address."""
    return set().union(*(route.callback.actions for route in resources if route.name == name)) - {"head"}


def test_the_tables_have_every_route() -> None:
    assert {str(route.name) for route in resources} == set(ROUTES)


def test_options_names_the_methods_and_nothing_that_is_there(env: World, afternoon: dict[str, Any], call: Call) -> None:
    for name, person in product(ROUTES, (env.ada, env.bert)):
        answer = call(person, "options", address(name, afternoon))
        assert answer.status_code == 200, (name, answer.content)
        assert set(answer["Allow"].lower().split(", ")) - {"head", "options"} == methods_of(name), name
        assert json.loads(answer.content).keys() == {"name", "description"}, name


def test_pages_are_only_read(env: World, call: Call) -> None:
    for path in PAGES.values():
        answer = call(env.ada, "options", path)
        assert (answer.status_code, problem_of(answer)["code"]) == (405, "method-not-allowed"), path


def test_head_answers_as_get_without_a_body(env: World, afternoon: dict[str, Any], call: Call) -> None:
    for name, person in product([*ROUTES, *PAGES], (env.ada, None)):
        read, head = (call(person, method, address(name, afternoon)) for method in ("get", "head"))
        assert (head.status_code, head.content) == (read.status_code, b""), (name, head.content)
        assert head["Content-Type"] == read["Content-Type"], name


def test_S02_options_are_for_who_is_signed_in(env: World, afternoon: dict[str, Any], call: Call) -> None:
    for name in (*LISTS, *CLOSED):
        answer = call(None, "options", address(name, afternoon))
        assert (answer.status_code, problem_of(answer)["code"]) == (401, "not-authenticated"), name
