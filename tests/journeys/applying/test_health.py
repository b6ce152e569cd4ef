"""From the wish to the words: checks of a deployment's own and a missed deadline, on a real API server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from approvals.models import Revision
from approvals.steps.records.notes import Notes
from provisioner.cluster.apply.waits import Patience
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.journeys.moments import look_until
from tests.support.kubernetes.live import wait_until
from tests.support.patience import scaled
from tests.support.servers.registry import Registry


def checks(*assertions: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"apiVersion": "apps/v1", "kind": "Deployment", **assertion} for assertion in assertions]


def healthy(site: DeployedSite, name: str) -> tuple[str, str, str]:
    """Status, reason and message of the condition that the cluster shows."""
    (one,) = [it for it in site.get("bd", name)["status"]["conditions"] if it["type"] == "Healthy"]
    return one["status"], one["reason"], one["message"]


def test_checks_that_cannot_be_read_stop_the_request_before_anything_else(
    real_site: DeployedSite, registry: Registry
) -> None:
    wrong = checks({"cel": {"current": "status.readyReplicas =="}}, {"cel": {"current": "1 + 1"}})
    source = bundles.image(registry, "probe", bundles.app("probe", "1"))
    deployment = real_site.prepare("probe", source, healthChecks=wrong)
    request = real_site.latest(deployment)
    assert (request.state, request.problem_code) == ("failed", "bad-health-check")
    assert "spec.healthChecks[0]: cel.current: " in request.problem
    assert "spec.healthChecks[1]: cel.current: gives int; expected bool" in request.problem
    deployment.refresh_from_db()
    assert deployment.problem == request.problem


def test_a_deployment_is_healthy_only_by_its_own_checks_too(real_site: DeployedSite, registry: Registry) -> None:
    asked = checks(
        {"condition": {"type": "Available"}},
        {"fieldValue": {"path": "status.readyReplicas", "value": 1}},
        {"cel": {"current": "has(metadata.labels.checked) && metadata.labels.checked == 'yes'"}},
    )
    deployment = real_site.prepare("own", bundles.image(registry, "own", bundles.app("own", "1")), healthChecks=asked)
    real_site.approve(deployment)
    real_site.ctl("wait", "-n", real_site.namespace, "--for=condition=Available", "deployment/own", "--timeout=60s")
    words = look_until(real_site, deployment, "its CEL check current is not true yet")
    assert f"Deployment.apps {real_site.namespace}/own: its CEL check current is not true yet" in words
    assert healthy(real_site, "own")[:2] == ("False", "InProgress")
    real_site.ctl("label", "-n", real_site.namespace, "deployment/own", "checked=yes")
    assert look_until(real_site, deployment, "3 of 3") == "3 of 3 objects are ready"
    assert healthy(real_site, "own")[:2] == ("True", "Current")


@pytest.mark.proof
def test_what_a_check_waits_for_holds_later_phases_and_is_said_meanwhile(
    site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Patience, "left", 2.0)  # of a wait; the writes have all of the time
    gate = {"apiVersion": "v1", "kind": "ConfigMap", "fieldValue": {"path": "data.version", "value": "2"}}
    source = bundles.image(registry, "gated", bundles.app("gated", "1"))
    deployment = site.prepare("gated", source, healthChecks=[gate])
    with CaptureQueriesContext(connection) as queries:
        request = site.approve(deployment)
    place = f"{site.namespace}/gated"
    said = f"waiting until these are ready before the next phase: ConfigMap {place}"
    assert any(said in query["sql"] for query in queries)
    assert (request.state, request.problem_code) == ("failed", "apply-failed")
    assert f"phase configuration: ConfigMap {place} is InProgress" in request.problem
    assert request.revision.message == request.problem
    assert site.live("Deployment", "gated") is None


def test_the_claim_is_held_through_a_wait_and_a_pause_ends_it(
    site: DeployedSite, registry: Registry, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "APPLY_MINUTES": 10, "CLAIM_SECONDS": round(scaled(4))}
    gate = {"apiVersion": "v1", "kind": "ConfigMap", "fieldValue": {"path": "data.version", "value": "2"}}
    source = bundles.image(registry, "patient", bundles.app("patient", "1"))
    deployment = site.prepare("patient", source, healthChecks=[gate])
    pulse, pulses = Notes.pulse, 0

    def pausing(notes: Notes, check: Callable[[], None]) -> None:
        nonlocal pulses
        pulses += 1
        if pulses == 4:
            site.pause(deployment, "wait")
        pulse(notes, check)

    monkeypatch.setattr(Notes, "pulse", pausing)
    with CaptureQueriesContext(connection) as queries:
        request = site.approve(deployment)
    assert (request.state, "paused by rita: wait" in request.problem) == ("applying", True)
    renewed = [it for it in queries if it["sql"].startswith('UPDATE "approvals_request" SET "claimed_until"')]
    assert len(renewed) >= 4
    assert request.revision.finished_at is None


def test_a_missed_deadline_is_a_reason_of_its_own_and_the_schedulers_words_stay_with_the_object(
    real_site: DeployedSite, registry: Registry
) -> None:
    files = bundles.app("stuck", "1")
    obj = yaml.safe_load(files["manifests/02.yaml"])
    obj["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "of-gold"}
    files["manifests/02.yaml"] = yaml.safe_dump(obj).encode()
    source = bundles.image(registry, "stuck", files)
    deployment = real_site.prepare("stuck", source, progressDeadlineMinutes=10)
    real_site.approve(deployment)

    def said() -> str:
        return str(real_site.look_after(deployment).inventory.get(kind="Deployment").health_words)

    wait_until(lambda: "Unschedulable: 0/1 nodes are available" in said())
    waiting = f"Deployment.apps {real_site.namespace}/stuck: "
    assert waiting in deployment.health_message
    assert "Unschedulable" not in deployment.health_message
    assert healthy(real_site, "stuck")[:2] == ("False", "InProgress")
    Revision.objects.filter(deployment=deployment).update(finished_at=timezone.now() - timedelta(minutes=11))
    real_site.look_after(deployment)
    status, reason, message = healthy(real_site, "stuck")
    assert (status, reason) == ("False", "ProgressDeadlineExceeded")
    assert message.startswith(
        "ProgressDeadlineExceeded: revision 1 was not healthy within 10 minutes after it was applied"
    )
    assert waiting in message
    assert "Unschedulable" not in message
    assert "Unschedulable: 0/1 nodes are available" in said()
    assert real_site.latest(deployment).state == "applied"
