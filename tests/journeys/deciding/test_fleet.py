"""One change for five clusters in three rings: one fails, one is silent, and the worker is killed (-9) between members."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.support.journeys.fleet import FAILING, SILENT
from tests.support.journeys.machine import Machine
from tests.support.kubernetes.controlplane import ControlPlane
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.sandbox import running_sandbox
from tests.support.patience import wait_for
from tests.support.servers.http import FileServer

_OF = " JOIN approvals_bundledeployment d ON d.id = {}.deployment_id JOIN approvals_cluster c ON c.id = d.cluster_id"
STATES = f"SELECT c.name, r.state FROM approvals_request r{_OF.format('r')}"
REVISIONS = f"SELECT c.name, count(*) FROM approvals_revision v{_OF.format('v')} GROUP BY c.name ORDER BY c.name"
OVERDUE = "SELECT count(*) FROM approvals_revision WHERE overdue_at IS NOT NULL"


@pytest.mark.controlplane
@pytest.mark.thorough
def test_a_set_goes_through_its_rings_past_a_silent_cluster_and_stops_where_one_fails(
    machine: Machine, controlplane: Endpoint, own_controlplane: ControlPlane, http_server: FileServer, tmp_path: Path
) -> None:
    mark = f"fleet-{uuid.uuid4().hex[:6]}"
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": mark, "namespace": mark}, "data": {"a": "1"}}
    url = http_server.serve("/app.yaml", yaml.safe_dump(obj).encode())
    machine.environment |= {"PRATIQUE_MUTABLE_HTTP": "true", "PRATIQUE_CLUSTER_TIMEOUT_SECONDS": "5"}
    machine.make_database()

    def people(*what: object) -> str:
        return machine.run("-m", "tests.support.program", "tests.support.journeys.fleet", *what)

    def states() -> dict[object, object]:
        return dict(machine.rows(STATES))

    def until(name: str, state: str, seconds: float = 120) -> None:
        wait_for(states, f"{name} is {state}", seconds, is_so=lambda found: found[name] == state, log=machine.log)

    with ExitStack() as ends, ExitStack() as silent_ends:
        clusters = {"canary": controlplane, "west": own_controlplane.endpoint}
        clusters |= {name: ends.enter_context(running_sandbox(tmp_path / name)) for name in ("east", FAILING)}
        clusters[SILENT] = silent_ends.enter_context(running_sandbox(tmp_path / SILENT))
        for name, endpoint in clusters.items():
            endpoint.write(tmp_path / f"{name}.kubeconfig")
        people("ask", mark, url, *(f"{name}={tmp_path / name}.kubeconfig" for name in clusters))
        worker = machine.worker()
        for name in clusters:
            until(name, "in_review")
        machine.kill(worker)
        people("order")
        people("approve")
        silent_ends.close()
        people("silence", SILENT)

        worker = machine.worker()
        until("canary", "applied")
        machine.kill(worker)
        assert machine.rows(REVISIONS) == [("canary", 1)], "the rings after it wait until it is healthy"
        worker = machine.worker()
        until("east", "applied")
        machine.kill(worker)
        machine.worker()
        wait_for(lambda: machine.rows(OVERDUE), "one misses its deadline", 240, is_so=[(1,)].__eq__, log=machine.log)
        # What is silent holds nobody, and what failed holds the ring after it until somebody decides on it.
        assert "some: 1 of 3 members healthy, 1 failed\n" in people("show")
        assert states() == {
            **dict.fromkeys(("canary", "east", FAILING), "applied"),
            "west": "approved",
            SILENT: "in_review",  # its API server is asked whether alice may still approve
        }
        people("take-out", FAILING)
        until("west", "applied")
    assert machine.rows(REVISIONS) == [("canary", 1), ("east", 1), (FAILING, 1), ("west", 1)]
    live = own_controlplane.endpoint.ask("GET", f"/api/v1/namespaces/{mark}/configmaps/{mark}")
    assert live["data"] == {"a": "1"}
    assert machine.chain_is_whole()
