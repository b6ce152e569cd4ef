"""Workers are killed (-9) again and again while three bundles go in: nothing is lost, nothing happens twice."""

from __future__ import annotations

import json
import random
import time

import pytest

from tests.support.journeys.machine import SEED_SECONDS, Machine
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled

KILLS = 8


@pytest.mark.thorough
def test_kill_9_of_the_worker_between_any_two_steps_loses_and_doubles_nothing(
    machine: Machine, own_sandbox: Endpoint
) -> None:
    seed = machine.start(*machine.prepare(own_sandbox))

    moments = random.Random(20261121)
    worker, kills = machine.worker(), 0
    end = time.monotonic() + scaled(SEED_SECONDS)
    while seed.poll() is None and time.monotonic() < end:
        time.sleep(scaled(moments.uniform(1.0, 4.0)))  # in which a worker gets somewhere
        if kills < KILLS and seed.poll() is None:
            machine.kill(worker)
            kills += 1
            worker = machine.worker()
    assert seed.poll() == 0, machine.log()
    assert kills >= 3

    states = machine.rows(
        "SELECT d.name, r.number, r.state FROM approvals_request r"
        " JOIN approvals_bundledeployment d ON d.id = r.deployment_id ORDER BY d.name, r.number"
    )
    assert states == [
        ("harbour", 1, "applied"),
        ("harbour", 2, "in_review"),
        ("lighthouse", 1, "in_review"),
        ("tugboat", 1, "applied"),
        ("tugboat", 2, "in_review"),
    ]
    assert machine.rows("SELECT count(*), sum(state = 'active') FROM approvals_revision") == [(2, 2)]
    assert machine.rows("SELECT count(*) FROM approvals_inventoryitem WHERE uid = ''") == [(0,)]
    assert machine.chain_is_whole()
    for name in ("harbour", "tugboat"):
        live = own_sandbox.ask("GET", f"/apis/apps/v1/namespaces/harbour-system/deployments/{name}")
        assert live["metadata"]["generation"] == 1, json.dumps(live["metadata"])
