"""What OPTIONS and HEAD answer on every address: which methods there are, and what a GET would say of itself."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

from approvals.api.urls import patterns as resources
from tests.approvals.api.addresses import CLOSED, LISTS, path_of
from tests.approvals.api.conftest import Call, problem_of
from tests.support.approvals.fixtures import World

OTHERS = {
    "api-token-current": "tokens/current",
    "api-token-prove": "tokens/current/prove",
    "api-sign-in-issuers": "sign-in/issuers",
    "api-sign-in-exchange": "sign-in/exchange",
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


def test_options_names_the_methods_and_nothing_that_is_there(
    here: World, afternoon: dict[str, Any], call: Call
) -> None:
    for name, person in product(ROUTES, (here.ada, here.bert)):
        answer = call(person, "options", address(name, afternoon))
        assert answer.status_code == 200, (name, answer.content)
        assert set(answer["Allow"].lower().split(", ")) - {"head", "options"} == methods_of(name), name
        assert json.loads(answer.content).keys() == {"name", "description"}, name


def test_pages_are_only_read(here: World, call: Call) -> None:
    for path in PAGES.values():
        answer = call(here.ada, "options", path)
        assert (answer.status_code, problem_of(answer)["code"]) == (405, "method-not-allowed"), path


def test_head_answers_as_get_without_a_body(here: World, afternoon: dict[str, Any], call: Call) -> None:
    for name, person in product([*ROUTES, *PAGES], (here.ada, here.bert, None)):
        read, head = (call(person, method, address(name, afternoon)) for method in ("get", "head"))
        assert (head.status_code, head.content) == (read.status_code, b""), (name, head.content)
        assert head["Content-Type"] == read["Content-Type"], name


def test_S02_options_are_for_who_is_signed_in(here: World, afternoon: dict[str, Any], call: Call) -> None:
    for name in (*LISTS, *CLOSED):
        answer = call(None, "options", address(name, afternoon))
        assert (answer.status_code, problem_of(answer)["code"]) == (401, "not-authenticated"), name
