"""Approval policies from kubectl to the apply: what the cluster has at that moment counts, whatever the watch saw."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from approvals.ledger.deciding import deciding_objects
from approvals.models import BundleDeployment, DecidingObject, Request
from approvals.steps.mirroring.deciding_status import ShowDecidingObject
from approvals.watch.own_kinds import SeenDecidingObjects
from approvals.working import do
from provisioner.api_groups import OWN_GROUP
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import once_answered
from tests.support.servers.registry import Registry

GUARD: dict[str, Any] = {
    "effect": "Guard",
    "validations": [{"expression": "false", "messageExpression": "name + ' is frozen'"}],
    "validationActions": ["Deny"],
}
GRANT: dict[str, Any] = {
    "effect": "Grant",
    "validations": [{"expression": "true"}],
    "validationActions": ["Approve"],
}


def policy(site: DeployedSite, spec: dict[str, Any]) -> dict[str, Any]:
    """A policy about the deployment that is called as the namespace."""
    spec = {**spec, "matchConstraints": {"names": [site.namespace]}}
    meta = {"name": site.namespace}
    return {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "ApprovalPolicy", "metadata": meta, "spec": spec}


def watched(site: DeployedSite) -> None:
    """What the watch does when it starts."""
    watch = SeenDecidingObjects(cluster=site.cluster, kind="ApprovalPolicy")
    watch.stop.set()
    once_answered(lambda: watch.look(site.api))


def write(site: DeployedSite, spec: dict[str, Any]) -> ObjectRef:
    obj = policy(site, spec)
    site.api.apply(obj, field_manager="somebody", force=True)
    return ObjectRef.of(obj)


def asked(site: DeployedSite, registry: Registry) -> BundleDeployment:
    name = site.namespace
    return site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))


def test_a_guard_by_kubectl_is_shown_holds_and_lets_go_when_it_is_deleted(
    real_site: DeployedSite, registry: Registry, tmp_path: Any
) -> None:
    site, file = real_site, tmp_path / "policy.yaml"
    for changes, words in (
        ({"validationActions": ["Approve"]}, "of a Guard is Deny or Audit"),
        ({"validations": []}, "should have at least 1 items"),
    ):
        file.write_text(yaml.safe_dump(policy(site, {**GUARD, **changes})))
        with pytest.raises(AssertionError, match=words):
            site.ctl("apply", "-f", str(file))
    file.write_text(yaml.safe_dump(policy(site, GUARD)))
    site.ctl("apply", "-f", str(file))
    watched(site)
    do(ShowDecidingObject(DecidingObject.objects.get(name=site.namespace).pk))
    assert site.ctl("get", "apol", site.namespace).splitlines()[1].split()[1:5] == ["Guard", "Deny", "True", "Read"]
    deployment = asked(site, registry)
    request = site.approve(deployment)
    assert (request.state, request.problem) == ("in_review", f"held back by {site.namespace}")
    assert request.evaluations.get().words == f"{site.namespace} is frozen"
    site.ctl("delete", "approvalpolicy", site.namespace)
    watched(site)
    assert site.after_work(deployment).state == "applied"


def test_S47_a_guard_that_no_watch_has_seen_stops_what_is_approved(
    sandbox_site: DeployedSite, registry: Registry
) -> None:
    site = sandbox_site
    deployment = asked(site, registry)
    site.pause(deployment)
    assert site.approve(deployment).state == "approved"
    ref = write(site, GUARD)
    Request.objects.update(look_again_at=None)
    request = site.after_work(deployment)
    assert "is frozen" in request.problem, (request.state, request.problem)
    site.api.delete(ref)
    Request.objects.update(look_again_at=None)
    assert "is frozen" not in site.after_work(deployment).problem


@pytest.mark.parametrize("is_deleted", [False, True], ids=["changed", "deleted"])
def test_S47_what_a_grant_approved_does_not_count_once_the_cluster_has_it_otherwise(
    sandbox_site: DeployedSite, registry: Registry, is_deleted: bool
) -> None:
    site = sandbox_site
    ref = write(site, GRANT)
    obj = site.api.get(ref)
    deciding_objects.observe(
        cluster=site.cluster, kind="ApprovalPolicy", obj=obj, writer={"username": "alice"}, is_listed=True
    )
    deployment = asked(site, registry)
    site.pause(deployment)
    site.let_approve(f"pratique:policy:{site.namespace}", site.namespace)
    request = site.after_work(deployment)
    assert (request.state, request.reviews.get().username) == ("approved", f"pratique:policy:{site.namespace}")
    if is_deleted:
        site.api.delete(ref)
    else:
        write(site, {**GRANT, "validations": [{"expression": "worst == 'safe'"}]})
    Request.objects.update(look_again_at=None)
    request = site.after_work(deployment)
    assert (request.state, request.round) == ("approved", 1)
    assert f"ApprovalPolicy {site.namespace} is not as it was seen last" in request.problem
    watched(site)
    Request.objects.update(look_again_at=None)
    request = site.after_work(deployment)
    assert (request.state, request.round) == ("in_review", 2)
