"""What an approval stands for when the cluster moves before it is applied (security-rules.md S04), on either API server."""

from __future__ import annotations

from typing import Any

import pytest

from approvals import store
from approvals.models import BundleDeployment, Request, Review
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.registry import Registry

EDITOR = "kubectl-edit"


class Approved:
    """The second version of an application, approved by alice, at which no worker has looked since."""

    def __init__(self, site: DeployedSite, registry: Registry):
        self.site, self.registry = site, registry
        self.name = f"{site.namespace}-sticky"
        self.deployment = self.submit_spec("1")
        assert site.approve(self.deployment).state == "applied", site.latest(self.deployment).problem
        self.submit_spec("2")
        self.request = site.agree(self.deployment)

    def submit_spec(self, version: str) -> BundleDeployment:
        source = bundles.image(self.registry, self.name, bundles.app(self.name, version), version)
        return self.site.prepare(self.name, source)

    @property
    def config(self) -> ObjectRef:
        return self.site.ref("ConfigMap", self.name)

    def live(self) -> dict[str, Any]:
        found = self.site.api.get(self.config)
        assert found is not None
        return found

    def edit(self, **data: str) -> None:
        live = self.live()
        self.site.api.replace({**live, "data": data}, field_manager=EDITOR)

    def work(self) -> Request:
        self.site.work()
        return Request.objects.get(pk=self.request.pk)


@pytest.fixture
def approved(site: DeployedSite, registry: Registry) -> Approved:
    return Approved(site, registry)


def test_S04_an_approval_stands_where_less_is_left_to_do_than_was_reviewed(approved: Approved) -> None:
    approved.edit(version="2")
    version = approved.live()["metadata"]["resourceVersion"]
    applied = approved.work()
    assert (applied.state, applied.round) == ("applied", 1), applied.problem
    assert Review.objects.filter(request=applied).count() == 1
    assert approved.live()["metadata"]["resourceVersion"] == version


def test_S04_an_approval_does_not_stand_for_more_than_was_reviewed(approved: Approved) -> None:
    approved.site.api.delete(approved.config)
    again = approved.work()
    assert (again.state, again.round) == ("in_review", 2), again.problem
    assert approved.site.api.get(approved.config) is None
    (voided,) = again.voided_rounds.all()
    assert (voided.round, voided.was_approved, voided.code) == (1, True, "plan-changed")
    name = f"ConfigMap {approved.site.namespace}/{approved.name}"
    assert voided.objects_differing == [{"object": name, "reviewed": "update", "now": "create"}]
    approved.site.look_after(approved.deployment)
    mirror = approved.site.get("bdr", f"{approved.name}-{again.number}")
    (condition,) = (one for one in mirror["status"]["conditions"] if one["type"] == "Approved")
    assert (condition["status"], condition["reason"]) == ("False", "PlanChanged")
    assert condition["message"].startswith("the approval of round 1 no longer counts: the cluster changed")
    approved.site.approve(approved.deployment)
    assert approved.live()["data"] == {"version": "2"}
    assert list(Review.objects.filter(request=again).values_list("round", flat=True)) == [1, 2]


@pytest.mark.proof
def test_S04_an_approval_never_stands_for_other_bytes(approved: Approved) -> None:
    approved.submit_spec("3")
    other = approved.site.latest(approved.deployment)
    assert (other.state, other.reviews.count()) == ("in_review", 0)
    assert Request.objects.get(pk=approved.request.pk).state == "superseded"
    assert approved.live()["data"] == {"version": "1"}
    approved.submit_spec("2")
    same_bytes = approved.site.latest(approved.deployment)
    assert store.get(same_bytes.content).manifests == store.get(approved.request.content).manifests
    assert (same_bytes.state, same_bytes.reviews.count()) == ("in_review", 0)
