"""What got stuck because nothing looked again: rights that came later, and objects in the way, on either API server."""

from __future__ import annotations

import shutil
from importlib import import_module
from typing import Any

import pytest

from approvals import services, store
from approvals.errors import Collides
from approvals.ledger import rounds
from approvals.ledger.pivots import see
from approvals.models import BundleDeployment, Policy, Request, Review
from approvals.steps.mirroring.mirror import mirror_name
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.registry import Registry

GROUP = "core.rukpak.io"
RBAC = "rbac.authorization.k8s.io"


def mirrored(site: DeployedSite, request: Request, condition: str = "Applied") -> dict[str, Any]:
    """The condition as kubectl shows it."""
    site.look_after(request.deployment)
    mirror = site.api.get(ObjectRef(GROUP, "v1alpha2", "BundleDeploymentRequest", "", mirror_name(request)))
    assert mirror is not None
    return next(one for one in mirror["status"]["conditions"] if one["type"] == condition)


def wished(site: DeployedSite, registry: Registry, word: str) -> BundleDeployment:
    name = f"{site.namespace}-{word}"
    return site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))


def looked_at(site: DeployedSite, deployment: BundleDeployment) -> Request:
    """What the sweep does after a while: nobody sends a message."""
    site.work()
    return site.latest(deployment)


@pytest.mark.proof
def test_S07_a_reviewer_whose_right_to_the_account_came_later_approves(site: DeployedSite, registry: Registry) -> None:
    deployment = wished(site, registry, "later")
    Request.objects.update(is_requester_known=False, requesters=[])
    site.let_approve("carol", deployment.name)
    site.agree(deployment, "carol")
    request = looked_at(site, deployment)
    assert (request.state, request.problem_code) == ("in_review", "held-back")
    assert "impersonate the installing ServiceAccount" in request.problem
    site.let_use_installer("carol")
    request = looked_at(site, deployment)
    assert request.state == "applied", request.problem
    assert Review.objects.get().may_use_account is False


def test_S13_a_grant_whose_own_right_came_later_approves_without_being_saved_again(
    site: DeployedSite, registry: Registry
) -> None:
    policy = site.save_policy("grant", "true")
    deployment = wished(site, registry, "granted")
    assert looked_at(site, deployment).state == "in_review"
    site.let_approve(f"pratique:policy:{policy.pk}", deployment.name)
    request = looked_at(site, deployment)
    assert request.state == "applied", request.problem
    assert (Review.objects.get().policy_id, Policy.objects.get().version) == (policy.pk, 1)


def test_S20_a_collision_is_refused_up_front_and_reviewed_anew_once_it_is_gone(
    site: DeployedSite, registry: Registry
) -> None:
    name = f"{site.namespace}-met"
    ref = site.ref("ConfigMap", name)
    meta = {"name": name, "namespace": site.namespace}
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"kept": "yes"}}
    site.api.create(theirs, field_manager="shop")
    deployment = wished(site, registry, "met")
    request = site.latest(deployment)
    assert (request.state, request.round, request.problem_code) == ("in_review", 1, "collides")
    assert "exists already and does not belong to this deployment" in request.problem
    assert "IfNoController" in request.remedy
    assert services.to_acknowledge(request) == []
    shown = mirrored(site, request)
    assert (shown["status"], shown["reason"]) == ("False", "Collides")
    assert shown["message"] == f"{request.problem}. {request.remedy}"
    with pytest.raises(Collides, match="this request cannot be approved"):
        site.agree(deployment)
    site.api.delete(ref)
    request = looked_at(site, deployment)
    assert (request.state, request.round, request.problem) == ("in_review", 2, "")
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem


@pytest.mark.proof
def test_S20_a_collision_is_adopted_where_the_wish_and_the_reviewer_say_so(
    site: DeployedSite, registry: Registry
) -> None:
    name = f"{site.namespace}-kept"
    meta = {"name": name, "namespace": site.namespace}
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"kept": "yes"}}
    site.api.create(theirs, field_manager="shop")
    deployment = wished(site, registry, "kept")
    assert site.latest(deployment).problem_code == "collides"
    source = site.latest(deployment).spec["sources"][0]
    site.prepare(name, source, collisionProtection="IfNoController")
    request = site.latest(deployment)
    assert (request.state, request.problem) == ("in_review", "")
    assert services.to_acknowledge(request) == [f"adopt ConfigMap {site.namespace}/{name}"]
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem


