"""The manifests that are shipped have every process tell its metrics."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from approvals.project import configuration
from tests.approvals.metrics.conftest import TOKEN
from tests.support.folders import ROOT

DEPLOY = ROOT / "deploy"
SERVICES = {"web", "worker", "beat", "watch"}
WORKLOADS: list[dict[str, Any]] = [
    one
    for one in yaml.safe_load_all((DEPLOY / "kubernetes/pratique.yaml").read_text())
    if one and one["kind"] == "Deployment"
]


@pytest.mark.parametrize("workload", WORKLOADS, ids=[one["metadata"]["name"] for one in WORKLOADS])
def test_a_pod_serves_its_metrics_on_the_port_that_it_announces(workload: dict[str, Any]) -> None:
    pod = workload["spec"]["template"]
    (container,) = [one for one in pod["spec"]["containers"] if one["image"].startswith("pratique")]
    environment = {f"{one['name']}": str(one.get("value", "")) for one in container["env"]}
    with pytest.raises(ValueError, match="PRATIQUE_METRICS_TOKEN"):
        configuration.read(environment)
    assert {"secretRef": {"name": "pratique"}} in container["envFrom"], "the token is one of its keys"
    environment["PRATIQUE_METRICS_TOKEN"] = TOKEN
    _, port = configuration.read(environment)["METRICS_ADDRESS"]
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert ports["metrics"] == port
    notes = pod["metadata"]["annotations"]
    assert (notes["prometheus.io/scrape"], notes["prometheus.io/port"]) == ("true", str(port))
    service = " ".join(container["command"])
    assert ("--config python:approvals.project.gunicorn" in service) is (workload["metadata"]["name"] == "web")


def test_every_process_is_shipped() -> None:
    assert {one["metadata"]["name"] for one in WORKLOADS} >= SERVICES
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name in SERVICES:
        assert compose[name]["environment"]["PRATIQUE_METRICS_ADDRESS"] == "0.0.0.0:9090"
        assert compose[name]["environment"]["PRATIQUE_METRICS_TOKEN"].startswith("${PRATIQUE_METRICS_TOKEN:?")
    assert "python:approvals.project.gunicorn" in (DEPLOY / "Dockerfile").read_text()
