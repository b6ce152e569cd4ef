"""A guard, a waiver and the right to override on a real API server, from the report to the apply."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from approvals import services
from approvals.errors import NotAllowed
from approvals.ledger import pivots
from approvals.models import BundleDeployment, Policy, Request
from approvals.services.waivers import why_not
from provisioner.values import Identity, ObjectRef
from tests.support.approvals.world import acting
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import SEEDER, DeployedSite, binding, group
from tests.support.servers.registry import Registry


def guarded(
    site: DeployedSite, registry: Registry, name: str, expression: str = "rules.size() == 0"
) -> BundleDeployment:
    """A deployment in review whose findings a guard does not like."""
    services.save_policy(
        by=acting(site.people["alice"]),
        name="calm",
        kind="guard",
        mode="enforce",
        cluster=site.cluster,
        names=[name],
        labels={},
        expression=expression,
        message="",
        is_active=True,
        via="browser",
    )
    return site.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))


def waive_all(site: DeployedSite, deployment: BundleDeployment) -> Request:
    request = site.latest(deployment)
    found = request.reports.get(round=request.round).body["findings"]
    assert found
    assert [one for one in found if why_not(one)] == []
    waives = [services.Waiver(one["fingerprint"], "as in the last release") for one in found]
    return site.approve(deployment, channel="rest", waives=waives)


def test_a_waiver_opens_a_guard_only_while_its_author_may_override(real_site: DeployedSite, registry: Registry) -> None:
    alice = Identity("alice", ("platform", real_site.namespace))
    real_site.people["alice"].kubernetes_identities.update(groups=[*alice.groups])
    override = binding(f"{real_site.namespace}-override", "pratique-override", group(real_site.namespace))
    deployment = guarded(real_site, registry, "guarded")
    with pytest.raises(NotAllowed, match="needs the verb override"):
        waive_all(real_site, deployment)
    real_site.api.apply(override, field_manager=SEEDER)
    real_site.until_may(alice, "override", "bundledeployments", "core.rukpak.io")
    real_site.pause(deployment)
    request = waive_all(real_site, deployment)
    assert (request.state, request.problem_code) == ("approved", "paused"), request.problem
    real_site.look_after(deployment)
    shown = real_site.get("bdr", "guarded-1")["status"]["reviewsSummary"]
    assert shown == {"approvals": 1, "waivers": len(request.reviews.get().waives)}

    real_site.api.delete(ObjectRef.of(override))
    real_site.until_may(alice, "override", "bundledeployments", "core.rukpak.io", is_allowed=False)
    real_site.resume(deployment)
    real_site.work(request)
    assert (request.state, request.problem_code) == ("approved", "waiver-lost")
    assert "what alice accepted no longer counts" in request.problem
    assert real_site.live("Deployment", "guarded") is None

    real_site.api.apply(override, field_manager=SEEDER)
    real_site.until_may(alice, "override", "bundledeployments", "core.rukpak.io")
    cache.clear()
    Request.objects.update(look_again_at=None)
    real_site.work(request)
    assert request.state == "applied", request.problem


def test_a_guard_that_is_changed_after_the_approval_stops_the_apply(
    real_site: DeployedSite, registry: Registry
) -> None:
    deployment = guarded(real_site, registry, "thawed", "true")
    real_site.pause(deployment)
    real_site.approve(deployment)
    Policy.objects.update(expression="false", version=2, message="frozen until Monday")
    real_site.resume(deployment)
    request = real_site.after_work(deployment)
    assert (request.state, request.problem_code) == ("approved", "guard-holds")
    assert "frozen until Monday" in request.problem
    assert real_site.live("Deployment", "thawed") is None


def test_S14_a_label_put_on_with_kubectl_is_reported_and_reviewed_again(
    real_site: DeployedSite, registry: Registry
) -> None:
    deployment = guarded(real_site, registry, "labelled", "true")
    real_site.ctl("label", "bd", "labelled", "tier=prod")
    pivots.see(cluster=real_site.cluster, obj=real_site.get("bd", "labelled"), writer=None)
    request = real_site.after_work(deployment)
    assert (request.state, request.round, request.labels) == ("in_review", 2, {"tier": "prod"})
    assert real_site.approve(deployment).state == "applied"
