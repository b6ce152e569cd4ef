"""Every address of the site has a limit, for strangers, for people and for tokens that do not hold."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve

from approvals.api import authentication, external_checks, sign_in
from approvals.api import authentication as rest
from approvals.project import middleware
from approvals.rate_limits import Door
from approvals.rate_limits.counters import Limit
from tests.support.approvals.fixtures import World
from tests.support.approvals.world import api_token, enter

FEW = 1
# Whoever asks these decides whether the process lives. Their answers are kept for a second.
FREE = {"/healthz", "/readyz"}
SAMPLES = {
    "uuid": str(uuid.UUID(int=1)),
    "int": "1",
    "slug": "prod",
    "str": "name",
    "package": "harbour",
    "pk": "1",
    "uid": str(uuid.UUID(int=1)),
    "position": "0",
    "cluster": "prod",
    "name": "name",
    "number": "1",
    "review": "1",
    "check": "tickets",
    "guard": "hold-unknown",
    "delivery": "1",
}


def every_pattern(resolver: URLResolver | None = None) -> Iterator[URLPattern]:
    for one in (resolver or get_resolver()).url_patterns:
        yield from every_pattern(one) if isinstance(one, URLResolver) else [one]


def every_path(resolver: URLResolver | None = None, before: str = "/") -> Iterator[str]:
    """A path that each pattern of the site matches, with made-up values in it."""
    for one in (resolver or get_resolver()).url_patterns:
        if isinstance(one, URLResolver):
            yield from every_path(one, before + str(one.pattern))
        else:
            yield filled(before, one)


def filled(before: str, one: URLPattern) -> str:
    text = str(one.pattern)
    for name, converter in one.pattern.converters.items():
        kind = type(converter).__name__.removesuffix("Converter").lower().replace("string", "str")
        text = text.replace(f"<{kind}:{name}>", SAMPLES[kind]).replace(f"<{name}>", SAMPLES[kind])
    return before + unregexed(text)


def unregexed(text: str) -> str:
    text = re.sub(r"\(\?P<(\w+)>[^)]*\)", lambda found: SAMPLES[found[1]], text)
    return text.replace("(?:/|$)", "/").replace(r"\Z", "").replace(r"\.", ".").strip("^$")


PATHS = sorted(set(every_path()) | {"/nowhere", "/api/v1/nowhere", "/api/"})
LIMITED = [path for path in PATHS if path not in FREE]


@pytest.fixture(autouse=True)
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same limits, reached sooner."""
    of_pages = ((middleware, name) for name in ("STRANGER", "PERSON", "ICON"))
    views = ((sign_in.SignInViewSet, "limit"), (external_checks.CheckRunViewSet, "limit"))
    for where, name in (*of_pages, (rest, "PERSON"), *views):
        monkeypatch.setattr(where, name, Limit(f"few-{where.__name__}-{name}", FEW, 60))
    monkeypatch.setattr(authentication, "API_TOKEN", Door("api-token", None, Limit("few-tokens", FEW, 60)))


def statuses(client: Client, path: str, method: str = "get", **headers: str) -> list[int]:
    client.raise_request_exception = False
    return [getattr(client, method)(path, headers=headers).status_code for _ in range(FEW + 1)]


def test_S29_every_pattern_of_the_site_is_tried_here() -> None:
    found = {resolve(path).url_name for path in PATHS if path != "/nowhere"}
    assert found == {one.name for one in every_pattern()}


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("path", LIMITED)
def test_S29_strangers_are_limited_at_every_door(env: World, path: str, method: str) -> None:
    found = statuses(Client(), path, method)
    assert (found[-1], 429 in found[:-1]) == (429, False), found


@pytest.mark.parametrize("path", LIMITED)
def test_S29_tokens_that_do_not_hold_are_limited_at_every_door(env: World, path: str) -> None:
    found = statuses(Client(), path, Authorization="Bearer prq_guess")
    assert found[-1] == 429, found


@pytest.mark.parametrize("path", LIMITED)
def test_S29_people_are_limited_at_every_door(env: World, path: str) -> None:
    client = Client()
    enter(client, env.ada)
    assert statuses(client, path)[-1] == 429


@pytest.mark.parametrize("path", [path for path in LIMITED if path.startswith("/api/")])
def test_S29_tokens_that_hold_are_limited_at_every_address_of_the_api(env: World, path: str) -> None:
    token = api_token(env.ada)[1]
    assert statuses(Client(), path, Authorization=f"Bearer {token}")[-1] == 429


@pytest.mark.parametrize("path", ["/requests/{}/review", "/me/tokens", "/deployments/new", "/theme"])
def test_S29_what_writes_is_limited_by_person(env: World, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "PERSON", Limit("person", 600, 60))
    monkeypatch.setattr(middleware, "WRITING", Limit("writing", FEW, 60))
    client = Client()
    enter(client, env.ada)
    assert statuses(client, path.format(uuid.UUID(int=1)), "post")[-1] == 429


def test_S29_the_description_of_the_api_is_limited_more_tightly(env: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "PERSON", Limit("person", 600, 60))
    monkeypatch.setitem(rest.ADDRESSES, "api-schema", Limit("schema", FEW, 60))
    client = Client()
    enter(client, env.ada)
    found = statuses(client, "/api/v1/schema")
    assert found == [200] * FEW + [429]


def test_probes_are_answered_always(env: World) -> None:
    for path in FREE:
        assert 429 not in statuses(Client(), path) + statuses(Client(), path)
