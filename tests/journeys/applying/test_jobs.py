"""A Job, whose template cannot change: replaced as planned and acknowledged, and its pods go with it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from approvals import services
from approvals.errors import Unacknowledged
from approvals.models import Outcome, Request
from provisioner.values import ObjectRef
from tests.support.journeys.contents import bundles
from tests.support.journeys.deployed_site import DeployedSite
from tests.support.kubernetes.live import wait_until
from tests.support.servers.registry import Registry

NAME = "migrate"


def job(version: str) -> dict[str, Any]:
    container = {"name": NAME, "image": f"registry.example.com/{NAME}:{version}"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    meta = {"name": NAME, "annotations": {"version": version}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}}


def ask_for(site: DeployedSite, registry: Registry, wished: dict[str, Any]) -> Request:
    name = f"{site.namespace}-{NAME}"  # BundleDeployments have no namespace
    files = {"manifests/job.yaml": yaml.safe_dump(wished).encode()}
    deployment = site.prepare(name, bundles.image(registry, name, files))
    return site.latest(deployment)


def live(site: DeployedSite) -> Any:
    return site.api.get(ObjectRef("batch", "v1", "Job", site.namespace, NAME))


def pods_of(site: DeployedSite, uid: str) -> list[str]:
    found = site.get("pods", "-n", site.namespace, "-l", f"batch.kubernetes.io/controller-uid={uid}")
    return [pod["spec"]["containers"][0]["image"] for pod in found["items"]]


def wait_for_pods(site: DeployedSite, uid: str, count: int) -> None:
    wait_until(lambda: len(pods_of(site, uid)) == count, f"{count} pods")


def test_a_job_with_another_template_is_replaced_once_somebody_acknowledged_that(
    real_site: DeployedSite, registry: Registry
) -> None:
    first = ask_for(real_site, registry, job("1"))
    assert real_site.approve(first.deployment).state == "applied"
    old = live(real_site)["metadata"]["uid"]
    wait_for_pods(real_site, old, 1)

    second = ask_for(real_site, registry, job("2"))
    (planned,) = second.reports.get().body["plan"]["actions"]
    assert (planned["action"], planned["ref"]["kind"], planned["problem"]) == ("replace", "Job", "")
    words = f"replace Job.batch {real_site.namespace}/{NAME}"
    assert services.to_acknowledge(second) == [words]
    with pytest.raises(Unacknowledged, match=words):
        real_site.agree(second.deployment, acknowledges=[])
    real_site.work()
    assert live(real_site)["metadata"]["uid"] == old

    applied = real_site.approve(second.deployment)
    assert applied.state == "applied", applied.problem
    outcome = Outcome.objects.get(request=applied)
    assert (outcome.action, outcome.state) == ("replace", "done")
    made = live(real_site)
    assert made["metadata"]["uid"] != old
    assert made["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":2")
    wait_for_pods(real_site, old, 0)
    wait_for_pods(real_site, made["metadata"]["uid"], 1)


def test_a_job_that_is_the_same_is_left_to_run(real_site: DeployedSite, registry: Registry) -> None:
    first = ask_for(real_site, registry, job("1"))
    real_site.approve(first.deployment)
    before = live(real_site)["metadata"]["uid"]
    changed = job("1")
    changed["metadata"]["annotations"]["note"] = "said later"
    second = ask_for(real_site, registry, changed)
    (planned,) = second.reports.get().body["plan"]["actions"]
    assert planned["action"] == "update"
    assert real_site.approve(second.deployment).state == "applied"
    assert live(real_site)["metadata"]["uid"] == before
    assert live(real_site)["metadata"]["annotations"]["note"] == "said later"
