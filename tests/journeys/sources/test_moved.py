"""What happens to a source once its content was approved: the approved bytes are applied, or nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from approvals.models import BundleDeployment
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.http import GitServer
from tests.support.servers.registry import Registry


@dataclass(frozen=True, slots=True)
class Origin:
    """A source that names what may move, what may happen to it, and how often it was asked (None: it cannot tell)."""

    source: Mapping[str, Any]
    happens: Callable[[], object]
    asked: Callable[[], int | None]


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Registry]:
    """A registry of this test alone, which may die."""
    program = shutil.which("docker-registry")
    assert program, "docker-registry is not installed: run tests/install"
    server = Registry.start(program, tmp_path)
    yield server
    server.stop()


def tagged(registry: Registry, name: str) -> dict[str, Any]:
    registry.push(f"{registry.host}/{name}:stable", bundles.app(name, "1"))
    return {"kind": "image", "image": {"ref": f"{registry.host}/{name}:stable"}}


def moved_tag(request: pytest.FixtureRequest, name: str) -> Origin:
    registry: Registry = request.getfixturevalue("registry")
    source = tagged(registry, name)
    return Origin(source, lambda: registry.push(f"{registry.host}/{name}:stable", bundles.app(name, "2")), lambda: None)


def dead_registry(request: pytest.FixtureRequest, name: str) -> Origin:
    registry: Registry = request.getfixturevalue("mortal")
    return Origin(tagged(registry, name), registry.stop, lambda: None)


def changed_branch(request: pytest.FixtureRequest, name: str) -> Origin:
    server: GitServer = request.getfixturevalue("git_server")
    repository = server.repository(name)
    repository.commit(bundles.app(name, "1"))
    source = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
    return Origin(source, lambda: repository.commit(bundles.app(name, "2")), lambda: len(server.asked))


def rewritten_history(request: pytest.FixtureRequest, name: str) -> Origin:
    """The pinned commit itself is gone."""
    server: GitServer = request.getfixturevalue("git_server")
    repository = server.repository(name)
    repository.commit(bundles.app(name, "1"))

    def rewrite() -> None:
        shutil.rmtree(repository.path)
        server.repository(name).commit(bundles.app(name, "2"))

    source = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
    return Origin(source, rewrite, lambda: len(server.asked))


ORIGINS = [moved_tag, dead_registry, changed_branch, rewritten_history]


def in_review(site: DeployedSite, name: str, origin: Origin) -> BundleDeployment:
    deployment = site.prepare(name, origin.source)
    found = site.latest(deployment)
    assert found.state == "in_review", found.problem
    return deployment


def version_of(site: DeployedSite, name: str) -> str | None:
    live = site.live("ConfigMap", name)
    return live["data"]["version"] if live else None


@pytest.mark.parametrize("origin_of", ORIGINS, ids=lambda it: it.__name__)
def test_promise_1_whatever_becomes_of_the_source_the_approved_bytes_are_applied(
    real_site: DeployedSite, request: pytest.FixtureRequest, origin_of: Callable[[pytest.FixtureRequest, str], Origin]
) -> None:
    name = f"{real_site.namespace}-approved"
    origin = origin_of(request, name)
    deployment = in_review(real_site, name, origin)
    pins = real_site.latest(deployment).pins
    origin.happens()
    asked = origin.asked()
    applied = real_site.approve(deployment)
    assert applied.state == "applied", applied.problem
    assert (version_of(real_site, name), applied.pins) == ("1", pins)
    assert origin.asked() == asked


@pytest.mark.parametrize("origin_of", [moved_tag, changed_branch], ids=lambda it: it.__name__)
def test_promise_1_where_the_approved_bytes_are_lost_nothing_is_applied_and_nothing_is_fetched(
    real_site: DeployedSite,
    request: pytest.FixtureRequest,
    settings: Any,
    origin_of: Callable[[pytest.FixtureRequest, str], Origin],
) -> None:
    name = f"{real_site.namespace}-lost"
    origin = origin_of(request, name)
    deployment = in_review(real_site, name, origin)
    origin.happens()
    asked = origin.asked()
    shutil.rmtree(settings.STORAGES["content"]["OPTIONS"]["location"])
    ended = real_site.approve(deployment)
    assert (ended.state, ended.problem_code) == ("failed", "digest-mismatch")
    assert version_of(real_site, name) is None
    assert origin.asked() == asked
