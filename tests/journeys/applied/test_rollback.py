"""Back to an earlier revision on a real API server, while the source is dead."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.utils import timezone

from approvals import tasks
from approvals.models import Content, Revision
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.servers.registry import Registry


def settings_of(site: DeployedSite, name: str) -> dict[str, str]:
    live = site.live("ConfigMap", name)
    return dict(live["data"])


@pytest.mark.proof
def test_an_earlier_revision_comes_back_from_the_store_reviewed_and_without_its_source(
    real_site: DeployedSite, registry: Registry, settings: Any
) -> None:
    deployment = real_site.prepare("tide", bundles.image(registry, "tide", bundles.app("tide", "1"), "1"))
    real_site.approve(deployment)
    before = settings_of(real_site, "tide")
    real_site.prepare("tide", bundles.image(registry, "tide", bundles.app("tide", "2", replicas=2), "2"))
    real_site.approve(deployment)
    assert settings_of(real_site, "tide") != before

    settings.PRATIQUE = {**settings.PRATIQUE, "ALLOWED_NETWORKS": []}  # the registry cannot be reached any more
    deployment.refresh_from_db()
    real_site.roll_back(deployment)
    request = real_site.after_work(deployment)
    assert (request.purpose, request.state) == ("rollback", "in_review"), request.problem
    assert request.content == Revision.objects.get(deployment=deployment, number=1).content
    report = request.reports.get()
    assert report.actions["update"] >= 1
    assert real_site.approve(deployment).state == "applied", real_site.latest(deployment).problem
    assert settings_of(real_site, "tide") == before
    states = list(Revision.objects.filter(deployment=deployment).order_by("number").values_list("number", "state"))
    assert states == [(1, "replaced"), (2, "replaced"), (3, "active")]

    real_site.look_after(deployment)
    conditions = {it["type"]: it for it in real_site.get("bd", "tide")["status"]["conditions"]}
    assert (conditions["UpToDate"]["status"], conditions["UpToDate"]["reason"]) == ("False", "RolledBack")
    assert "back to revision 1" in conditions["UpToDate"]["message"]
    assert real_site.get("bdr", "tide-3")["spec"]["toRevision"] == 1

    real_site.prepare("tide", bundles.image(registry, "tide", bundles.app("tide", "3"), "3"))
    assert (real_site.latest(deployment).number, real_site.latest(deployment).problem_code) == (4, "forbidden-address")


@pytest.mark.thorough
def test_the_report_on_the_way_back_names_the_data_that_went_and_the_job_that_runs_again(
    site: DeployedSite, registry: Registry
) -> None:
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example.com/migrate"}]}
    kept = [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "hold"}, "spec": size},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "load"}, "spec": {"template": {"spec": pod}}},
    ]
    with_data = bundles.app("cargo", "1") | {"manifests/50.yaml": yaml.safe_dump_all(kept).encode()}
    deployment = site.applied("cargo", bundles.image(registry, "cargo", with_data, "1"))
    site.prepare("cargo", bundles.image(registry, "cargo", bundles.app("cargo", "2"), "2"))
    assert site.approve(deployment).state == "applied", site.latest(deployment).problem
    deployment.refresh_from_db()

    site.roll_back(deployment)
    request = site.after_work(deployment)
    assert (request.purpose, request.state) == ("rollback", "in_review"), request.problem
    said = {one.rule: one.message for one in request.reports.get().findings.filter(rule__startswith="HIS")}
    assert said == {
        "HIS-01": f"PersistentVolumeClaim {site.namespace}/hold was deleted with revision 2: it is there without the "
        "data that it held",
        "HIS-02": f"Job {site.namespace}/load runs again, as it did when revision 1 was applied",
    }
    forward = Revision.objects.get(deployment=deployment, number=2).request.reports.get()
    assert not forward.findings.filter(rule__startswith="HIS").exists()


@pytest.mark.thorough
def test_what_is_removed_after_a_time_takes_nothing_from_what_runs(
    real_site: DeployedSite, registry: Registry, settings: Any
) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "KEEP_DAYS": 30}
    name = f"{real_site.namespace}-kept"
    for version in ("1", "2", "3"):
        deployment = real_site.applied(name, bundles.image(registry, "ebb", bundles.app("ebb", version), version))
    long_ago = timezone.now() - timedelta(days=31)
    deployment.requests.update(settled_at=long_ago)
    Content.objects.update(used_at=long_ago)
    tasks.clear()
    assert [one.number for one in deployment.requests.exclude(cleared_at=None)] == [1]
    assert Revision.objects.get(deployment=deployment, number=1).content.removed_at is not None

    real_site.look_after(deployment)
    real_site.edit(real_site.ref("ConfigMap", "ebb"), lambda live: live["data"].update(a="x"))
    real_site.roll_back(deployment, 2)
    real_site.work()
    assert real_site.approve(deployment).state == "applied", real_site.latest(deployment).problem
    real_site.prepare(name, bundles.image(registry, "ebb", bundles.app("ebb", "1"), "1"))
    assert real_site.approve(deployment).state == "applied", "the bytes that were removed are fetched again"
