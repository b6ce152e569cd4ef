"""Objects that were there before: reported with their owner, and adopted only as somebody approved it."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.gate import plan_options
from approvals.models import InventoryItem, Request
from provisioner.cluster.apply.waits import Patience
from provisioner.errors import BadSource
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import until_served
from tests.support.servers.registry import Registry


def planned(request: Request, kind: str) -> dict[str, Any]:
    actions = request.reports.get(round=request.round).body["plan"]["actions"]
    return next(one for one in actions if one["ref"]["kind"] == kind)


def exists(site: DeployedSite, name: str, **data: str) -> ObjectRef:
    ref = site.ref("ConfigMap", name)
    meta = {"name": name, "namespace": site.namespace}
    site.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}, field_manager="shop")
    return ref


def test_an_object_that_nobody_holds_is_adopted_once_somebody_wished_and_approved_it(
    real_site: DeployedSite, registry: Registry
) -> None:
    ref = exists(real_site, "adopt", kept="yes")
    image = bundles.image(registry, "adopt", bundles.app("adopt", "1"))
    deployment = real_site.prepare("adopt", image)
    found = planned(real_site.latest(deployment), "ConfigMap")
    assert found["action"] == "adopt"
    assert found["problem"].endswith("exists already and does not belong to this deployment")
    assert "written by shop" in found["serverWords"]

    real_site.prepare("adopt", image, collisionProtection="IfNoController")
    request = real_site.latest(deployment)
    found = planned(request, "ConfigMap")
    assert (found["action"], found["problem"], request.state) == ("adopt", "", "in_review")
    assert real_site.approve(deployment).state == "applied"
    live = real_site.api.get(ref)
    assert live is not None
    assert live["data"] == {"kept": "yes", "version": "1"}
    assert InventoryItem.objects.get(deployment=deployment, kind="ConfigMap").uid == live["metadata"]["uid"]


@pytest.mark.proof
def test_an_object_of_another_deployment_is_never_adopted_and_that_one_is_named(
    real_site: DeployedSite, registry: Registry
) -> None:
    image = bundles.image(registry, "first", bundles.app("shared", "1"))
    first = real_site.prepare("first", image)
    real_site.approve(first)
    second = real_site.prepare("second", image, collisionProtection="IfNoController")
    found = planned(real_site.latest(second), "ConfigMap")
    assert found["action"] == "adopt"
    assert found["problem"].endswith("the BundleDeployment first holds it")


def test_a_word_that_is_no_collision_protection_is_said(real_site: DeployedSite, registry: Registry) -> None:
    deployment = real_site.submit_spec("words", bundles.image(registry, "words", bundles.app("words", "1")))
    request = real_site.latest(deployment)
    request.spec = {**request.spec, "collisionProtection": "None"}
    with pytest.raises(BadSource, match="expected Prevent or IfNoController"):
        plan_options.plan_options(request)


def test_what_was_not_tried_because_something_else_does_not_work_is_no_success(
    real_site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Patience, "left", 1.0)  # of a wait; the writes have all of the time
    stated = f"/namespaces/{real_site.namespace}/PersistentVolumeClaim/data"
    objects = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "none-such",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "after", "annotations": {"config.kubernetes.io/depends-on": stated}},
        },
    ]
    files = bundles.manifests(*objects)
    deployment = real_site.prepare("waits", bundles.image(registry, "waits", files))
    request = real_site.approve(deployment)
    assert request.state == "failed"
    assert "PersistentVolumeClaim" in request.problem


class Boats:
    """A kind of this test alone, which somebody else serves, and a boat of theirs."""

    def __init__(self, site: DeployedSite):
        self.site = site
        self.group = f"{site.namespace}.example.com"
        self.crd = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", f"boats.{self.group}")

    def definition(self, *versions: str) -> dict[str, Any]:
        return bundles.definition(self.group, "Boat", *versions)

    def serve(self, *versions: str) -> None:
        self.site.api.apply(self.definition(*versions), field_manager="others")
        for one in versions:
            until_served(self.site.api, self.group, one, "Boat")

    def withdraw(self) -> None:
        self.site.api.delete(self.crd)
        until_served(self.site.api, self.group, "v1", "Boat", is_served=False)

    def boat(self, version: str) -> dict[str, Any]:
        meta = {"name": "argo", "namespace": self.site.namespace}
        return {"apiVersion": f"{self.group}/{version}", "kind": "Boat", "metadata": meta, "spec": {"oars": 50}}

    def submit_spec(self, registry: Registry, name: str, *objects: dict[str, Any], **options: Any) -> Request:
        files = bundles.manifests(*objects)
        name = f"{self.site.namespace}-{name}"
        deployment = self.site.prepare(name, bundles.image(registry, name, files), **options)
        return self.site.latest(deployment)


def test_what_the_report_says_to_do_first_is_noticed_when_it_was_done(
    real_site: DeployedSite, registry: Registry
) -> None:
    """The kind was installed as the report said, and the report stayed as it was until somebody denied it."""
    boats = Boats(real_site)
    request = boats.submit_spec(registry, "early", boats.boat("v1"))
    assert (request.state, request.round, planned(request, "Boat")["problemCode"]) == ("in_review", 1, "unknown-kind")
    real_site.work(request)
    assert request.round == 1, "nothing came"
    boats.serve("v1")
    real_site.work(request)
    assert (request.state, request.round, planned(request, "Boat")["problem"]) == ("in_review", 2, "")
    voided = request.voided_rounds.get()
    assert (voided.code, voided.words) == (
        "cause-over",
        f"the cluster serves Boat in {boats.group}/v1 now: a new report and review are needed",
    )
    assert real_site.approve(request.deployment).state == "applied"


def test_S20_what_it_collides_with_goes_with_its_kind_and_that_kind_is_asked_for(
    site: DeployedSite, registry: Registry
) -> None:
    boats = Boats(site)
    boats.serve("v1")
    site.api.create(boats.boat("v1"), field_manager="shop")
    request = boats.submit_spec(registry, "kindless", boats.boat("v1"))
    assert (request.state, request.problem_code) == ("in_review", "collides")
    boats.withdraw()
    site.work(request)
    assert (request.state, request.round, request.problem) == ("in_review", 2, "")
    request = site.approve(request.deployment)
    assert (request.state, request.problem_code) == ("approved", "unknown-kind")
    assert f"Boat.{boats.group}" in request.problem
    assert "CustomResourceDefinition" in request.remedy
    boats.serve("v1")
    site.work(request)
    assert (request.state, request.round) == ("applied", 2), request.problem


def test_S20_what_it_collides_with_in_another_version_is_said_until_that_is_served(
    site: DeployedSite, registry: Registry
) -> None:
    boats = Boats(site)
    boats.serve("v1")
    site.api.create(boats.boat("v1"), field_manager="shop")
    both = boats.definition("v1", "v2")
    request = boats.submit_spec(registry, "newer", both, boats.boat("v2"), collisionProtection="IfNoController")
    assert (request.state, request.round, request.problem_code) == ("in_review", 1, "collides")
    assert "cannot be adopted before its new version is served" in request.problem
    boats.serve("v1", "v2")
    site.work(request)
    assert (request.state, request.round, request.problem) == ("in_review", 2, "")
    assert site.approve(request.deployment).state == "applied", site.latest(request.deployment).problem
