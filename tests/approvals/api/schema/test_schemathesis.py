"""What the published description allows, and what it forbids, is answered as it says: by schemathesis (thorough).

Calls are drawn from `/api/v1/schema`, with a token of every scope. Most name what is there, so that they get past the
first look. Each call is undone, so that the next one meets the same afternoon.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hypothesis
import pytest
import schemathesis
from django.core.cache import cache
from django.core.handlers.wsgi import WSGIHandler
from django.db import transaction
from django.test import Client
from hypothesis import strategies
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from approvals.models import BundleDeployment
from approvals.rate_limits import counters
from tests.approvals.api.addresses import CLOSED, path_of
from tests.support.approvals import world
from tests.support.approvals.fixtures import World

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 25
METHODS = ("OPTIONS", "TRACE", "PATCH", "PUT", "DELETE", "POST", "PROPFIND", "BREW")
ODD = {
    "text/plain": b"hello",
    "application/xml": b"<a/>",
    "application/json; charset=utf-16": '{"a": 1}'.encode("utf-16"),
    "application/json; charset=none-such": b"{}",
    "multipart/form-data": b"--x",
    "multipart/form-data; boundary=x": b"--x--",
    "application/x-www-form-urlencoded": b"a=%ff",
    "application/json": b'{"a": "\xff"}',
    "": b"\x00",
    "/;=": b"{}",
}
pytestmark = pytest.mark.thorough


class Afternoon:
    """The API as ada meets it with a token of every scope, and what is there to be named."""

    def __init__(self, env: World, rows: dict[str, Any]) -> None:
        _, token = world.api_token(env.ada)
        env.kubernetes.allow("ada", "impersonate")
        self.headers = {"Authorization": f"Bearer {token}"}
        self._kubernetes = env.kubernetes
        self.addresses = [path_of(name, rows) for name in CLOSED]
        for one in BundleDeployment.objects.filter(cluster=env.cluster):
            there = world.seen(one.name, one.spec, uid=str(one.uid), generation=one.generation)
            env.kubernetes.objects[one.name] = there
        serious, deployment = rows["serious"], rows["deployment"]
        # What bodies name that is there.
        self.words: dict[str, Any] = {
            "cluster": env.cluster.name,
            "clusters": [env.cluster.name],
            "subject_digest": serious.subject_digest,
            "spec": world.spec(),
            "name": deployment.name,
            "generation": deployment.generation,
            "revision": 1,
            "expression": "true",
        }
        # Whole bodies that lead all the way, by the end of the address.
        denial = {"decision": "Deny", "subject_digest": serious.subject_digest, "reason": "not today"}
        self.bodies: dict[tuple[str, str], dict[str, Any]] = {
            ("POST", "deployments"): {"cluster": env.cluster.name, "name": "newcomer", "spec": world.spec()},
            ("PUT", "{uid}"): {"spec": world.spec("2.0.0"), "generation": deployment.generation},
            ("POST", "reviews"): denial,
        }

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Whatever happens within is as if it had not been."""
        objects, place = copy.deepcopy(self._kubernetes.objects), transaction.savepoint()
        cache.clear()
        counters.memory.clear()  # of rate limits: most calls of a quick run would be refused by them
        try:
            yield
        finally:
            transaction.savepoint_rollback(place)
            self._kubernetes.objects = objects

    def places_of(self, path: str) -> list[dict[str, str]]:
        """The parameters with which a path of the description leads to what is there."""
        form = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path.removeprefix("/api/v1/"))
        return [found.groupdict() for one in self.addresses if (found := re.fullmatch(form, one))]


@pytest.fixture
def met(env: World, afternoon: dict[str, Any], settings: Any) -> Afternoon:
    settings.ALLOWED_HOSTS = ["*"]
    return Afternoon(env, afternoon)


def described(met: Afternoon) -> Any:
    return schemathesis.openapi.from_wsgi("/api/v1/schema?format=json", WSGIHandler(), headers=met.headers)


@strategies.composite
def calls(draw: strategies.DrawFn, operation: Any, met: Afternoon) -> Case:
    """A call as described or not, which mostly names what is there."""
    mode = draw(strategies.sampled_from([GenerationMode.POSITIVE, GenerationMode.POSITIVE, GenerationMode.NEGATIVE]))
    case: Case = draw(operation.as_strategy(generation_mode=mode))
    places = met.places_of(operation.path)
    if places and draw(strategies.integers(0, 3)):
        case.path_parameters = {**(case.path_parameters or {}), **draw(strategies.sampled_from(places))}
    if isinstance(case.body, dict):
        named = [name for name in case.body if name in met.words and draw(strategies.booleans())]
        case.body = {**case.body, **{name: met.words[name] for name in named}}
    whole = met.bodies.get((case.method, operation.path.rsplit("/", 1)[-1]))
    if whole and not draw(strategies.integers(0, 2)):
        case.body = whole
    return case


def test_every_answer_is_as_the_description_says(met: Afternoon) -> None:
    seed, wrong, asked = int(os.environ.get("PRATIQUE_SEED", "1")), [], []
    for found in described(met).get_all_operations():
        operation = found.ok()

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
        )
        @hypothesis.given(case=calls(operation, met))
        def ask(case: Case) -> None:
            with met.undone():
                response = case.call(headers=met.headers)
                asked.append((case.method, response.status_code))
                case.validate_response(response, checks=CHECKS)

        try:
            ask()
        except FailureGroup as several:
            wrong += [f"{operation.label}: {one}" for one in several.exceptions]
        except Exception as one:  # noqa: BLE001 -- a crash of the service comes through the handler
            wrong.append(f"{operation.label}: {type(one).__name__} {one}")
    assert wrong == [], "\n\n".join(wrong)
    statuses = {status for _, status in asked}
    assert {200, 201, 202, 400, 409} <= statuses, f"too few calls got past the first look: {sorted(statuses)}"


def addresses(met: Afternoon) -> list[str]:
    """An address of each described path: what is there where there is one."""
    paths = described(met).raw_schema["paths"]
    made = []
    for path in paths:
        place = next(iter(met.places_of(path)), None) or dict.fromkeys(re.findall(r"\{(\w+)\}", path), "1")
        made.append(path.format(**place))
    return made


def check(answer: Any, where: object) -> None:
    assert answer.status_code < 500, (where, answer.content[:500])
    if answer.status_code >= 400:
        assert answer["Content-Type"] == "application/problem+json", (where, answer["Content-Type"])
        assert json.loads(answer.content)["status"] == answer.status_code, where


def test_every_address_answers_every_method(met: Afternoon) -> None:
    for address in addresses(met):
        for method in METHODS:
            with met.undone():
                answer = Client().generic(method, address, b"", content_type="application/json", headers=met.headers)
            check(answer, (method, address))
            if answer.status_code == 405:
                assert answer["Allow"], (method, address)


def test_every_address_answers_bodies_of_every_type(met: Afternoon) -> None:
    for address in addresses(met):
        for content_type, body in ODD.items():
            for method in ("POST", "PUT"):
                with met.undone():
                    answer = Client().generic(method, address, body, content_type=content_type, headers=met.headers)
                check(answer, (method, address, content_type))
