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
from tests.support.journeys.station import SEEDER, Station, binding, group
from tests.support.servers.registry import Registry


def guarded(here: Station, registry: Registry, name: str, expression: str = "rules.size() == 0") -> BundleDeployment:
    """A deployment in review whose findings a guard does not like."""
    services.save_policy(
        by=acting(here.people["alice"]),
        name="calm",
        kind="guard",
        mode="enforce",
        cluster=here.cluster,
        names=[name],
        labels={},
        expression=expression,
        message="",
        is_active=True,
        via="browser",
    )
    return here.prepare(name, bundles.image(registry, name, bundles.app(name, "1")))


def waive_all(here: Station, deployment: BundleDeployment) -> Request:
    request = here.latest(deployment)
    found = request.reports.get(round=request.round).body["findings"]
    assert found
    assert [one for one in found if why_not(one)] == []
    waives = [services.Waiver(one["fingerprint"], "as in the last release") for one in found]
    return here.approve(deployment, channel="rest", waives=waives)


def test_a_waiver_opens_a_guard_only_while_its_author_may_override(real_station: Station, registry: Registry) -> None:
    alice = Identity("alice", ("platform", real_station.namespace))
    real_station.people["alice"].kubernetes_identities.update(groups=[*alice.groups])
    override = binding(f"{real_station.namespace}-override", "pratique-override", group(real_station.namespace))
    deployment = guarded(real_station, registry, "guarded")
    with pytest.raises(NotAllowed, match="needs the verb override"):
        waive_all(real_station, deployment)
    real_station.api.apply(override, field_manager=SEEDER)
    real_station.until_may(alice, "override", "bundledeployments", "core.rukpak.io")
    real_station.pause(deployment)
    request = waive_all(real_station, deployment)
    assert (request.state, request.problem_code) == ("approved", "paused"), request.problem
    real_station.look_after(deployment)
    shown = real_station.get("bdr", "guarded-1")["status"]["reviewsSummary"]
    assert shown == {"approvals": 1, "waivers": len(request.reviews.get().waives)}

    real_station.api.delete(ObjectRef.of(override))
    real_station.until_may(alice, "override", "bundledeployments", "core.rukpak.io", is_allowed=False)
    real_station.resume(deployment)
    real_station.work(request)
    assert (request.state, request.problem_code) == ("approved", "waiver-lost")
    assert "what alice accepted no longer counts" in request.problem
    assert real_station.live("Deployment", "guarded") is None

    real_station.api.apply(override, field_manager=SEEDER)
    real_station.until_may(alice, "override", "bundledeployments", "core.rukpak.io")
    cache.clear()
    Request.objects.update(look_again_at=None)
    real_station.work(request)
    assert request.state == "applied", request.problem


def test_a_guard_that_is_changed_after_the_approval_stops_the_apply(real_station: Station, registry: Registry) -> None:
    deployment = guarded(real_station, registry, "thawed", "true")
    real_station.pause(deployment)
    real_station.approve(deployment)
    Policy.objects.update(expression="false", version=2, message="frozen until Monday")
    real_station.resume(deployment)
    request = real_station.after_work(deployment)
    assert (request.state, request.problem_code) == ("approved", "guard-holds")
    assert "frozen until Monday" in request.problem
    assert real_station.live("Deployment", "thawed") is None


def test_S14_a_label_put_on_with_kubectl_is_reported_and_reviewed_again(
    real_station: Station, registry: Registry
) -> None:
    deployment = guarded(real_station, registry, "labelled", "true")
    real_station.ctl("label", "bd", "labelled", "tier=prod")
    pivots.see(cluster=real_station.cluster, obj=real_station.get("bd", "labelled"), writer=None)
    request = real_station.after_work(deployment)
    assert (request.state, request.round, request.labels) == ("in_review", 2, {"tier": "prod"})
    assert real_station.approve(deployment).state == "applied"
