"""CRDs and objects of theirs in one bundle: they come together, change together, and go in the right order."""

from __future__ import annotations

import time
from typing import Any

import pytest

from approvals import services
from approvals.errors import Unacknowledged
from approvals.gate import deletions
from approvals.models import Outcome, Request
from approvals.steps import apply as step
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import until_served
from tests.support.servers.registry import Registry

OLD = {"size": {"type": "integer"}}
NEW = {**OLD, "colour": {"type": "string", "enum": ["red", "green"]}}


class Lanterns:
    """A kind of this test alone, its bundle, and what is live of it."""

    def __init__(self, site: DeployedSite, registry: Registry):
        self.site, self.registry = site, registry
        self.group = f"{site.namespace}.example.com"
        self.name = f"{site.namespace}-lanterns"
        self.crd = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", f"lanterns.{self.group}")

    def definition(self, fields: dict[str, Any]) -> dict[str, Any]:
        return bundles.definition(self.group, "Lantern", schema=bundles.with_spec(fields, required=sorted(fields)))

    def lantern(self, name: str, **spec: object) -> dict[str, Any]:
        return {"apiVersion": f"{self.group}/v1", "kind": "Lantern", "metadata": {"name": name}, "spec": spec}

    def submit_spec(self, *objects: dict[str, Any]) -> Request:
        files = bundles.manifests(*objects)
        deployment = self.site.prepare(self.name, bundles.image(self.registry, self.name, files))
        return self.site.latest(deployment)

    def ref(self, name: str) -> ObjectRef:
        return ObjectRef(self.group, "v1", "Lantern", self.site.namespace, name)

    def live(self, name: str) -> Any:
        self.site.api.forget_discovery()
        return self.site.api.get(self.ref(name))


@pytest.fixture
def lanterns(real_site: DeployedSite, registry: Registry) -> Lanterns:
    return Lanterns(real_site, registry)


def order_of(request: Request) -> list[str]:
    assert request.state == "applied", request.problem
    rows = Outcome.objects.filter(request=request).order_by("position")
    return [f"{row.action} {row.object.split('.')[0]}" for row in rows]


@pytest.mark.proof
def test_crds_and_their_objects_come_change_and_go_in_one_bundle(lanterns: Lanterns) -> None:
    site = lanterns.site
    first = lanterns.submit_spec(lanterns.lantern("bow", size=1), lanterns.definition(OLD))
    assert first.state == "in_review", first.problem
    deployment = first.deployment
    assert order_of(site.approve(deployment)) == ["create CustomResourceDefinition", "create Lantern"]
    uid = site.api.get(lanterns.crd)["metadata"]["uid"]  # type: ignore[index]  # it was created a line above

    # The new field is required: neither the old object nor the new one would be valid under the other schema.
    second = lanterns.submit_spec(lanterns.definition(NEW), lanterns.lantern("bow", size=1, colour="red"))
    assert {"SCH-08", "LIV-01"} <= set(second.reports.get().findings.values_list("rule", flat=True))
    assert {one["problem"] for one in second.reports.get().body["plan"]["actions"]} == {""}
    assert order_of(site.approve(deployment)) == ["update CustomResourceDefinition", "update Lantern"]
    assert lanterns.live("bow")["spec"] == {"size": 1, "colour": "red"}
    assert site.api.get(lanterns.crd)["metadata"]["uid"] == uid  # type: ignore[index]  # it was there a line above

    foreign = lanterns.lantern("stern", size=2, colour="green")
    foreign["metadata"]["namespace"] = site.namespace
    site.api.create(foreign)
    site.look_after(deployment)
    site.delete(deployment)
    leaving = site.after_work(deployment)
    words = f"delete {lanterns.crd.kind}.{lanterns.crd.group} {lanterns.crd.name}"
    with pytest.raises(Unacknowledged, match=words):
        site.agree(deployment, acknowledges=[one for one in services.to_acknowledge(leaving) if one != words])
    found = leaving.reports.get().findings.filter(object__contains=lanterns.crd.name)
    assert any("2 Lantern objects" in one.message for one in found), list(found.values_list("rule", "message"))
    assert order_of(site.approve(deployment)) == ["delete Lantern", "delete CustomResourceDefinition"]
    assert site.api.get(lanterns.crd) is None
    assert site.look_after(deployment).gone_at is not None


