"""What got stuck because nothing looked again: rights that came later, and objects in the way, on either API server."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from approvals import services
from approvals.errors import Collides
from approvals.models import BundleDeployment, Policy, Request, Review
from approvals.steps.mirroring.mirror import mirror_name
from provisioner.values import AccessRequest, Identity, ObjectRef
from tests import live
from tests.approvals.core.world import acting
from tests.journeys import bundles
from tests.journeys.station import SEEDER, Station, binding
from tests.services.registry import Registry

GROUP = "core.rukpak.io"
RBAC = "rbac.authorization.k8s.io"


def subject(name: str) -> dict[str, str]:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def let_approve(station: Station, who: str, name: str) -> None:
    """Let a user approve this one deployment, and wait until the API server goes by it; others share the cluster."""
    rule = {"apiGroups": [GROUP], "resources": ["bundledeployments"], "verbs": ["approve"], "resourceNames": [name]}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}
    for one in (role, binding(name, name, subject(who))):
        station.api.apply(one, field_manager=SEEDER)
    question = AccessRequest("approve", GROUP, "bundledeployments", name=name)
    live.until_may(station.api, Identity(who), question)


def let_use_installer(station: Station, who: str) -> None:
    """Let a user impersonate the installing ServiceAccount."""
    about = {"name": f"late-{who}", "namespace": station.namespace}
    rule = {
        "apiGroups": [""],
        "resources": ["serviceaccounts"],
        "verbs": ["impersonate"],
        "resourceNames": ["installer"],
    }
    reference = {"apiGroup": RBAC, "kind": "Role", "name": about["name"]}
    kinds: list[dict[str, Any]] = [
        {"kind": "Role", "rules": [rule]},
        {"kind": "RoleBinding", "roleRef": reference, "subjects": [subject(who)]},
    ]
    for one in kinds:
        station.api.apply({"apiVersion": f"{RBAC}/v1", "metadata": about, **one}, field_manager=SEEDER)
    wanted = AccessRequest("impersonate", resource="serviceaccounts", namespace=station.namespace, name="installer")
    live.until_may(station.api, Identity(who), wanted)


def mirrored(station: Station, request: Request) -> dict[str, Any]:
    """The condition `Applied` as kubectl shows it."""
    station.look_after(request.deployment)
    mirror = station.api.get(ObjectRef(GROUP, "v1alpha2", "BundleDeploymentRequest", "", mirror_name(request)))
    assert mirror is not None
    return next(one for one in mirror["status"]["conditions"] if one["type"] == "Applied")


def wished(station: Station, registry: Registry, word: str) -> BundleDeployment:
    name = f"{station.namespace}-{word}"
    made = station.wish(name, bundles.image(registry, name, bundles.app(name, "1")))
    station.work()
    return made


def looked_at(station: Station, deployment: BundleDeployment) -> Request:
    """What the sweep does after a while: nobody sends a message."""
    station.work()
    return station.latest(deployment)


def test_S07_a_reviewer_whose_right_to_the_account_came_later_approves(
    any_station: Station, registry: Registry
) -> None:
    station = any_station
    deployment = wished(station, registry, "later")
    Request.objects.update(is_requester_known=False, requesters=[])
    let_approve(station, "carol", deployment.name)
    station.agree(deployment, "carol")
    request = looked_at(station, deployment)
    assert (request.state, request.problem_code) == ("in_review", "held-back")
    assert "impersonate the installing ServiceAccount" in request.problem
    let_use_installer(station, "carol")
    request = looked_at(station, deployment)
    assert request.state == "applied", request.problem
    assert Review.objects.get().may_use_account is False


def test_S13_a_grant_whose_own_right_came_later_approves_without_being_saved_again(
    any_station: Station, registry: Registry
) -> None:
    station, alice = any_station, any_station.people["alice"]
    services.save_policy(by=acting(alice), via="browser", **grant(station, alice))
    deployment = wished(station, registry, "granted")
    assert looked_at(station, deployment).state == "in_review"
    policy = Policy.objects.get()
    let_approve(station, f"pratique:policy:{policy.pk}", deployment.name)
    request = looked_at(station, deployment)
    assert request.state == "applied", request.problem
    assert (Review.objects.get().policy_id, Policy.objects.get().version) == (policy.pk, 1)


def grant(station: Station, by: User) -> dict[str, Any]:
    return {
        "name": "always",
        "kind": "grant",
        "mode": "enforce",
        "cluster": station.cluster,
        "names": [],
        "labels": {},
        "expression": "true",
        "message": "",
        "is_active": True,
    }


def test_S20_a_collision_is_refused_up_front_and_reviewed_anew_once_it_is_gone(
    any_station: Station, registry: Registry
) -> None:
    station = any_station
    name = f"{station.namespace}-met"
    ref = ObjectRef("", "v1", "ConfigMap", station.namespace, name)
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
    with pytest.raises(Collides, match="nobody can approve this"):
        station.agree(deployment)
    station.api.delete(ref)
    request = looked_at(station, deployment)
    assert (request.state, request.round, request.problem) == ("in_review", 2, "")
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem


def test_S20_a_collision_is_adopted_where_the_wish_and_the_reviewer_say_so(
    any_station: Station, registry: Registry
) -> None:
    station = any_station
    name = f"{station.namespace}-kept"
    meta = {"name": name, "namespace": station.namespace}
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"kept": "yes"}}
    station.api.create(theirs, field_manager="shop")
    deployment = wished(station, registry, "kept")
    assert station.latest(deployment).problem_code == "collides"
    source = station.latest(deployment).spec["sources"][0]
    station.wish(name, source, collisionProtection="IfNoController")
    station.work()
    request = station.latest(deployment)
    assert (request.state, request.problem) == ("in_review", "")
    assert services.to_acknowledge(request) == [f"adopt ConfigMap {station.namespace}/{name}"]
    assert station.approve(deployment).state == "applied", station.latest(deployment).problem
