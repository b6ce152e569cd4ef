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
from tests.support.journeys.station import Station
from tests.support.kubernetes.live import wait_until
from tests.support.servers.registry import Registry

NAME = "migrate"


def job(version: str) -> dict[str, Any]:
    container = {"name": NAME, "image": f"registry.example.com/{NAME}:{version}"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    meta = {"name": NAME, "annotations": {"version": version}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": template}}


def ask_for(station: Station, registry: Registry, wished: dict[str, Any]) -> Request:
    name = f"{station.namespace}-{NAME}"  # BundleDeployments have no namespace
    files = {"manifests/job.yaml": yaml.safe_dump(wished).encode()}
    deployment = station.prepare(name, bundles.image(registry, name, files))
    return station.latest(deployment)


def live(station: Station) -> Any:
    return station.api.get(ObjectRef("batch", "v1", "Job", station.namespace, NAME))


def pods_of(station: Station, uid: str) -> list[str]:
    found = station.get("pods", "-n", station.namespace, "-l", f"batch.kubernetes.io/controller-uid={uid}")
    return [pod["spec"]["containers"][0]["image"] for pod in found["items"]]


def wait_for_pods(station: Station, uid: str, count: int) -> None:
    wait_until(lambda: len(pods_of(station, uid)) == count, f"{count} pods")


def test_a_job_with_another_template_is_replaced_once_somebody_acknowledged_that(
    real_station: Station, registry: Registry
) -> None:
    first = ask_for(real_station, registry, job("1"))
    assert real_station.approve(first.deployment).state == "applied"
    old = live(real_station)["metadata"]["uid"]
    wait_for_pods(real_station, old, 1)

    second = ask_for(real_station, registry, job("2"))
    (planned,) = second.reports.get().body["plan"]["actions"]
    assert (planned["action"], planned["ref"]["kind"], planned["problem"]) == ("replace", "Job", "")
    words = f"replace Job.batch {real_station.namespace}/{NAME}"
    assert services.to_acknowledge(second) == [words]
    with pytest.raises(Unacknowledged, match=words):
        real_station.agree(second.deployment, acknowledges=[])
    real_station.work()
    assert live(real_station)["metadata"]["uid"] == old

    applied = real_station.approve(second.deployment)
    assert applied.state == "applied", applied.problem
    outcome = Outcome.objects.get(request=applied)
    assert (outcome.action, outcome.state) == ("replace", "done")
    made = live(real_station)
    assert made["metadata"]["uid"] != old
    assert made["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":2")
    wait_for_pods(real_station, old, 0)
    wait_for_pods(real_station, made["metadata"]["uid"], 1)


def test_a_job_that_is_the_same_is_left_to_run(real_station: Station, registry: Registry) -> None:
    first = ask_for(real_station, registry, job("1"))
    real_station.approve(first.deployment)
    before = live(real_station)["metadata"]["uid"]
    changed = job("1")
    changed["metadata"]["annotations"]["note"] = "said later"
    second = ask_for(real_station, registry, changed)
    (planned,) = second.reports.get().body["plan"]["actions"]
    assert planned["action"] == "update"
    assert real_station.approve(second.deployment).state == "applied"
    assert live(real_station)["metadata"]["uid"] == before
    assert live(real_station)["metadata"]["annotations"]["note"] == "said later"
