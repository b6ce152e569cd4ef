"""Image tags and addresses that may move: what a look asks of their servers, and how it lasts through what those do."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals.models import BundleDeployment, FloatingReference
from tests.support.journeys.contents import bundles
from tests.support.journeys.contents.catalogs import harbour
from tests.support.journeys.floating import INTERVAL, found, look, numbers, sources_condition
from tests.support.journeys.station import Station
from tests.support.servers.http import Asked, FileServer, Reply
from tests.support.servers.registry import Registry

Files = Mapping[str, bytes | str]


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


def chart(version: str) -> Files:
    return {
        "Chart.yaml": f"apiVersion: v2\nname: harbour\nversion: {version}\n",
        "templates/a.yaml": (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: harbour}\ndata: {version: {{ .Chart.Version | quote }}}\n"
        ),
    }


def lower(station: Station, deployment: BundleDeployment) -> list[str]:
    """What is found of a request that nobody asked for."""
    look(deployment)
    station.work()
    request = station.latest(deployment)
    assert (request.state, request.is_unattended) == ("in_review", True), request.problem
    return [f"{one['severity']}: {one['message']}" for one in found(request, "SRC-03")]


@pytest.mark.proof
@pytest.mark.parametrize(("format_name", "files"), [("helm", chart), ("registry-v1", harbour)], ids=["chart", "bundle"])
def test_a_tag_that_comes_to_stand_for_a_lower_version_is_found(
    any_station: Station, registry: Registry, format_name: str, files: Callable[[str], Files]
) -> None:
    station, name = any_station, f"{any_station.namespace}-lower"
    ref = f"{registry.host}/{name}:stable"
    registry.push(ref, files("1.1.0"))
    deployment = station.wish(name, {"kind": "image", "image": {"ref": ref}, "interval": "5m"}, format=format_name)
    station.work()
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
    registry.push(ref, files("1.2.0"))
    assert lower(station, deployment) == []
    assert station.approve(deployment).state == "applied"
    registry.push(ref, files("1.0.0"))
    assert lower(station, deployment) == [
        "dangerous: The bundle claims version 1.0.0, lower than 1.2.0 of revision 2",
    ]
