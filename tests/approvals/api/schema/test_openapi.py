"""The published description of the API."""

from __future__ import annotations

import json

from django.test import Client
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from approvals.api.urls import patterns as resources
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


def test_the_description_and_its_page_are_for_people_who_signed_in(here: World) -> None:
    client = Client()
    assert {client.get(f"/api/v1/{name}").status_code for name in ("schema", "docs")} == {401}
    enter(client, here.ada)
    page = client.get("/api/v1/docs")
    assert page.status_code == 200
    assert "<script>" not in page.content.decode()
    assert json.loads(client.get("/api/v1/schema?format=json").content)["openapi"].startswith("3.")
