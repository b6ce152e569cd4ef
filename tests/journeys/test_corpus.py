"""Real bundles on a real API server: strimzi with CRD version removal (refused, then migrated), ingress-nginx with webhooks and a Job."""

from __future__ import annotations

import pytest
import yaml

from approvals.models import Request
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


def topics(station: Station, version: str, *, stored: str, topic: str) -> dict[str, bytes]:
    """strimzi's KafkaTopic in a group of this test alone, with one topic in version `topic`."""
    group = f"{station.namespace}.example.com"
    text = (CORPUS / "plain" / "strimzi-kafka-operator" / version / "043-Crd-kafkatopic.yaml").read_text()
    definition = yaml.safe_load(text.replace("kafka.strimzi.io", group))
    for one in definition["spec"]["versions"]:
        one["storage"] = one["name"] == stored
    spec = {"partitions": 3, "replicas": 1}
    made = {"apiVersion": f"{group}/{topic}", "kind": "KafkaTopic", "metadata": {"name": "orders"}, "spec": spec}
    return {"manifests/all.yaml": yaml.safe_dump_all([definition, made]).encode()}


def migrate(station: Station, crd: ObjectRef, *stored: ObjectRef) -> None:
    """What a storage migration does: write every object again, then say that nothing is stored in other versions."""
    for ref in stored:
        live = station.api.get(ref)
        assert live is not None
        station.api.replace(live, field_manager="migration")
    said = '{"status": {"storedVersions": ["v1"]}}'
    station.ctl("patch", "crd", crd.name, "--subresource=status", "--type=merge", "-p", said)


def test_a_version_of_strimzis_topics_goes_once_what_is_stored_in_it_was_migrated(
    station: Station, registry: Registry
) -> None:
    name = f"{station.namespace}-topics"
    crd = ObjectRef("apiextensions.k8s.io", "v1", KAFKAS.kind, "", f"kafkatopics.{station.namespace}.example.com")
    orders = ObjectRef(f"{station.namespace}.example.com", "v1", "KafkaTopic", station.namespace, "orders")

    def go_to(version: str, **what: str) -> Request:
        deployment = station.wish(name, bundles.image(registry, name, topics(station, version, **what)))
        station.work()
        return station.approve(deployment)

    applied = go_to("0.51.0", stored="v1beta2", topic="v1beta2")
    assert applied.state == "applied", applied.problem
    uid = station.get(crd.name, "orders", "-n", station.namespace)["metadata"]["uid"]
    refused = go_to("1.0.0", stored="v1", topic="v1")
    assert (refused.state, refused.problem_code) == ("approved", "waiting")
    assert "storedVersions" in refused.problem

    between = go_to("0.51.0", stored="v1", topic="v1")
    assert between.state == "applied", between.problem
    migrate(station, crd, orders)
    last = go_to("1.0.0", stored="v1", topic="v1")
    assert last.state == "applied", last.problem
    definition, topic = station.api.get(crd), station.api.get(orders)
    assert definition is not None
    assert topic is not None
    assert [one["name"] for one in definition["spec"]["versions"]] == ["v1"]
    assert (topic["metadata"]["uid"], topic["spec"]) == (uid, {"partitions": 3, "replicas": 1})
    states = [one.state for one in last.deployment.requests.order_by("number")]
    assert states == ["applied", "superseded", "applied", "applied"]


def test_ingress_nginx_is_reviewed_and_applied(station: Station, registry: Registry) -> None:
    files = bundles.folder(CORPUS / "plain" / "ingress-nginx" / "controller-v1.12.1" / "provider" / "cloud")
    deployment = station.wish("ingress", bundles.image(registry, "ingress", files))
    station.work()
    request = station.latest(deployment)
    assert request.state == "in_review", request.problem
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
    assert station.get("deployment", "ingress-nginx-controller", "-n", "ingress-nginx")
