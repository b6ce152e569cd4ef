"""Image tags and addresses that may move: what a look asks of their servers, and how it lasts through what those do."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

from django.utils import timezone

from approvals.models import FloatingReference
from tests.support.journeys.contents import bundles
from tests.support.journeys.floating import INTERVAL, look, numbers, sources_condition
from tests.support.journeys.station import Station
from tests.support.servers.http import Asked, FileServer, Reply
from tests.support.servers.registry import Registry


def test_an_image_tag_that_moves_makes_a_request(any_station: Station, registry: Registry) -> None:
    station, name = any_station, f"{any_station.namespace}-tag"
    ref = f"{registry.host}/{name}:stable"
    registry.push(ref, bundles.app(name, "1"))
    deployment = station.wish(name, {"kind": "image", "image": {"ref": ref}, "interval": INTERVAL})
    station.work()
    look(deployment)
    moved = registry.push(ref, bundles.app(name, "2"))
    look(deployment)
    station.work()
    assert numbers(deployment) == [(1, "superseded"), (2, "in_review")]
    assert station.latest(deployment).pins[0]["digest"] == moved


def test_an_address_is_read_again_only_if_its_etag_differs_and_not_before_its_server_wants_to_be_asked(
    any_station: Station, http_server: FileServer, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "MUTABLE_HTTP": True}
    station, name = any_station, f"{any_station.namespace}-url"
    path = f"/{name}.yaml"
    sent: list[int] = []

    def serve(version: str, etag: str) -> None:
        raw = b"---\n".join(bundles.app(name, version).values())

        def answer(asked: Asked) -> Reply:
            if asked.headers.get("if-none-match") == etag:
                return Reply(status=304, headers={"ETag": etag})
            sent.append(len(raw))
            return Reply(raw, headers={"ETag": etag, "Content-Type": "application/yaml"})

        http_server.serve_reply(path, answer)

    serve("1", '"one"')
    deployment = station.wish(name, {"kind": "http", "http": {"url": http_server.url + path}, "interval": INTERVAL})
    station.work()
    assert numbers(deployment) == [(1, "in_review")]
    for _ in range(3):
        look(deployment)
    assert len(sent) == 2  # fetched, and looked at once without a known ETag
    serve("2", '"two"')
    look(deployment)
    station.work()
    assert numbers(deployment) == [(1, "superseded"), (2, "in_review")]

    http_server.serve(path, b"", status=429, headers={"Retry-After": "1800"})
    look(deployment)
    row = FloatingReference.objects.get(followers__deployment=deployment)
    assert row.look_at is not None
    assert row.look_at == row.rests_until > timezone.now() + timedelta(minutes=29)
    assert "answered 429" in sources_condition(station, deployment)["message"]
    serve("2", '"two"')
    look(deployment)
    assert sources_condition(station, deployment)["reason"] == "Checked"
    assert station.latest(deployment).number == 2


def test_S25_an_address_that_gives_something_else_at_every_look_makes_no_more_requests_than_it_may(
    any_station: Station, http_server: FileServer, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "MUTABLE_HTTP": True, "SOURCE_REQUESTS_PER_HOUR": 2}
    station, name = any_station, f"{any_station.namespace}-never-the-same"
    versions = itertools.count()

    def answer(asked: Asked) -> Reply:
        return Reply(b"---\n".join(bundles.app(name, str(next(versions))).values()))

    url = http_server.serve_reply(f"/{name}.yaml", answer)
    deployment = station.wish(name, {"kind": "http", "http": {"url": url}, "interval": INTERVAL})
    station.work()
    for _ in range(4):
        look(deployment)
        station.work()
    assert numbers(deployment) == [(1, "superseded"), (2, "superseded"), (3, "in_review")]
    assert sources_condition(station, deployment)["reason"] == "ChangesTooOften"
