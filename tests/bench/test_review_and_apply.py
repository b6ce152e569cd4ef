"""Review and apply of 500 objects, against kubectl on the same API server in the same run. Figures, no verdict.

Run by `make bench`; each round uses a namespace of its own, the two tools in turn, and the median ratio is what counts.
"""

from __future__ import annotations

import statistics
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from provisioner import pipeline
from provisioner.cluster.api import Cluster
from provisioner.cluster.inventory import MemoryInventory
from provisioner.render import content_digest
from provisioner.values import Content, Manifest, OutcomeState
from tests.controlplane.endpoint import Endpoint

OBJECTS = 500
ROUNDS = 5


def objects(namespace: str) -> list[dict[str, object]]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"bench-{number:04}", "namespace": namespace},
            "data": {f"key-{line}": "x" * 60 for line in range(10)},
        }
        for number in range(OBJECTS)
    ]


def content_of(namespace: str) -> Content:
    manifests = tuple(Manifest(obj, f"{number:04}.yaml") for number, obj in enumerate(objects(namespace)))
    digest = content_digest(manifests, install_namespace=namespace, service_account="")
    return Content(manifests, namespace, "", (), digest)


def seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@pytest.mark.controlplane
def test_figures_of_500_objects(controlplane: Endpoint, tmp_path: Path) -> None:
    cluster = Cluster.connect(controlplane.kubeconfig("admin"), timeout_seconds=60)
    kubeconfig = tmp_path / "kubeconfig"
    controlplane.write(kubeconfig)
    figures: dict[str, list[float]] = {"look": [], "diff": [], "deploy": [], "apply": []}

    def kubectl(*words: str, ok: tuple[int, ...] = (0,)) -> None:
        command = [str(controlplane.kubectl), "--kubeconfig", str(kubeconfig), *words]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode in ok, done.stderr.decode()

    for _ in range(ROUNDS):
        ours, theirs = (f"bench-{uuid.uuid4().hex[:8]}" for _ in range(2))
        for namespace in (ours, theirs):
            kubectl("create", "namespace", namespace)
        content, file = content_of(ours), tmp_path / f"{theirs}.yaml"
        file.write_text(yaml.safe_dump_all(objects(theirs)))
        reports = []
        figures["look"].append(
            seconds(lambda: reports.append(pipeline.look(cluster, content, previous=None, inventory={})))  # noqa: B023 - called at once
        )
        figures["diff"].append(seconds(lambda: kubectl("diff", "--server-side", "-f", str(file), ok=(0, 1))))  # noqa: B023 - called at once
        plan = reports[0].plan
        outcomes = []
        figures["deploy"].append(
            seconds(lambda: outcomes.extend(pipeline.deploy(cluster, content, plan, inventory=MemoryInventory())))  # noqa: B023 - called at once
        )
        figures["apply"].append(seconds(lambda: kubectl("apply", "--server-side", "-f", str(file))))  # noqa: B023 - called at once
        assert {outcome.state for outcome in outcomes} == {OutcomeState.DONE}
        assert len(outcomes) == OBJECTS
        for namespace in (ours, theirs):
            kubectl("delete", "namespace", namespace, "--wait=false")

    for own, other, words in (("look", "diff", "review"), ("deploy", "apply", "apply")):
        ratios = [mine / its for mine, its in zip(figures[own], figures[other], strict=True)]
        print(
            f"\n{words} of {OBJECTS} objects: {statistics.median(figures[own]):.2f} s, kubectl {other}"
            f" {statistics.median(figures[other]):.2f} s, ratio median {statistics.median(ratios):.2f}"
            f" (min {min(ratios):.2f}, max {max(ratios):.2f}, {ROUNDS} rounds)"
        )