def create_lantern(site: DeployedSite, lanterns: Lanterns, name: str, owner: Any = None) -> None:
    foreign = lanterns.lantern(name, size=2)
    foreign["metadata"]["namespace"] = site.namespace
    if owner is not None:
        named = {"apiVersion": "v1", "kind": "ConfigMap", "controller": True}
        foreign["metadata"]["ownerReferences"] = [named | {key: owner["metadata"][key] for key in ("name", "uid")}]
    site.api.forget_discovery()
    site.api.create(foreign)


@pytest.fixture
def leaving(site: DeployedSite, registry: Registry) -> Request:
    """A request that deletes a CRD of which somebody has made one object, which reviewers were shown."""
    lanterns = Lanterns(site, registry)
    kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "1"}}
    first = lanterns.submit_spec(lanterns.definition(OLD), kept)
    assert site.approve(first.deployment).state == "applied"
    until_served(site.api, lanterns.group, "v1", "Lantern")
    create_lantern(site, lanterns, "shown")
    request = lanterns.submit_spec(kept)
    found = request.reports.get().findings.filter(object__contains=lanterns.crd.name)
    assert any("1 Lantern object" in one.message for one in found), list(found.values_list("rule", "message"))
    return request


@pytest.mark.proof
def test_S15_objects_of_a_crd_that_nobody_was_shown_do_not_go_with_it(
    site: DeployedSite, registry: Registry, leaving: Request
) -> None:
    lanterns = Lanterns(site, registry)
    site.agree(leaving.deployment)
    create_lantern(site, lanterns, "late")
    request = site.after_work(leaving.deployment)
    assert (request.state, request.round) == ("in_review", 2), request.problem
    assert request.voided_rounds.get().code == "goes-along-unseen"
    assert "1 Lantern object created since" in request.voided_rounds.get().words
    found = request.reports.get(round=2).findings.filter(object__contains=lanterns.crd.name)
    assert any("2 Lantern objects" in one.message for one in found), list(found.values_list("rule", "message"))
    assert lanterns.live("late")
    assert site.approve(leaving.deployment).state == "applied", site.latest(leaving.deployment).problem
    assert site.api.get(lanterns.crd) is None


def test_S15_an_object_of_a_controller_goes_only_where_its_owner_does(
    site: DeployedSite, registry: Registry, leaving: Request
) -> None:
    lanterns = Lanterns(site, registry)
    site.agree(leaving.deployment)
    owner = site.live("ConfigMap", "kept")
    create_lantern(site, lanterns, "late", owner)
    request = site.after_work(leaving.deployment)
    assert (request.state, request.round) == ("in_review", 2), request.problem
    assert request.voided_rounds.get().code == "goes-along-unseen"
    assert lanterns.live("late")


def test_S15_what_was_put_into_a_namespace_since_does_not_go_with_it(site: DeployedSite, registry: Registry) -> None:
    """Of every kind that the report counts: here a Service, which keeps nothing and would be missed all the same."""
    name = f"{site.namespace}-hold"
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    kept = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "1"}}
    for objects in ([space, kept], [kept]):
        files = bundles.manifests(*objects)
        wished = site.prepare(name, bundles.image(registry, name, files))
        request = site.latest(wished)
        assert request.state == "in_review", request.problem
        if space in objects:
            assert site.approve(wished).state == "applied"
    site.agree(wished)
    service = {"metadata": {"name": "late", "namespace": name}, "spec": {"ports": [{"port": 80}]}}
    site.api.create({"apiVersion": "v1", "kind": "Service", **service})
    request = site.after_work(wished)
    assert (request.state, request.round) == ("in_review", 2), request.problem
    assert "1 Service object created since" in request.voided_rounds.get().words
    assert site.api.get(ObjectRef("", "v1", "Service", name, "late")) is not None
    assert site.approve(wished).state == "applied", site.latest(wished).problem


