"""Real bundles on a real API server: strimzi with CRD version removal, ingress-nginx with webhooks and a Job."""

from __future__ import annotations

import pytest

from provisioner.values import ObjectRef
from tests.conftest import CORPUS
from tests.journeys import bundles
from tests.journeys.station import Station
from tests.services.registry import Registry

pytestmark = pytest.mark.corpus

KAFKAS = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "kafkas.kafka.strimzi.io")


def test_strimzi_from_0_51_to_1_0(station: Station, registry: Registry) -> None:
    station.ctl("create", "namespace", "myproject")
    old, new = (bundles.folder(CORPUS / "plain" / "strimzi-kafka-operator" / it) for it in ("0.51.0", "1.0.0"))
    deployment = station.wish("strimzi", bundles.image(registry, "strimzi", old, "0.51.0"))
    station.work()
    first = station.latest(deployment)
    assert first.state == "in_review", first.problem
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
    station.ctl("wait", "crd/kafkas.kafka.strimzi.io", "--for=condition=Established", "--timeout=20s")

    station.wish("strimzi", bundles.image(registry, "strimzi", new, "1.0.0"))
    station.work()
    second = station.latest(deployment)
    assert second.state == "in_review", second.problem
    report = second.reports.get()
    rules = set(report.findings.values_list("rule", flat=True))
    assert report.worst == "breaking", report.headline
    assert rules & {"CRD-10", "CRD-11"}, rules
    assert any("v1beta2" in line for line in report.headline), report.headline
    # Kubernetes refuses to drop a version that is still in storedVersions; strimzi's own notes ask for a migration
    # first. Approved or not, nothing is touched and the first revision stays what runs.
    assert "CRD-10" in rules, rules
    refused = station.approve(deployment)
    assert (refused.state, refused.problem_code) == ("approved", "waiting")
    assert "storedVersions" in refused.problem
    live = station.api.get(KAFKAS)
    assert live is not None
    assert "v1beta2" in {version["name"] for version in live["spec"]["versions"]}
    deployment = station.look_after(deployment)
    assert deployment.active_revision is not None
    assert deployment.active_revision.number == 1


def test_ingress_nginx_is_reviewed_and_applied(station: Station, registry: Registry) -> None:
    files = bundles.folder(CORPUS / "plain" / "ingress-nginx" / "controller-v1.12.1" / "provider" / "cloud")
    deployment = station.wish("ingress", bundles.image(registry, "ingress", files))
    station.work()
    request = station.latest(deployment)
    assert request.state == "in_review", request.problem
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
    assert station.get("deployment", "ingress-nginx-controller", "-n", "ingress-nginx")
