"""Change windows hold what is approved, release it by the clock, and never keep a failed apply from being put back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from approvals.lifecycle import State
from approvals.models import AuditEntry, BundleDeployment, KubernetesIdentity
from provisioner.api_groups import OWN_GROUP
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.moments import after_the_first
from tests.support.servers.registry import Registry

Written = list[tuple[DeployedSite, ObjectRef]]


@pytest.fixture
def written() -> Iterator[Written]:
    """The windows of a test: others share the cluster."""
    found: Written = []
    yield found
    for site, ref in found:
        site.api.delete(ref)


def write(site: DeployedSite, written: Written, name: str, **spec: Any) -> None:
    """A Deny over the deployment of this name."""
    about = {"name": f"{site.namespace}-{name}"}
    whole = {"type": "Deny", "selector": {"names": [name]}, **spec}
    obj = {"apiVersion": f"{OWN_GROUP}/v1alpha2", "kind": "ChangeWindow", "metadata": about, "spec": whole}
    site.api.apply(obj, field_manager="somebody")
    written.append((site, ObjectRef.of(obj)))


def local(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}"


def weekend(now: datetime) -> dict[str, str]:
    """One that began an hour ago, and lasts until the day after tomorrow."""
    return {"dtstart": local(now - timedelta(hours=1)), "timeZone": "UTC", "rrule": "FREQ=WEEKLY", "duration": "2d12h"}


def prove_by_token(site: DeployedSite) -> None:
    """People whose groups age, as those of a mapping do not."""
    proved = KubernetesIdentity.Authenticator.TOKEN_REVIEW
    KubernetesIdentity.objects.filter(cluster=site.cluster).update(authenticator=proved, groups_seen_at=timezone.now())


def prepare(site: DeployedSite, registry: Registry, name: str, **options: Any) -> BundleDeployment:
    return site.prepare(name, bundles.image(registry, name, bundles.app(name, "1"), "1"), **options)


@pytest.mark.proof
def test_a_weekend_freeze_holds_what_is_approved_and_releases_it_when_it_ends(
    site: DeployedSite, registry: Registry, written: Written
) -> None:
    """Nobody signs in meanwhile: what they proved on Friday counts on Monday."""
    now, name = datetime.now(UTC), "friday"
    prove_by_token(site)
    write(site, written, name, description="no changes on weekends", **weekend(now))
    deployment = prepare(site, registry, name)
    request = site.approve(deployment)
    assert (request.state, request.problem_code, request.awaits) == ("approved", "outside-window", "window")
    opens_at = now.replace(microsecond=0) + timedelta(hours=59)
    assert "holds it until" in request.problem
    assert "(no changes on weekends)" in request.problem
    assert f"it can continue from {opens_at:%Y-%m-%d %H:%M} UTC" in request.problem
    assert request.expires_at == opens_at + timedelta(hours=72)
    assert site.live("ConfigMap", name) is None
    with time_machine.travel(opens_at + timedelta(minutes=1)):
        site.work(request)
        assert (request.state, request.problem) == ("applied", "")
    assert site.live("ConfigMap", name)["data"]["version"] == "1"


def test_who_lost_the_right_meanwhile_does_not_count_and_the_usual_hours_run_after_the_opening(
    sandbox_site: DeployedSite, registry: Registry, written: Written
) -> None:
    site, now, name = sandbox_site, datetime.now(UTC), "monday"
    prove_by_token(site)
    write(site, written, name, **weekend(now))
    request = site.approve(prepare(site, registry, name))
    KubernetesIdentity.objects.filter(user=site.people["alice"]).update(groups=["developers"])
    opens_at = now + timedelta(hours=59, minutes=1)
    with time_machine.travel(opens_at):
        site.work(request)
        assert (request.state, request.problem_code) == ("approved", "no-longer-approved")
    KubernetesIdentity.objects.filter(user=site.people["alice"]).update(groups=["platform"])
    with time_machine.travel(opens_at + timedelta(hours=13)):
        site.work(request)
        assert "they must sign in again" in request.problem
    with time_machine.travel(opens_at + timedelta(hours=73)):
        site.work(request)
        assert request.state == State.EXPIRED


def test_a_stop_without_an_end_keeps_a_request_for_31_days_and_no_longer(
    sandbox_site: DeployedSite, registry: Registry, written: Written
) -> None:
    site = sandbox_site
    request = site.approve(prepare(site, registry, "stopped"))
    assert request.state == "applied"
    write(site, written, "stopped", description="incident 7")
    deployment = site.prepare("stopped", bundles.image(registry, "stopped", bundles.app("stopped", "2"), "2"))
    request = site.approve(deployment)
    assert "holds it without an end (incident 7); it cannot continue within a year" in request.problem
    with time_machine.travel(datetime.now(UTC) + timedelta(days=30)):
        site.work(request)
        assert (request.state, request.problem_code) == ("approved", "outside-window")
    with time_machine.travel(datetime.now(UTC) + timedelta(days=31, minutes=1)):
        site.work(request)
        assert request.state == State.EXPIRED


def test_it_is_applied_at_the_time_that_was_chosen_with_the_approval(site: DeployedSite, registry: Registry) -> None:
    name = "three"
    three = (datetime.now(UTC) + timedelta(days=1)).replace(hour=3, minute=0, second=0, microsecond=0)
    deployment = prepare(site, registry, name)
    request = site.approve(deployment, apply_at=three)
    assert (request.state, request.problem_code, request.apply_at_by) == ("approved", "apply-later", "alice")
    assert request.problem == f"it is to be applied at {three:%Y-%m-%d %H:%M} UTC"
    assert AuditEntry.objects.filter(request_uid=str(request.uid), verb="request.apply_at").count() == 1
    with time_machine.travel(three + timedelta(seconds=1)):
        site.work(request)
        assert request.state == "applied"


@pytest.mark.parametrize(("on_close", "state"), [("Finish", "applied"), ("StopBetweenPhases", "applying")])
def test_a_window_that_closes_midway(
    sandbox_site: DeployedSite,
    registry: Registry,
    written: Written,
    monkeypatch: pytest.MonkeyPatch,
    on_close: str,
    state: str,
) -> None:
    site, name = sandbox_site, f"midway-{on_close.lower()}"
    deployment = prepare(site, registry, name)
    with monkeypatch.context() as patch:
        after_the_first(patch, lambda: write(site, written, name, onClose=on_close))
        request = site.approve(deployment)
    assert request.state == state
    if state == "applying":
        assert (request.problem_code, request.awaits) == ("outside-window", "window")
        site.api.delete(written.pop()[1])
        site.work(request)
        assert request.state == "applied"


def test_what_nobody_can_read_holds_what_it_might_select(
    sandbox_site: DeployedSite, registry: Registry, written: Written
) -> None:
    site = sandbox_site
    write(site, written, "unread", dtstart="2026-12-04T18:00:00", timeZone="Mars/Olympus")
    request = site.approve(prepare(site, registry, "unread"))
    assert request.problem_code == "window-unreadable"
    assert "so the requests that it might select wait: spec.timeZone is 'Mars/Olympus'" in request.problem
    assert site.approve(prepare(site, registry, "another")).state == "applied"
