"""An apply whose worker dies while it waits goes on where it was: what is written is not written again, and its time counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.utils import timezone

from approvals.models import BundleDeployment, Request
from approvals.steps.advance import Advance, advance
from approvals.steps.records import notes
from approvals.steps.records.notes import Notes
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite, look_alone
from tests.support.patience import scaled
from tests.support.servers.registry import Registry

# What the Deployment is waited for by: somebody labels it.
SETTLED = {"fieldValue": {"path": "metadata.labels.settled", "value": "yes"}}
PHASES = ["ServiceAccount", "ConfigMap", "Deployment", "HorizontalPodAutoscaler"]


class Killed(BaseException):
    """kill -9: from then on this worker writes nothing down."""


@pytest.fixture
def wait(site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Wait:
    monkeypatch.setattr(notes, "claim_seconds", lambda: 2.0)
    return Wait(site, registry, monkeypatch)


class Wait:
    """A bundle of four phases, the last of which waits for the Deployment of the third."""

    def __init__(self, site: DeployedSite, registry: Registry, monkeypatch: pytest.MonkeyPatch):
        self.site = site
        self.name = f"{site.namespace}-goes-on"
        self.written: list[str] = []
        self._registry = registry
        self._monkeypatch = monkeypatch
        self._count_writes()

    def submit_spec(self, version: str, **options: Any) -> BundleDeployment:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name}
        scaler = {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": self.name, "labels": {"version": version}},
            "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3},
        }
        files = {**bundles.app(self.name, version), "manifests/09.yaml": yaml.safe_dump(scaler).encode()}
        checks = [{"apiVersion": "apps/v1", "kind": "Deployment", **SETTLED}]
        source = bundles.image(self._registry, self.name, files, version)
        return self.site.prepare(self.name, source, healthChecks=checks, **options)

    def settle(self, value: str = "yes") -> None:
        self.site.edit(
            self.site.ref("Deployment", self.name),
            lambda live: live["metadata"].setdefault("labels", {}).update(settled=value),
        )

    def is_killed(self, deployment: BundleDeployment, *, at_seconds: float) -> Request:
        """Approved, applied until it waits, and killed then, once so much time is counted in the row."""
        request = self.site.agree(deployment)
        write = Notes.write

        def pulse(one: Notes, check: Callable[[], None]) -> None:
            write(one)
            request.refresh_from_db()
            if request.worked_seconds >= at_seconds:
                raise Killed

        with self._monkeypatch.context() as patch:
            patch.setattr(Notes, "pulse", pulse)
            patch.setattr(Notes, "keep", lambda one, outcomes: [one.take(outcome) for outcome in outcomes])
            with pytest.raises(Killed):
                advance(request.pk)
        # As a dead worker leaves it: the claim is nobody's to give back, and lapses.
        past = timezone.now() - timedelta(hours=1)
        Request.objects.filter(pk=request.pk).update(claimed_by="dead", claimed_until=past)
        request.refresh_from_db()
        assert (request.state, request.worked_seconds >= at_seconds) == ("applying", True)
        return request

    def goes_on(self, request: Request) -> Request:
        look_alone(Advance(request.pk))
        request.refresh_from_db()
        return request

    def versions(self) -> dict[str, str]:
        """The resourceVersion of each object by its kind; none of those that are not there."""
        refs = [
            self.site.ref("ServiceAccount", self.name),
            self.site.ref("ConfigMap", self.name),
            ObjectRef("autoscaling", "v2", "HorizontalPodAutoscaler", self.site.namespace, self.name),
        ]
        found = {ref.kind: self.site.api.get(ref) for ref in refs}
        return {kind: live["metadata"]["resourceVersion"] for kind, live in found.items() if live}

    def _count_writes(self) -> None:
        apply = Api.apply

        def counted(api: Api, obj: Any, **named: Any) -> Any:
            applied = apply(api, obj, **named)
            if obj["metadata"]["name"] == self.name and not named.get("dry_run") and "BundleDep" not in obj["kind"]:
                self.written.append(obj["kind"])
            return applied

        self._monkeypatch.setattr(Api, "apply", counted)


@pytest.mark.proof
def test_who_takes_up_an_apply_that_waited_writes_only_what_comes_after(wait: Wait) -> None:
    request = wait.is_killed(wait.submit_spec("1"), at_seconds=2.0)
    assert wait.written == PHASES[:3]
    assert request.phase.startswith("3 of 4: "), "known while nobody works on it"
    before, waited = wait.versions(), request.worked_seconds
    wait.settle()
    request = wait.goes_on(request)
    assert (request.state, request.phase) == ("applied", ""), request.problem
    assert wait.written == PHASES, "each was written once, whoever did it"
    assert {kind: wait.versions()[kind] for kind in before} == before
    assert request.worked_seconds >= waited
    assert request.outcomes.filter(step="apply").count() == len(PHASES)


@pytest.mark.thorough
def test_of_a_change_as_well(wait: Wait) -> None:
    deployment = wait.submit_spec("1")
    request = wait.is_killed(deployment, at_seconds=0.0)
    wait.settle()
    assert wait.goes_on(request).state == "applied"
    wait.settle("no")
    wait.written.clear()
    request = wait.is_killed(wait.submit_spec("2"), at_seconds=1.0)
    assert wait.written == PHASES[1:3], "the ServiceAccount is the same"
    before = wait.versions()
    wait.settle()
    request = wait.goes_on(request)
    assert request.state == "applied", request.problem
    assert wait.written == PHASES[1:]
    assert {kind: wait.versions()[kind] for kind in PHASES[:2]} == {kind: before[kind] for kind in PHASES[:2]}


@pytest.mark.thorough
def test_the_seconds_that_the_dead_worker_waited_are_of_the_same_deadline(wait: Wait) -> None:
    request = wait.is_killed(wait.submit_spec("1", progressDeadlineMinutes=10), at_seconds=1.0)
    Request.objects.filter(pk=request.pk).update(worked_seconds=598.0)
    began = timezone.now()
    request = wait.goes_on(request)
    assert (request.state, request.problem_code) == ("failed", "apply-failed")
    assert f"Deployment.apps {wait.site.namespace}/{wait.name} is InProgress" in request.problem
    assert timezone.now() - began < timedelta(seconds=scaled(60)), "of ten minutes, two seconds were left"
    assert "HorizontalPodAutoscaler" not in wait.written