@pytest.mark.thorough
def test_S15_objects_in_place_of_those_that_were_shown_do_not_go_either(
    site: DeployedSite, registry: Registry, leaving: Request
) -> None:
    lanterns = Lanterns(site, registry)
    site.agree(leaving.deployment)
    time.sleep(1.1)  # the API server says to the second when something was created
    site.api.delete(lanterns.ref("shown"))
    create_lantern(site, lanterns, "instead")
    request = site.after_work(leaving.deployment)
    assert (request.state, request.round) == ("in_review", 2), request.problem


def test_S15_what_comes_when_it_has_begun_does_not_go_either(
    site: DeployedSite, registry: Registry, leaving: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the first phase all is well; then somebody makes one more."""
    lanterns = Lanterns(site, registry)
    started = step._start

    def start(*words: Any) -> Any:
        create_lantern(site, lanterns, "late")
        return started(*words)

    monkeypatch.setattr(step, "_start", start)
    request = site.approve(leaving.deployment)
    assert (request.state, request.problem_code) == ("failed", "goes-along-unseen"), request.problem
    assert "ask-again" in request.remedy
    assert lanterns.live("late")
    assert site.api.get(lanterns.crd) is not None
    monkeypatch.undo()
    site.ask_again(leaving.deployment)
    site.work()
    assert site.approve(leaving.deployment).state == "applied", site.latest(leaving.deployment).problem


def test_S25_a_pause_while_objects_are_looked_through_counts_before_that_very_phase(
    site: DeployedSite, registry: Registry, leaving: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list may take a minute, and what it is about goes in the phase that follows."""
    lanterns = Lanterns(site, registry)
    looked = deletions.unseen

    def pause(*, is_paused: bool) -> None:
        site.pause(leaving.deployment, is_paused=is_paused)

    def unseen(*words: Any, has_begun: bool = False) -> Any:
        if has_begun:  # before a phase, and not at the gate
            pause(is_paused=True)
        return looked(*words, has_begun=has_begun)

    monkeypatch.setattr(deletions, "unseen", unseen)
    request = site.approve(leaving.deployment)
    assert (request.state, request.problem_code) == ("applying", "paused"), request.problem
    assert lanterns.live("shown")
    monkeypatch.undo()
    pause(is_paused=False)
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    request = site.after_work(leaving.deployment)
    assert request.state == "applied", request.problem
    assert site.api.get(lanterns.crd) is None


@pytest.mark.parametrize("step_of", [pytest.param("at the gate", marks=pytest.mark.thorough), "when it has begun"])
def test_S15_what_cannot_be_looked_through_in_time_is_waited_for_without_a_slot(
    site: DeployedSite, registry: Registry, leaving: Request, monkeypatch: pytest.MonkeyPatch, step_of: str
) -> None:
    lanterns, started = Lanterns(site, registry), step._start

    def start(*words: Any) -> Any:
        monkeypatch.setattr(deletions, "LOOK_SECONDS", 0.0)
        return started(*words)

    if step_of == "at the gate":
        monkeypatch.setattr(deletions, "LOOK_SECONDS", 0.0)
    else:
        monkeypatch.setattr(step, "_start", start)
    request = site.approve(leaving.deployment)
    expected = "approved" if step_of == "at the gate" else "applying"
    assert (request.state, request.problem_code) == (expected, "too-many-to-see"), request.problem
    assert request.attempts
    assert lanterns.live("shown")
    monkeypatch.undo()
    Request.objects.filter(pk=request.pk).update(look_again_at=None)
    request = site.after_work(leaving.deployment)
    assert request.state == "applied", request.problem
