"""spec.constraints on a real API server: an approved request waits, says what is unmet, and goes on by itself."""

from __future__ import annotations

from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.station import Station
from tests.support.kubernetes.live import until_current
from tests.support.servers.registry import Registry


def test_an_approved_request_waits_for_another_deployment_and_goes_on_by_itself(
    station: Station, registry: Registry
) -> None:
    constraints = {
        "kubernetesVersionRange": ">=1.30.0",
        "requiredAPIs": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
        "requiredBundleDeployments": [{"name": "ground"}],
    }
    upper = bundles.image(registry, "upper", bundles.app("upper", "1"))
    deployment = station.wish("upper", upper, constraints=constraints)
    station.work()
    assert station.latest(deployment).problem_code == "unmet-constraints"
    request = station.approve(deployment)
    assert (request.state, request.problem_code) == ("approved", "unmet-constraints")
    assert request.problem.endswith("BundleDeployment ground has no running revision")
    assert station.api.get(ObjectRef("", "v1", "ConfigMap", station.namespace, "upper")) is None

    ground = station.wish("ground", bundles.image(registry, "ground", bundles.app("ground", "1")))
    station.work()
    station.approve(ground)
    request.refresh_from_db()
    assert request.problem.endswith("BundleDeployment ground is not healthy")
    until_current(station.api, ObjectRef("apps", "v1", "Deployment", station.namespace, "ground"))
    assert station.look_after(ground).health == "Current"
    station.work()
    request.refresh_from_db()
    assert (request.state, request.problem) == ("applied", "")


def test_constraints_that_cannot_be_read_fail_the_request_with_the_reason(station: Station, registry: Registry) -> None:
    source = bundles.image(registry, "unread", bundles.app("unread", "1"))
    deployment = station.wish("unread", source, constraints={"kubernetesVersionRange": "^1.30"})
    station.work()
    request = station.latest(deployment)
    assert (request.state, request.problem_code) == ("failed", "invalid-range")
