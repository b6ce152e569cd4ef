"""Real bundles on a real API server: strimzi with CRD version removal (refused, then migrated), ingress-nginx with
webhooks and a Job, argo-cd over three versions and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest
import yaml

from approvals import store
from approvals.models import BundleDeployment, InventoryItem, Request
from provisioner.review.base.record import from_record
from provisioner.values import ObjectRef
from tests.support.folders import CORPUS
from tests.support.journeys.contents import bundles
from tests.support.journeys.contents.strimzi import custom_objects, storing_v1, strimzi
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.moments import look_until
from tests.support.servers.registry import Registry

pytestmark = pytest.mark.corpus


def refs_of(request: Request) -> set[ObjectRef]:
    assert request.content is not None
    return {one.ref for one in store.get(request.content).manifests}


def uids_of(site: DeployedSite, refs: Iterable[ObjectRef]) -> dict[tuple[str, str, str, str], str]:
    found = {ref.identity: site.api.get(ref) for ref in refs}
    return {identity: live["metadata"]["uid"] for identity, live in found.items() if live is not None}


def versions_of(site: DeployedSite) -> dict[str, tuple[list[str], list[str]]]:
    """Of strimzi's CRDs in the cluster: the versions that each has, and those in which objects may be stored."""
    found = [one for one in site.get("crd")["items"] if one["spec"]["group"].endswith("strimzi.io")]
    return {
        one["metadata"]["name"]: (
            sorted(version["name"] for version in one["spec"]["versions"]),
            one["status"]["storedVersions"],
        )
        for one in found
    }


def commands(request: Request, crd: str) -> list[str]:
    """What the report tells an administrator to type, to migrate the objects of a CRD."""
    findings = from_record(request.reports.get(round=request.round).body).findings
    (told,) = [one for one in findings if one.rule == "CRD-10" and one.ref and one.ref.name == crd]
    steps = [str(step) for step in told.evidence["steps"]]
    return [step.partition(": ")[2] for step in steps if "kubectl" in step]


@pytest.mark.thorough
def test_the_whole_of_strimzi_goes_from_0_51_to_1_0_once_its_objects_were_migrated_as_the_report_says(
    strimzi_site: DeployedSite, registry: Registry
) -> None:
    site = strimzi_site

    def go_to(version: str, files: dict[str, bytes]) -> Request:
        deployment = site.prepare("strimzi", bundles.image(registry, "strimzi", files, version))
        request = site.latest(deployment)
        assert request.state == "in_review", request.problem
        return site.approve(deployment)

    first = go_to("0.51.0", strimzi("0.51.0"))
    assert first.state == "applied", first.problem
    site.ctl("wait", "crd/kafkas.kafka.strimzi.io", "--for=condition=Established", "--timeout=60s")
    made = [site.api.create(one) for one in custom_objects(site.namespace)]
    stored = {ref: site.api.get(ref) for ref in map(ObjectRef.of, made)}
    before = uids_of(site, refs_of(first)), versions_of(site)
    assert {tuple(stored_in) for _, stored_in in before[1].values()} == {("v1beta2",)}

    refused = go_to("1.0.0", strimzi("1.0.0"))
    report = refused.reports.get()
    assert report.worst == "breaking", report.headline
    assert any("v1beta2" in line for line in report.headline), report.headline
    assert {"CRD-10", "CRD-11"} <= set(report.findings.values_list("rule", flat=True))
    assert (refused.state, refused.problem_code) == ("approved", "objects-refused")
    assert "the API server refuses it (Invalid)" in refused.problem
    assert "storedVersions" in site.said(refused)
    deployment = site.look_after(refused.deployment)
    assert deployment.active_revision is not None
    assert deployment.active_revision.number == 1
    assert (uids_of(site, refs_of(first)), versions_of(site)) == before

    between = go_to("0.51.0-v1", storing_v1(strimzi("0.51.0")))
    assert between.state == "applied", between.problem
    last = go_to("1.0.0", strimzi("1.0.0"))
    assert (last.state, last.problem_code) == ("approved", "objects-refused")
    assert "storedVersions" in site.said(last)

    with_objects = {f"{one['kind'].lower()}s.kafka.strimzi.io" for one in made}
    for crd in before[1]:
        rewrite, say = commands(last, crd)
        for command in [rewrite, say] if crd in with_objects else [say]:
            site.shell(command)
    site.work(last)
    assert (last.state, last.round) == ("applied", 1), last.problem
    assert versions_of(site) == {name: (["v1"], ["v1"]) for name in before[1]}
    for ref, was in stored.items():
        now = site.api.get(replace(ref, version="v1"))
        assert was is not None
        assert now is not None
        assert (now["metadata"]["uid"], now["spec"]) == (was["metadata"]["uid"], was["spec"])
    assert uids_of(site, refs_of(last)) == before[0]
    assert set(InventoryItem.objects.filter(deployment=deployment).values_list("uid", flat=True)) == set(
        before[0].values()
    )
    count = len(refs_of(last))
    assert look_until(site, deployment, f"{count} of {count}") == f"{count} of {count} objects are ready"
    states = [one.state for one in deployment.requests.order_by("number")]
    assert states == ["applied", "superseded", "applied", "applied"]


def topics(site: DeployedSite, version: str, *, stored: str, topic: str) -> dict[str, bytes]:
    """strimzi's KafkaTopic in a group of this test alone, with one topic in version `topic`."""
    group = f"{site.namespace}.example.com"
    text = (CORPUS / "plain" / "strimzi-kafka-operator" / version / "043-Crd-kafkatopic.yaml").read_text()
    definition = yaml.safe_load(text.replace("kafka.strimzi.io", group))
    for one in definition["spec"]["versions"]:
        one["storage"] = one["name"] == stored
    spec = {"partitions": 3, "replicas": 1}
    made = {"apiVersion": f"{group}/{topic}", "kind": "KafkaTopic", "metadata": {"name": "orders"}, "spec": spec}
    return bundles.manifests(definition, made)