def test_S07_an_account_that_is_made_again_is_waited_for_and_reviewed(site: DeployedSite, registry: Registry) -> None:
    """What was approved for the account of before is no approval for another one of the name, and no end either."""
    deployment = wished(site, registry, "remade")
    site.agree(deployment)
    account = site.ref("ServiceAccount", "installer")
    before = site.latest(deployment).service_account_uid
    site.api.delete(account)
    request = looked_at(site, deployment)
    assert (request.state, request.problem_code) == ("approved", "missing-account")
    meta = {"name": account.name, "namespace": account.namespace}
    site.api.create({"apiVersion": "v1", "kind": account.kind, "metadata": meta})
    request = looked_at(site, deployment)
    assert (request.state, request.round, request.problem) == ("in_review", 2, "")
    voided = request.voided_rounds.get()
    assert (voided.code, voided.was_approved) == ("account-changed", True)
    assert before in voided.words
    shown = mirrored(site, request, "Approved")
    assert (shown["status"], shown["reason"]) == ("False", "AccountChanged")
    assert request.service_account_uid != before
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem


def test_S07_what_cannot_come_right_ends_and_is_asked_for_anew_once(
    site: DeployedSite, registry: Registry, settings: Any
) -> None:
    deployment = wished(site, registry, "ended")
    shutil.rmtree(settings.STORAGES["content"]["OPTIONS"]["location"])
    request = site.approve(deployment)
    assert (request.state, request.problem_code) == ("failed", "digest-mismatch")
    assert "core.rukpak.io/ask-again" in request.remedy
    shown = mirrored(site, request)
    assert (shown["status"], shown["reason"]) == ("False", "DigestMismatch")
    site.ask_again(deployment)
    again = looked_at(site, deployment)
    assert (again.number, again.state) == (2, "in_review")
    live = site.api.get(ObjectRef(GROUP, "v1alpha2", "BundleDeployment", "", deployment.name))
    assert live is not None
    for _ in range(2):
        see(cluster=site.cluster, obj=live, writer=None)
    assert deployment.requests.count() == 2, "what was asked for once is one request, however often it is seen"
    assert store.get(again.content).manifests
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem


@pytest.mark.parametrize(
    "edited",
    [{"expression": "false"}, pytest.param({"is_active": False}, marks=pytest.mark.thorough), {"message": "always"}],
)
def test_S13_what_an_edited_grant_approved_is_reviewed_again_before_it_starts(
    site: DeployedSite, registry: Registry, edited: dict[str, Any]
) -> None:
    name = f"{site.namespace}-edited"
    policy = site.save_policy("grant", "true")
    site.let_approve(f"pratique:policy:{policy.pk}", name)
    deployment = site.submit_spec(name, bundles.image(registry, name, bundles.app(name, "1")))
    site.pause(deployment)
    request = looked_at(site, deployment)
    assert (request.state, request.problem_code, request.round) == ("approved", "paused", 1)
    site.save_policy("grant", **{"expression": "true", **edited})
    request = looked_at(site, deployment)
    assert request.round == 2
    voided = request.voided_rounds.get()
    assert (voided.round, voided.was_approved, voided.code) == (1, True, "policy-changed")
    if "message" in edited:
        assert request.state == "approved", "the grant says yes as it is by now"
        assert request.reviews.get(round=2).policy_version == 2
    else:
        assert (request.state, request.reviews.filter(round=2).count()) == ("in_review", 0)
        assert site.approve(deployment).state == "approved"
    site.resume(deployment)
    request = looked_at(site, deployment)
    assert (request.state, request.round) == ("applied", 2), request.problem


def put_theirs(site: DeployedSite, name: str) -> ObjectRef:
    ref = site.ref("ConfigMap", name)
    meta = {"name": name, "namespace": site.namespace}
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"kept": "yes"}}
    site.api.create(theirs, field_manager="shop")
    return ref


def test_S20_somebody_elses_object_that_is_made_again_and_again_opens_no_round(
    site: DeployedSite, registry: Registry
) -> None:
    name = f"{site.namespace}-again"
    ref = put_theirs(site, name)
    deployment = wished(site, registry, "again")
    assert site.latest(deployment).problem_code == "collides"
    for _ in range(3):
        site.api.delete(ref)
        put_theirs(site, name)
        request = looked_at(site, deployment)
        assert (request.state, request.round, request.problem_code) == ("in_review", 1, "collides")


def test_S20_what_comes_and_goes_is_reported_again_so_often_and_no_more(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{site.namespace}-flapping"
    ref = put_theirs(site, name)
    deployment = wished(site, registry, "flapping")
    voiding = rounds.void

    def void(*row: Any, **facts: Any) -> Request:
        put_theirs(site, name)
        return voiding(*row, **facts)

    monkeypatch.setattr(rounds, "void", void)
    # The room offers a function of the module's name.
    monkeypatch.setattr(import_module("approvals.gate.judge"), "MAX_ROUNDS", 2)
    for number in (1, 2):
        site.api.delete(ref)
        request = looked_at(site, deployment)
        assert (request.state, request.round, request.problem_code) == ("in_review", number + 1, "collides")
    site.api.delete(ref)
    request = looked_at(site, deployment)
    assert (request.state, request.problem_code) == ("failed", "changes-again")
    assert "the conflicting objects changed" in request.problem
    assert "ask-again" in request.remedy
    site.ask_again(deployment)
    site.work()
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem
