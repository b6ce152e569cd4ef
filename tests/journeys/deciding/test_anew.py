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
from tests.support.journeys.station import Station
from tests.support.servers.registry import Registry

GROUP = "core.rukpak.io"
RBAC = "rbac.authorization.k8s.io"


def mirrored(station: Station, request: Request, condition: str = "Applied") -> dict[str, Any]:
    """The condition as kubectl shows it."""
    station.look_after(request.deployment)
    mirror = station.api.get(ObjectRef(GROUP, "v1alpha2", "BundleDeploymentRequest", "", mirror_name(request)))
    assert mirror is not None
    return next(one for one in mirror["status"]["conditions"] if one["type"] == condition)


def wished(station: Station, registry: Registry, word: str) -> BundleDeployment:
    name = f"{station.namespace}-{word}"
    return station.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))


def looked_at(station: Station, deployment: BundleDeployment) -> Request:
    """What the sweep does after a while: nobody sends a message."""
    station.work()
    return station.latest(deployment)


@pytest.mark.proof
def test_S07_a_reviewer_whose_right_to_the_account_came_later_approves(station: Station, registry: Registry) -> None:
    deployment = wished(station, registry, "later")
    Request.objects.update(is_requester_known=False, requesters=[])
    station.let_approve("carol", deployment.name)
    station.agree(deployment, "carol")
    request = looked_at(station, deployment)
    assert (request.state, request.problem_code) == ("in_review", "held-back")
    assert "impersonate the installing ServiceAccount" in request.problem
    station.let_use_installer("carol")
    request = looked_at(station, deployment)
    assert request.state == "applied", request.problem
    assert Review.objects.get().may_use_account is False


def test_S13_a_grant_whose_own_right_came_later_approves_without_being_saved_again(
    station: Station, registry: Registry
) -> None:
    policy = station.save_policy("grant", "true")
    deployment = wished(station, registry, "granted")
    assert looked_at(station, deployment).state == "in_review"
    station.let_approve(f"pratique:policy:{policy.pk}", deployment.name)
    request = looked_at(station, deployment)
    assert request.state == "applied", request.problem
    assert (Review.objects.get().policy_id, Policy.objects.get().version) == (policy.pk, 1)


def test_S20_a_collision_is_refused_up_front_and_reviewed_anew_once_it_is_gone(
    station: Station, registry: Registry
) -> None:
    name = f"{station.namespace}-met"
    ref = station.ref("ConfigMap", name)
    meta = {"name": name, "namespace": station.namespace}
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"kept": "yes"}}
    station.api.create(theirs, field_manager="shop")
    deployment = wished(station, registry, "met")
    request = station.latest(deployment)
    assert (request.state, request.round, request.problem_code) == ("in_review", 1, "collides")
    assert "exists already and does not belong to this deployment" in request.problem
    assert "IfNoController" in request.remedy
    assert services.to_acknowledge(request) == []
    shown = mirrored(station, request)
    assert (shown["status"], shown["reason"]) == ("False", "Collides")
    assert shown["message"] == f"{request.problem}. {request.remedy}"
    with pytest.raises(Collides, match="this request cannot be approved"):
        station.agree(deployment)
    station.api.delete(ref)
    request = looked_at(station, deployment)
    assert (request.state, request.round, request.problem) == ("in_review", 2, "")
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem


@pytest.mark.proof
def test_S20_a_collision_is_adopted_where_the_wish_and_the_reviewer_say_so(
    station: Station, registry: Registry
) -> None:
    name = f"{station.namespace}-kept"
    meta = {"name": name, "namespace": station.namespace}
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"kept": "yes"}}
    station.api.create(theirs, field_manager="shop")
    deployment = wished(station, registry, "kept")
    assert station.latest(deployment).problem_code == "collides"
    source = station.latest(deployment).spec["sources"][0]
    station.prepare(name, source, collisionProtection="IfNoController")
    request = station.latest(deployment)
    assert (request.state, request.problem) == ("in_review", "")
    assert services.to_acknowledge(request) == [f"adopt ConfigMap {station.namespace}/{name}"]
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem


def test_S07_an_account_that_is_made_again_is_waited_for_and_reviewed(station: Station, registry: Registry) -> None:
    """What was approved for the account of before is no approval for another one of the name, and no end either."""
    deployment = wished(station, registry, "remade")
    station.agree(deployment)
    account = station.ref("ServiceAccount", "installer")
    before = station.latest(deployment).service_account_uid
    station.api.delete(account)
    request = looked_at(station, deployment)
    assert (request.state, request.problem_code) == ("approved", "missing-account")
    meta = {"name": account.name, "namespace": account.namespace}
    station.api.create({"apiVersion": "v1", "kind": account.kind, "metadata": meta})
    request = looked_at(station, deployment)
    assert (request.state, request.round, request.problem) == ("in_review", 2, "")
    voided = request.voided_rounds.get()
    assert (voided.code, voided.was_approved) == ("account-changed", True)
    assert before in voided.words
    shown = mirrored(station, request, "Approved")
    assert (shown["status"], shown["reason"]) == ("False", "AccountChanged")
    assert request.service_account_uid != before
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem


def test_S07_what_cannot_come_right_ends_and_is_asked_for_anew_once(
    station: Station, registry: Registry, settings: Any
) -> None:
    deployment = wished(station, registry, "ended")
    shutil.rmtree(settings.STORAGES["content"]["OPTIONS"]["location"])
    request = station.approve(deployment)
    assert (request.state, request.problem_code) == ("failed", "digest-mismatch")
    assert "core.rukpak.io/ask-again" in request.remedy
    shown = mirrored(station, request)
    assert (shown["status"], shown["reason"]) == ("False", "DigestMismatch")
    station.ask_again(deployment)
    again = looked_at(station, deployment)
    assert (again.number, again.state) == (2, "in_review")
    live = station.api.get(ObjectRef(GROUP, "v1alpha2", "BundleDeployment", "", deployment.name))
    assert live is not None
    for _ in range(2):
        see(cluster=station.cluster, obj=live, writer=None)
    assert deployment.requests.count() == 2, "what was asked for once is one request, however often it is seen"
    assert store.get(again.content).manifests
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem


@pytest.mark.parametrize(
    "edited",
    [{"expression": "false"}, pytest.param({"is_active": False}, marks=pytest.mark.thorough), {"message": "always"}],
)
def test_S13_what_an_edited_grant_approved_is_reviewed_again_before_it_starts(
    station: Station, registry: Registry, edited: dict[str, Any]
) -> None:
    name = f"{station.namespace}-edited"
    policy = station.save_policy("grant", "true")
    station.let_approve(f"pratique:policy:{policy.pk}", name)
    deployment = station.wish(name, bundles.image(registry, name, bundles.app(name, "1")))
    station.pause(deployment)
    request = looked_at(station, deployment)
    assert (request.state, request.problem_code, request.round) == ("approved", "paused", 1)
    station.save_policy("grant", **{"expression": "true", **edited})
    request = looked_at(station, deployment)
    assert request.round == 2
    voided = request.voided_rounds.get()
    assert (voided.round, voided.was_approved, voided.code) == (1, True, "policy-changed")
    if "message" in edited:
        assert request.state == "approved", "the grant says yes as it is by now"
        assert request.reviews.get(round=2).policy_version == 2
    else:
        assert (request.state, request.reviews.filter(round=2).count()) == ("in_review", 0)
        assert station.approve(deployment).state == "approved"
    station.resume(deployment)
    request = looked_at(station, deployment)
    assert (request.state, request.round) == ("applied", 2), request.problem


def put_theirs(station: Station, name: str) -> ObjectRef:
    ref = station.ref("ConfigMap", name)
    meta = {"name": name, "namespace": station.namespace}
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"kept": "yes"}}
    station.api.create(theirs, field_manager="shop")
    return ref


def test_S20_somebody_elses_object_that_is_made_again_and_again_opens_no_round(
    station: Station, registry: Registry
) -> None:
    name = f"{station.namespace}-again"
    ref = put_theirs(station, name)
    deployment = wished(station, registry, "again")
    assert station.latest(deployment).problem_code == "collides"
    for _ in range(3):
        station.api.delete(ref)
        put_theirs(station, name)
        request = looked_at(station, deployment)
        assert (request.state, request.round, request.problem_code) == ("in_review", 1, "collides")


def test_S20_what_comes_and_goes_is_reported_again_so_often_and_no_more(
    station: Station, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{station.namespace}-flapping"
    ref = put_theirs(station, name)
    deployment = wished(station, registry, "flapping")
    voiding = rounds.void

    def void(*row: Any, **facts: Any) -> Request:
        put_theirs(station, name)
        return voiding(*row, **facts)

    monkeypatch.setattr(rounds, "void", void)
    # The room offers a function of the module's name.
    monkeypatch.setattr(import_module("approvals.gate.judge"), "MAX_ROUNDS", 2)
    for number in (1, 2):
        station.api.delete(ref)
        request = looked_at(station, deployment)
        assert (request.state, request.round, request.problem_code) == ("in_review", number + 1, "collides")
    station.api.delete(ref)
    request = looked_at(station, deployment)
    assert (request.state, request.problem_code) == ("failed", "changes-again")
    assert "the conflicting objects changed" in request.problem
    assert "ask-again" in request.remedy
    station.ask_again(deployment)
    station.work()
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
