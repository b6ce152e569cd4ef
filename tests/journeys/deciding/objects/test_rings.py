"""A set that is applied in rings: what is approved waits for its turn, and what failed takes the others back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from approvals.gate import reader
from approvals.models import BundleDeployment, Revision
from approvals.steps.rollouts import look_at_rollout
from tests.support.approvals import world
from tests.support.approvals.rollouts import asked, ordered, set_state
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.registry import Registry

RESTORE = {"onFailure": "RestorePrevious"}


def prepare(site: DeployedSite, registry: Registry, name: str, version: str = "1", **options: Any) -> BundleDeployment:
    image = bundles.image(registry, f"{name}-{version}", bundles.app(name, version), version)
    return site.prepare(name, image, **options)


def test_what_is_approved_waits_until_the_ring_before_is_healthy_and_has_soaked(
    sandbox_site: DeployedSite, registry: Registry
) -> None:
    site, moon = sandbox_site, world.cluster("moon")
    first = asked(moon, "canary", site.people["rita"])
    deployment = prepare(site, registry, "after")
    rings = [{"name": "canary", "soakMinutes": 60}, {"name": "rest"}]
    row = ordered("spring", rings, (first, 0), (site.latest(deployment), 1))
    request = site.approve(deployment)
    assert (request.state, request.problem_code, request.awaits) == ("approved", "waits-for-ring", "ring")
    assert "ring rest of set spring waits for ring canary: 0 of 1 member healthy, 1 not approved" in request.problem
    assert "moon" not in request.problem
    assert site.live("ConfigMap", "after") is None
    # What people proved does not age while it waits.
    assert request.held_from is not None
    now = datetime.now(UTC)
    set_state(first, "applied", health="Current", since=now)
    site.work(request)
    assert (request.state, request.held_until) == ("approved", now + timedelta(hours=1))
    assert f"its soak time ends at {now + timedelta(hours=1):%Y-%m-%d %H:%M} UTC" in request.problem
    with time_machine.travel(now + timedelta(minutes=61)):
        look_at_rollout(row.pk)
        site.work(request)
    assert (request.state, request.problem) == ("applied", "")
    assert site.live("ConfigMap", "after")["data"]["version"] == "1"


def test_one_that_fails_while_another_is_checked_stops_it(
    sandbox_site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are approved, so both are looked at together: the plan of a large one takes minutes."""
    site, plan = sandbox_site, reader.plan_facts
    quay, jetty = asked(site.cluster, "quay", site.people["rita"]), prepare(site, registry, "jetty")
    set_state(quay, "approved")
    ordered("spring", [{"name": "all"}], (quay, 0), (site.latest(jetty), 0))

    def plan_while_quay_fails(*about: Any) -> Any:
        set_state(quay, "failed")
        return plan(*about)

    monkeypatch.setattr(reader, "plan_facts", plan_while_quay_fails)
    stopped = site.approve(jetty)
    assert (stopped.state, stopped.problem_code) == ("approved", "waits-for-ring")
    assert site.live("ConfigMap", "jetty") is None


def test_one_that_fails_stops_the_others_of_its_cluster_and_takes_them_back(
    sandbox_site: DeployedSite, registry: Registry
) -> None:
    site = sandbox_site
    site.approve(prepare(site, registry, "dock", **RESTORE))
    dock, pier = prepare(site, registry, "dock", "2", **RESTORE), prepare(site, registry, "pier", **RESTORE)
    quay = asked(site.cluster, "quay", site.people["rita"], **RESTORE)
    assert site.approve(dock).state == "applied"
    row = ordered(
        "spring",
        [{"name": "all"}],
        *((one, 0) for one in (quay, site.latest(dock), site.latest(pier))),
        on_failure="PutBack",
    )
    site.look_after(dock)
    set_state(quay, "failed")
    stopped = site.approve(pier)
    assert (stopped.state, stopped.problem_code) == ("approved", "waits-for-ring")
    assert "quay of set spring failed on this cluster, so the others stop here" in stopped.problem
    # Healthy or not: the set is put back as a whole.
    BundleDeployment.objects.filter(pk=dock.pk).update(health="Current")
    Revision.objects.filter(request=site.latest(dock)).update(healthy_at=datetime.now(UTC))
    look_at_rollout(row.pk)
    assert site.latest(dock).state == "restoring"
    back = site.after_work(dock)
    assert (back.state, back.problem_code) == ("failed", "set-put-back")
    assert back.problem.endswith("revision 1 was restored")
    assert site.live("ConfigMap", "dock")["data"]["version"] == "1"
