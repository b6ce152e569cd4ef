"""Several sources in one deployment: an image, a git repository and a ConfigMap, each in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from approvals.models import Request
from provisioner.values import Identity
from tests.support.journeys.station import Station, group, role
from tests.support.servers.http import GitServer
from tests.support.servers.registry import Registry


def map_of(name: str, text: str = "") -> bytes:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{text: '{text}'}}\n".encode()


def stored(station: Station, text: str) -> dict[str, Any]:
    """A source of one manifest in a ConfigMap, which requesters may get."""
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "additions", "namespace": station.namespace},
        "data": {"map.yaml": map_of("stored", text).decode()},
    }
    station.api.apply(obj, field_manager="test")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["additions"], "verbs": ["get"]}
    for each in role("get-additions", station.namespace, rule, group("requesters")):
        station.api.apply(each, field_manager="test")
    station.until_may(Identity("rita", ("requesters",)), "get", "configmaps", name="additions")
    return {"kind": "configMap", "configMap": {"name": "additions"}}


def live(station: Station, name: str) -> str | None:
    found = station.live("ConfigMap", name)
    return found["data"]["text"] if found else None


def findings(request: Request, rule: str) -> list[Mapping[str, Any]]:
    body = request.reports.get(round=request.round).body
    return [one for one in body["findings"] if one["rule"] == rule]


@pytest.mark.parametrize(
    "destinations",
    [
        pytest.param(("foo/bar", "foo/moo", ""), marks=pytest.mark.proof),
        pytest.param(("a", "b", "c"), marks=pytest.mark.thorough),
        pytest.param(("manifests/a", "manifests", ""), marks=pytest.mark.thorough),
    ],
)
def test_each_source_lands_in_its_folder_and_all_of_them_are_applied(
    station: Station, registry: Registry, git_server: GitServer, destinations: tuple[str, str, str]
) -> None:
    name = station.namespace
    pushed = registry.push(f"{registry.host}/{name}", {"manifests/a.yaml": map_of("pulled"), "Dockerfile": b""})
    repository = git_server.repository(name)
    commit = repository.commit({"a.yaml": map_of("cloned"), "deep/b.yaml": map_of("deep")})
    sources = (
        {"kind": "image", "image": {"ref": f"{registry.host}/{name}@{pushed}"}},
        {"kind": "git", "git": {"repository": repository.url, "ref": {"commit": commit}}},
        stored(station, "one"),
    )
    placed = [one | {"destination": folder} for one, folder in zip(sources, destinations, strict=True)]
    wished = station.prepare(name, *placed)
    request = station.approve(wished)
    assert request.state == "applied", request.problem
    assert [one["destination"] for one in request.pins] == list(destinations)
    assert [live(station, one) for one in ("pulled", "cloned", "deep", "stored")] == ["", "", "", "one"]
    (unused,) = findings(request, "SRC-01")
    assert unused["evidence"]["files"] == ["/".join(filter(None, (destinations[0], "Dockerfile")))]


def test_a_source_that_fails_is_named_and_leaves_what_runs_alone(station: Station, git_server: GitServer) -> None:
    name = station.namespace
    repository = git_server.repository(name)
    repository.commit({"a.yaml": map_of("cloned")})
    git = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}, "destination": "a"}
    wished = station.applied(name, git)
    missing = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "gone"}}, "destination": "b"}
    station.prepare(name, git, missing)
    request = station.latest(wished)
    assert request.problem.startswith(f"sources[1]: {repository.url}: has no refs/heads/gone")
    assert (request.state, request.pins, live(station, "cloned")) == ("preparing", [], "")
    repository.commit({"b.yaml": map_of("added")}, branch="gone")
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    station.work()
    assert station.approve(wished).state == "applied", request.problem
    assert (live(station, "cloned"), live(station, "added")) == ("", "")


def test_the_unused_files_of_a_revision_are_said_when_it_is_put_back(station: Station, git_server: GitServer) -> None:
    name = station.namespace
    repository = git_server.repository(name)
    source = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
    repository.commit({"manifests/a.yaml": map_of("kept", "1"), "extra/b.yaml": map_of("left")})
    wished = station.prepare(name, source)
    first = station.approve(wished)
    repository.commit({"manifests/a.yaml": map_of("kept", "2")})
    station.ask_again(wished)
    station.work()
    second = station.approve(wished)
    assert (live(station, "kept"), findings(second, "SRC-01")) == ("2", [])
    station.roll_back(wished, first.revision.number)
    back = station.after_work(wished)
    assert [one["evidence"]["files"] for one in findings(back, "SRC-01")] == [["extra/b.yaml"]]
    assert findings(back, "SRC-01") == findings(first, "SRC-01")


def test_only_the_registries_that_are_listed_are_asked_without_tls(
    station: Station, registry: Registry, settings: Any
) -> None:
    name = station.namespace
    pushed = registry.push(f"{registry.host}/{name}", {"manifests/a.yaml": map_of("pulled")})
    settings.PRATIQUE = {**settings.PRATIQUE, "PLAIN_HTTP_HOSTS": ["registry.example.com"]}
    wished = station.prepare(name, {"kind": "image", "image": {"ref": f"{registry.host}/{name}@{pushed}"}})
    request = station.latest(wished)
    assert (request.state, request.problem_code) == ("preparing", "unreachable"), "TLS is spoken, and not understood"
    settings.PRATIQUE = {**settings.PRATIQUE, "PLAIN_HTTP_HOSTS": [registry.host]}
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    station.work()
    assert station.approve(wished).state == "applied"
