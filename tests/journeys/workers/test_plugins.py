"""Plug-ins in the processes of a service: broken ones are named in its log and in requests, and the worker goes on."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.plugins import PluginGroup
from tests.journeys.workers import poison
from tests.support.folders import ROOT
from tests.support.journeys.machine import LONG_CLAIM, POOL, Machine
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import wait_for
from tests.support.plugins import PluginPath
from tests.support.servers.downloads import served

pytestmark = pytest.mark.thorough
PATIENCE_SECONDS = 240.0
STORM = """
import os
from provisioner.review.base.facts import Check

def render(tree, rendering):
    raise SystemExit("out of here")

def fetch(source, *, egress, max_bytes):
    os._exit(9)

def look(facts):
    raise GeneratorExit

CHECK = Check("storm", changes=look)
"""
ASK = """
import json
from django.contrib.auth.models import User
from approvals import services
from approvals.management.commands.demo_seed import acting
from approvals.management.demo.seeds import ACCOUNT, NAMESPACE
from approvals.models import Cluster
for name, more in json.loads({wishes!r}).items():
    spec = dict(installNamespace=NAMESPACE, serviceAccountName=ACCOUNT, **more)
    services.create_deployment(by=acting(User.objects.get(username="rita")), cluster=Cluster.objects.get(), name=name,
        spec=spec, labels={{}}, via="shell")
"""
ROWS = (
    "SELECT d.name, r.state, r.problem_code, r.problem FROM approvals_request r"
    " JOIN approvals_bundledeployment d ON d.id = r.deployment_id ORDER BY r.number"
)


@pytest.fixture
def service(machine: Machine, own_sandbox: Endpoint, tides_folder: Path, plugin_path: PluginPath) -> Iterator[Machine]:
    """A service with the good package and a broken one installed."""
    points = {
        PluginGroup.FORMATS: {"storm-surge": "storm:render", "storm-front": "storm:nowhere"},
        PluginGroup.SOURCES: {"storm-cloud": "storm:fetch"},
        PluginGroup.CHECKS: {"storm-watch": "storm:CHECK"},
    }
    plugin_path.add("storm", points, STORM)
    machine.environment |= LONG_CLAIM
    machine.environment["PYTHONPATH"] = os.pathsep.join([str(tides_folder), str(plugin_path.folder), str(ROOT)])
    mark = f"PRATIQUE_CONTENT_DIR={machine.environment['PRATIQUE_CONTENT_DIR']}"
    machine.make_database()
    kubeconfig = machine.folder / "kubeconfig"
    kubeconfig.write_text(own_sandbox.kubeconfig("admin"))
    shell(machine, poison.seed(kubeconfig))
    yield machine
    machine.stop()
    for pid in [*poison.processes_apart(mark), *poison.fork_servers(mark)]:
        os.kill(pid, signal.SIGKILL)


def shell(machine: Machine, code: str) -> str:
    return machine.run("manage.py", "shell", "--verbosity", "0", "-c", code)


def until(machine: Machine, is_so: Callable[[], bool], what: str) -> None:
    wait_for(is_so, what, PATIENCE_SECONDS, log=lambda: f"{machine.rows(ROWS)}\n{machine.log()}")


def stands(machine: Machine) -> dict[str, tuple[str, str, str]]:
    return {str(name): (str(state), str(code), str(words)) for name, state, code, words in machine.rows(ROWS)}


def wishes_of(url: str, folder: Path) -> dict[str, dict[str, Any]]:
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n"
    (folder / "beside.yaml").write_text(manifest)
    (folder / "tides.json").write_text('{"ports": [{"name": "east", "metres": 7}]}')
    gauge = {"kind": "tide-gauge", "parameters": {"url": f"{url}/tides.json"}}
    checksum = f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}"
    return {
        "surge": {"sources": [gauge], "format": "storm-surge"},
        "front": {"sources": [gauge], "format": "storm-front"},
        "cloud": {"sources": [{"kind": "storm-cloud"}]},
        "tides": {"sources": [gauge], "format": "tide-table"},
        "plain": {"sources": [{"kind": "http", "http": {"url": f"{url}/beside.yaml", "checksum": checksum}}]},
    }


def test_broken_plugins_are_named_and_all_other_requests_come_through(service: Machine, tmp_path: Path) -> None:
    folder = tmp_path / "gauge"
    with served(folder) as url:
        service.celery("beat", "--schedule", service.folder / "schedule")
        worker = service.celery("worker", *POOL, "--concurrency", 4)
        shell(service, ASK.format(wishes=json.dumps(wishes_of(url, folder))))
        until(service, lambda: all(state != "preparing" for state, _, _ in stands(service).values()), "all are settled")
    found = stands(service)
    assert {name: state for name, (state, _, _) in found.items()} == {
        "surge": "failed",
        "front": "failed",
        "cloud": "failed",
        "tides": "in_review",
        "plain": "in_review",
    }
    assert {found[name][1] for name in ("surge", "front")} == {"plugin-failed"}
    assert "the format storm-surge of the package storm 1 failed (SystemExit" in found["surge"][2]
    assert "the format storm-front of the package storm 1 is disabled: it cannot be loaded" in found["front"][2]
    assert found["cloud"][1] == "worker-died", "it ends its process, which nothing in there can name"
    shell(service, poison.APPROVE.format(name="tides"))
    until(service, lambda: stands(service)["tides"][0] == "applied", "the good one is applied")
    assert worker.poll() is None
    reports = service.rows("SELECT f.message FROM approvals_finding f WHERE f.rule = 'CRASHED'")
    assert len(reports) == 2
    assert all("the check storm-watch of the package storm 1 failed (GeneratorExit" in str(one[0]) for one in reports)
    until(service, lambda: "a plug-in is disabled" in service.whole_log(), "the worker says so at its start")
    assert "pratique.formats storm-front of storm 1" in service.whole_log()
