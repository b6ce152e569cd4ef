"""Expressions and contents that would take all memory or time: their own requests say so, everybody else's continue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from approvals.models import BundleDeployment
from provisioner.expressions import evaluator
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.machine import Machine
from tests.support.journeys.neighbours import Neighbourhood, neighbourhood
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.live import until_current
from tests.support.memory import resident_bytes
from tests.support.servers.registry import Registry

SHARED = "[kubernetes_version]" + ".map(a, [a, a])" * 26
MEMORY = "could not be evaluated: it needs more memory than 256 MiB"
TIME = "could not be evaluated: it took longer than "
# Each with what its request says.
HOSTILE = {
    "doubling": ("[kubernetes_version]" + ".map(a, a + a)" * 26 + ".size() > 0", MEMORY),
    "comparing": (f"{SHARED} == {SHARED}", TIME),
    "listing": ("[apis]" + ".map(a, a + a)" * 26 + ".size() > 0", MEMORY),
    "nesting": ("[" * 1900 + "]" * 1900 + " == []", "is invalid: "),
}
MOST_BYTES = 64 * 2**20


def wished(site: DeployedSite, registry: Registry, name: str, expression: str) -> BundleDeployment:
    constraints = {"cel": [{"expression": expression, "message": "has to be so"}]}
    return site.submit_spec(name, bundles.image(registry, name, bundles.app(name, "1")), constraints=constraints)


@pytest.mark.proof
def test_S26_four_hostile_constraints_fail_alone_and_an_innocent_request_becomes_ready(
    site: DeployedSite, registry: Registry
) -> None:
    hostile = {name: wished(site, registry, name, text) for name, (text, _) in HOSTILE.items()}
    innocent = wished(site, registry, "innocent", "kubernetes_version.startsWith('v1.')")
    before = resident_bytes()
    site.work()
    assert resident_bytes() - before < MOST_BYTES, "this process is the worker"

    for name, (_, words) in HOSTILE.items():
        request = site.latest(hostile[name])
        assert words in request.problem, name
        assert len(request.problem) < 6000
    assert {site.latest(one).state for name, one in hostile.items() if name != "comparing"} == {"failed"}

    request = site.approve(innocent)
    assert (request.state, request.problem) == ("applied", "")
    until_current(site.api, site.ref("Deployment", "innocent"))
    assert site.look_after(innocent).health == "Current"


@pytest.mark.controlplane
def test_S26_a_request_without_expressions_starts_no_evaluator(real_site: DeployedSite, registry: Registry) -> None:
    evaluator.end_children()
    deployment = real_site.prepare("plain", bundles.image(registry, "plain", bundles.app("plain", "1")))
    assert real_site.latest(deployment).state == "in_review"
    assert evaluator.children() == []


def test_S26_a_request_with_a_constraint_over_a_limit_fails_and_says_what_to_do(
    site: DeployedSite, registry: Registry
) -> None:
    """It can never be met: to wait for it would promise what never comes."""
    name, (text, words) = "held", HOSTILE["doubling"]
    deployment = wished(site, registry, name, text)
    request = site.after_work(deployment)
    assert (request.state, request.problem_code) == ("failed", "constraint-over-limit")
    assert words in request.problem
    assert "Change spec.constraints.cel" in request.problem
    assert site.live("ConfigMap", name) is None

    deployment = wished(site, registry, name, "kubernetes_version.startsWith('v1.')")
    site.work()
    assert site.approve(deployment).state == "applied"


def test_S26_a_hostile_health_check_is_never_healthy_and_says_why(site: DeployedSite, registry: Registry) -> None:
    text = "[metadata.name]" + ".map(a, a + a)" * 27 + ".size() > 0"
    check = {"apiVersion": "apps/v1", "kind": "Deployment", "cel": {"current": text}}
    deployment = site.prepare(
        "untold", bundles.image(registry, "untold", bundles.app("untold", "1")), healthChecks=[check]
    )
    before = resident_bytes()
    assert site.approve(deployment).state == "applied"
    until_current(site.api, site.ref("Deployment", "untold"))
    found = site.look_after(deployment)
    assert resident_bytes() - before < MOST_BYTES
    assert found.health == "Unknown"
    assert "its CEL check current could not be evaluated: it needs more memory than 256 MiB" in found.health_message


PATIENCE_SECONDS = 240
# Of a limit of 2 GiB, which is what deploy/kubernetes ships.
MOST_MIB = 600
# A constraint over a limit can never be met: its request fails and says which limit.
OVER_A_LIMIT = {
    "doubling": "could not be evaluated: it needs more memory than 256 MiB",
    "forever": "could not be evaluated: it loops more often than the iteration budget of CEL allows",
}


@pytest.fixture(params=[pytest.param("own_controlplane", marks=pytest.mark.controlplane), "own_sandbox"])
def neighbours(request: pytest.FixtureRequest, machine: Machine) -> Iterator[Neighbourhood]:
    found = request.getfixturevalue(request.param)
    endpoint = found if isinstance(found, Endpoint) else found.endpoint
    with neighbourhood(machine, endpoint, "hostile") as made:
        yield made


@pytest.mark.thorough
def test_S26_hostile_specs_end_in_words_and_an_innocent_request_comes_through(neighbours: Neighbourhood) -> None:
    neighbours.seconds_until_ready("hostile-first")
    worker = neighbours.worker
    hostile = neighbours.wish_hostile()
    neighbours.seconds_until_ready("hostile-innocent")
    rows = neighbours.until(hostile, ["failed", "in_review"], PATIENCE_SECONDS)
    for name in hostile:
        state, code, problem = rows[name]
        assert (state == "in_review") or (code and problem), (name, rows[name])
    assert worker.poll() is None, "the worker lives"
    assert neighbours.worker_mib() < MOST_MIB
    assert neighbours.machine.rows("SELECT count(*) FROM approvals_request WHERE worker_deaths > 0") == [(0,)]
    # One that found no evaluator free waits until one is.
    rows = neighbours.until([f"hostile-{name}" for name in OVER_A_LIMIT], ["failed"], PATIENCE_SECONDS)
    for name, words in OVER_A_LIMIT.items():
        _, code, problem = rows[f"hostile-{name}"]
        assert code == "constraint-over-limit"
        assert words in problem