def migrate(site: DeployedSite, crd: ObjectRef, *stored: ObjectRef) -> None:
    """What a storage migration does: write every object again, then say that nothing is stored in other versions."""
    for ref in stored:
        live = site.api.get(ref)
        assert live is not None
        site.api.replace(live, field_manager="migration")
    said = '{"status": {"storedVersions": ["v1"]}}'
    site.ctl("patch", "crd", crd.name, "--subresource=status", "--type=merge", "-p", said)


@pytest.mark.thorough
def test_a_version_of_strimzis_topics_goes_once_what_is_stored_in_it_was_migrated(
    real_site: DeployedSite, registry: Registry
) -> None:
    name = f"{real_site.namespace}-topics"
    crd = ObjectRef(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", f"kafkatopics.{real_site.namespace}.example.com"
    )
    orders = ObjectRef(f"{real_site.namespace}.example.com", "v1", "KafkaTopic", real_site.namespace, "orders")

    def go_to(version: str, **what: str) -> Request:
        deployment = real_site.prepare(name, bundles.image(registry, name, topics(real_site, version, **what)))
        return real_site.approve(deployment)

    applied = go_to("0.51.0", stored="v1beta2", topic="v1beta2")
    assert applied.state == "applied", applied.problem
    uid = real_site.get(crd.name, "orders", "-n", real_site.namespace)["metadata"]["uid"]
    refused = go_to("1.0.0", stored="v1", topic="v1")
    assert (refused.state, refused.problem_code) == ("approved", "objects-refused")
    assert "the API server refuses it (Invalid)" in refused.problem
    assert "storedVersions" in real_site.said(refused)

    between = go_to("0.51.0", stored="v1", topic="v1")
    assert between.state == "applied", between.problem
    migrate(real_site, crd, orders)
    last = go_to("1.0.0", stored="v1", topic="v1")
    assert last.state == "applied", last.problem
    definition, topic = real_site.api.get(crd), real_site.api.get(orders)
    assert definition is not None
    assert topic is not None
    assert [one["name"] for one in definition["spec"]["versions"]] == ["v1"]
    assert (topic["metadata"]["uid"], topic["spec"]) == (uid, {"partitions": 3, "replicas": 1})
    states = [one.state for one in last.deployment.requests.order_by("number")]
    assert states == ["applied", "superseded", "applied", "applied"]


@pytest.fixture
def passing(real_site: DeployedSite) -> Iterator[DeployedSite]:
    """Takes the webhook of ingress-nginx away again: nothing answers it here, and it would refuse everybody's Ingress."""
    yield real_site
    real_site.ctl("delete", "validatingwebhookconfiguration", "ingress-nginx-admission", "--ignore-not-found")


@pytest.mark.thorough
def test_ingress_nginx_is_reviewed_and_applied(passing: DeployedSite, registry: Registry) -> None:
    site = passing
    files = bundles.folder(CORPUS / "plain" / "ingress-nginx" / "controller-v1.12.1" / "provider" / "cloud")
    deployment = site.prepare("ingress", bundles.image(registry, "ingress", files))
    request = site.latest(deployment)
    assert request.state == "in_review", request.problem
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem
    assert site.get("deployment", "ingress-nginx-controller", "-n", "ingress-nginx")


@pytest.mark.thorough
def test_argo_cd_goes_from_2_10_over_2_12_to_2_14_and_back(real_site: DeployedSite, registry: Registry) -> None:
    def go_to(version: str) -> Request:
        files = bundles.folder(CORPUS / "plain" / "argo-cd" / version)
        deployment = real_site.prepare("argo-cd", bundles.image(registry, "argo-cd", files, version))
        return applied(deployment)

    def applied(deployment: BundleDeployment) -> Request:
        request = real_site.approve(deployment)
        assert request.state == "applied", (request.problem, real_site.said(request))
        live = {
            one["metadata"]["name"]: one for one in real_site.get("deployments", "-n", real_site.namespace)["items"]
        }
        assert len(live) == 6
        assert uids_of(real_site, refs_of(request)).keys() == {one.identity for one in refs_of(request)}
        return request

    def image() -> str:
        server = real_site.get("deployment", "argocd-server", "-n", real_site.namespace)
        return str(server["spec"]["template"]["spec"]["containers"][0]["image"])

    def new_rights(request: Request) -> list[str]:
        body = request.reports.get(round=request.round).body
        return [one["message"] for one in body["findings"] if one["section"] == "permissions" and one["isNew"]]

    first = go_to("v2.10.0")
    before = uids_of(real_site, refs_of(first))
    second = go_to("v2.12.0")
    role = ObjectRef("rbac.authorization.k8s.io", "v1", "ClusterRole", "", "argocd-applicationset-controller")
    assert role in refs_of(second) - refs_of(first)
    assert any("argocd-applicationset-controller" in one for one in new_rights(second)), new_rights(second)
    third = go_to("v2.14.0")
    assert image() == "quay.io/argoproj/argocd:v2.14.0-rc7"
    after = uids_of(real_site, refs_of(third))
    assert {one: after[one] for one in before.keys() & after.keys()} == {
        one: before[one] for one in before.keys() & after.keys()
    }
    real_site.roll_back(third.deployment, first.revision.number)
    real_site.work()
    applied(third.deployment)
    assert image() == "quay.io/argoproj/argocd:v2.10.0"
    assert real_site.api.get(role) is None
