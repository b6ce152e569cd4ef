"""Several sources in one deployment: an image, a git repository and a ConfigMap, each in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from approvals.models import Request
from provisioner.values import Identity
from tests.support.journeys.deployed_site import DeployedSite, group, role
from tests.support.servers.http import GitServer
from tests.support.servers.registry import Registry


def map_of(name: str, text: str = "") -> bytes:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{text: '{text}'}}\n".encode()


def stored(site: DeployedSite, text: str) -> dict[str, Any]:
    """A source of one manifest in a ConfigMap, which requesters may get."""
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "additions", "namespace": site.namespace},
        "data": {"map.yaml": map_of("stored", text).decode()},
    }
    site.api.apply(obj, field_manager="test")
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["additions"], "verbs": ["get"]}
    for each in role("get-additions", site.namespace, rule, group("requesters")):
        site.api.apply(each, field_manager="test")
    site.until_may(Identity("rita", ("requesters",)), "get", "configmaps", name="additions")
    return {"kind": "configMap", "configMap": {"name": "additions"}}


def live(site: DeployedSite, name: str) -> str | None:
    found = site.live("ConfigMap", name)
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
    site: DeployedSite, registry: Registry, git_server: GitServer, destinations: tuple[str, str, str]
) -> None:
    name = site.namespace
    pushed = registry.push(f"{registry.host}/{name}", {"manifests/a.yaml": map_of("pulled"), "Dockerfile": b""})
    repository = git_server.repository(name)
    commit = repository.commit({"a.yaml": map_of("cloned"), "deep/b.yaml": map_of("deep")})
    sources = (
        {"kind": "image", "image": {"ref": f"{registry.host}/{name}@{pushed}"}},
        {"kind": "git", "git": {"repository": repository.url, "ref": {"commit": commit}}},
        stored(site, "one"),
    )
    placed = [one | {"destination": folder} for one, folder in zip(sources, destinations, strict=True)]
    wished = site.prepare(name, *placed)
    request = site.approve(wished)
    assert request.state == "applied", request.problem
    assert [one["destination"] for one in request.pins] == list(destinations)
    assert [live(site, one) for one in ("pulled", "cloned", "deep", "stored")] == ["", "", "", "one"]
    (unused,) = findings(request, "SRC-01")
    assert unused["evidence"]["files"] == ["/".join(filter(None, (destinations[0], "Dockerfile")))]


def test_a_source_that_fails_is_named_and_leaves_what_runs_alone(site: DeployedSite, git_server: GitServer) -> None:
    name = site.namespace
    repository = git_server.repository(name)
    repository.commit({"a.yaml": map_of("cloned")})
    git = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}, "destination": "a"}
    wished = site.applied(name, git)
    missing = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "gone"}}, "destination": "b"}
    site.prepare(name, git, missing)
    request = site.latest(wished)
    assert request.problem.startswith(f"sources[1]: {repository.url}: has no refs/heads/gone")
    assert (request.state, request.pins, live(site, "cloned")) == ("preparing", [], "")
    repository.commit({"b.yaml": map_of("added")}, branch="gone")
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    site.work()
    assert site.approve(wished).state == "applied", request.problem
    assert (live(site, "cloned"), live(site, "added")) == ("", "")


def test_what_the_files_of_a_revision_had_is_said_again_when_it_is_put_back(
    site: DeployedSite, git_server: GitServer
) -> None:
    """Which of them were not used, which keys were there twice, and what the spec changed in their objects."""
    name = site.namespace
    repository = git_server.repository(name)
    source = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
    repository.commit({"manifests/a.yaml": map_of("kept", "1") + b"kind: ConfigMap", "extra/b.yaml": map_of("left")})
    patch = {"op": "add", "path": "/data/added", "value": "here"}
    patches = [{"patch": [patch], "target": {"kind": "ConfigMap"}}, {"patch": [patch], "target": {"kind": "Service"}}]
    wished = site.prepare(name, source, config={"patches": patches})
    first = site.approve(wished)
    assert (site.live("ConfigMap", "kept") or {})["data"] == {"text": "1", "added": "here"}
    assert [one["evidence"]["entry"] for one in findings(first, "PATCH-01")] == ["patches[1]", "patches[0]"]
    repository.commit({"manifests/a.yaml": map_of("kept", "2")})
    site.ask_again(wished)
    site.work()
    second = site.approve(wished)
    assert (live(site, "kept"), findings(second, "SRC-01"), findings(second, "SRC-04")) == ("2", [], [])
    site.roll_back(wished, first.revision.number)
    back = site.after_work(wished)
    assert [one["evidence"]["files"] for one in findings(back, "SRC-01")] == [["extra/b.yaml"]]
    assert [one["evidence"]["keys"] for one in findings(back, "SRC-04")] == [["kind (manifests/a.yaml, lines 2 and 5)"]]
    for rule in ("SRC-01", "SRC-04", "PATCH-01"):
        told = [(one["message"], one["evidence"]) for one in findings(first, rule)]
        assert [(one["message"], one["evidence"]) for one in findings(back, rule)] == told


def test_only_the_registries_that_are_listed_are_asked_without_tls(
    site: DeployedSite, registry: Registry, settings: Any
) -> None:
    name = site.namespace
    pushed = registry.push(f"{registry.host}/{name}", {"manifests/a.yaml": map_of("pulled")})
    settings.PRATIQUE = {**settings.PRATIQUE, "PLAIN_HTTP_HOSTS": ["registry.example.com"]}
    wished = site.prepare(name, {"kind": "image", "image": {"ref": f"{registry.host}/{name}@{pushed}"}})
    request = site.latest(wished)
    assert (request.state, request.problem_code) == ("preparing", "unreachable"), "TLS is spoken, and not understood"
    settings.PRATIQUE = {**settings.PRATIQUE, "PLAIN_HTTP_HOSTS": [registry.host]}
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    site.work()
    assert site.approve(wished).state == "applied"
