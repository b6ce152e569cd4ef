"""A chart of a git repository that needs two others: fetched, pinned, reviewed, applied, and then changed where they are."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from approvals.models import Request
from provisioner.values import Identity
from tests.support.journeys.deployed_site import DeployedSite, group, role
from tests.support.journeys.floating import found
from tests.support.journeys.pull_secrets import docker_config
from tests.support.provisioner.dependencies import archive, chart_with, index, needs
from tests.support.servers.http import FileServer, GitServer
from tests.support.servers.registry import Registry


def serve(server: FileServer, place: str, name: str, text: str) -> None:
    data = archive(name, text)
    server.serve(f"/{place}/{name}-1.0.0.tgz", data)
    server.serve(f"/{place}/index.yaml", index((name, "1.0.0", f"{name}-1.0.0.tgz", data)))


def push(registry: Registry, place: str, name: str, text: str) -> str:
    return registry.push(f"{place}/{name}:1.0.0", {}, layers=[archive(name, text)])


def text_of(site: DeployedSite, name: str) -> str:
    live = site.live("ConfigMap", name)
    return str(live["data"]["text"]) if live else ""


def fetched(request: Request) -> list[dict[str, Any]]:
    return [pin for pin in request.pins if pin["kind"] == "dependency"]


@pytest.mark.proof
def test_dependencies_are_pinned_by_the_request_and_a_repository_that_changes_them_is_named(
    site: DeployedSite, git_server: GitServer, registry: Registry, http_server: FileServer
) -> None:
    place = site.namespace
    serve(http_server, place, "base", "one")
    first_digest = push(registry, place, "cache", "one")
    repository = git_server.repository(place)
    web, oci = f"{http_server.url}/{place}", f"oci://{registry.host}/{place}"
    repository.commit(chart_with(needs("base", web), needs("cache", oci)))
    source = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
    wished = site.submit_spec(place, source, format="helm")
    site.work()
    first = site.latest(wished)
    assert first.state == "in_review", first.problem
    assert [pin["reference"] for pin in fetched(first)] == [f"{web}/base:1.0.0", f"{oci}/cache:1.0.0"]
    assert fetched(first)[1]["digest"] == first_digest
    told = found(first, "SRC-05")
    assert [(one["severity"], one["message"]) for one in told] == [
        ("safe", f"{pin['reference']} was fetched, as the chart depends on it; its digest is {pin['digest']}")
        for pin in fetched(first)
    ]
    # The repositories change what they serve under the same version: what was reviewed is what is applied.
    serve(http_server, place, "base", "two")
    push(registry, place, "cache", "two")
    assert site.approve(wished).state == "applied"
    assert [text_of(site, name) for name in ("own", "base", "cache")] == ["own", "one", "one"]
    site.ask_again(wished)
    site.work()
    second = site.latest(wished)
    assert (second.number, second.state) == (2, "in_review"), second.problem
    changed = [one for one in found(second, "SRC-05") if one["severity"] == "dangerous"]
    assert [one["message"] for one in changed] == [
        f"{after['reference']} has other bytes than before under the same version: revision 1 had {before['digest']}, "
        f"this is {after['digest']}"
        for before, after in zip(fetched(first), fetched(second), strict=True)
    ]
    assert site.approve(wished).state == "applied"
    assert [text_of(site, name) for name in ("base", "cache")] == ["two", "two"]
    site.roll_back(wished, 1)
    site.work()
    assert site.approve(wished).state == "applied"
    assert [text_of(site, name) for name in ("base", "cache")] == ["one", "one"]


def test_S08_the_secret_of_a_private_dependency_is_asked_for_and_goes_to_its_host_alone(
    site: DeployedSite, git_server: GitServer, registry_with_auth: Registry, http_server: FileServer
) -> None:
    place = site.namespace
    http_server.asked.clear()
    serve(http_server, place, "base", "one")
    push(registry_with_auth, place, "cache", "one")
    repository = git_server.repository(place)
    web, oci = f"{http_server.url}/{place}", f"oci://{registry_with_auth.host}/{place}"
    repository.commit(chart_with(needs("base", web), needs("cache", oci)))
    source = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
    auth = {"host": registry_with_auth.host, "secret": {"name": "pull"}}
    docker_config(site, registry_with_auth.host)
    wished = site.submit_spec(place, source, format="helm", config={"dependencyAuth": [auth]})
    site.work()
    assert "does not allow rita to get secrets pull" in site.latest(wished).problem
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["pull"], "verbs": ["get"]}
    for each in role("get-pull", place, rule, group("requesters")):
        site.api.apply(each, field_manager="test")
    site.until_may(Identity("rita", ("requesters",)), "get", "secrets", name="pull")
    site.work()
    assert site.latest(wished).state == "in_review", site.latest(wished).problem
    user, password = registry_with_auth.credentials or ("", "")
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    assert http_server.asked
    assert pair not in str([one.headers for one in http_server.asked])
