"""Expressions that would take all memory or time: their own requests say so, and everybody else's go on."""

from __future__ import annotations

import pytest

from approvals.models import BundleDeployment
from provisioner.expressions import evaluator
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.station import Station
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


def wished(here: Station, registry: Registry, name: str, expression: str) -> BundleDeployment:
    constraints = {"cel": [{"expression": expression, "message": "has to be so"}]}
    return here.wish(name, bundles.image(registry, name, bundles.app(name, "1")), constraints=constraints)


@pytest.mark.proof
def test_S26_four_hostile_constraints_fail_alone_and_an_innocent_request_becomes_ready(
    any_station: Station, registry: Registry
) -> None:
    here = any_station
    hostile = {name: wished(here, registry, name, text) for name, (text, _) in HOSTILE.items()}
    innocent = wished(here, registry, "innocent", "kubernetes_version.startsWith('v1.')")
    before = resident_bytes()
    here.work()
    assert resident_bytes() - before < MOST_BYTES, "this process is the worker"

    for name, (_, words) in HOSTILE.items():
        request = here.latest(hostile[name])
        assert words in request.problem, name
        assert len(request.problem) < 6000
    assert {here.latest(one).state for name, one in hostile.items() if name != "comparing"} == {"failed"}

    request = here.approve(innocent)
    assert (request.state, request.problem) == ("applied", "")
    until_current(here.api, ObjectRef("apps", "v1", "Deployment", here.namespace, "innocent"))
    assert here.look_after(innocent).health == "Current"


@pytest.mark.controlplane
def test_S26_a_request_without_expressions_starts_no_evaluator(station: Station, registry: Registry) -> None:
    here = station
    evaluator.end_children()
    deployment = here.wish("plain", bundles.image(registry, "plain", bundles.app("plain", "1")))
    here.work()
    assert here.latest(deployment).state == "in_review"
    assert evaluator.children() == []


def test_S26_a_request_with_a_constraint_over_a_limit_fails_and_says_what_to_do(
    any_station: Station, registry: Registry
) -> None:
    """It can never be met: to wait for it would promise what never comes."""
    here = any_station
    name, (text, words) = "held", HOSTILE["doubling"]
    deployment = wished(here, registry, name, text)
    here.work()
    request = here.latest(deployment)
    assert (request.state, request.problem_code) == ("failed", "constraint-over-limit")
    assert words in request.problem
    assert "Change spec.constraints.cel" in request.problem
    assert here.api.get(ObjectRef("", "v1", "ConfigMap", here.namespace, name)) is None

    deployment = wished(here, registry, name, "kubernetes_version.startsWith('v1.')")
    here.work()
    assert here.approve(deployment).state == "applied"


def test_S26_a_hostile_health_check_is_never_healthy_and_says_why(any_station: Station, registry: Registry) -> None:
    here = any_station
    text = "[metadata.name]" + ".map(a, a + a)" * 27 + ".size() > 0"
    check = {"apiVersion": "apps/v1", "kind": "Deployment", "cel": {"current": text}}
    deployment = here.wish(
        "untold", bundles.image(registry, "untold", bundles.app("untold", "1")), healthChecks=[check]
    )
    here.work()
    before = resident_bytes()
    assert here.approve(deployment).state == "applied"
    until_current(here.api, ObjectRef("apps", "v1", "Deployment", here.namespace, "untold"))
    found = here.look_after(deployment)
    assert resident_bytes() - before < MOST_BYTES
    assert found.health == "Unknown"
    assert "its CEL check current could not be evaluated: it needs more memory than 256 MiB" in found.health_message
