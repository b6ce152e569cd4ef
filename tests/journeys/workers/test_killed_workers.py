"""Workers are killed (-9) and Redis restarts again and again while three bundles go in: nothing is lost or happens twice."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

import pytest

from tests.support.journeys.machine import POOL, SEED_SECONDS, Machine, environment
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled, wait_for
from tests.support.servers.valkey import Valkey

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
    check_whole(machine, own_sandbox)


@pytest.mark.thorough
def test_workers_outlive_restarts_of_redis_in_each_phase_of_a_request(
    tmp_path: Path, own_redis: Valkey, own_sandbox: Endpoint
) -> None:
    machine = Machine(tmp_path, environment(tmp_path, own_redis.url))
    try:
        seed = machine.start(*machine.prepare(own_sandbox))
        workers = [machine.worker(), machine.celery("worker", *POOL, "--concurrency", 24)]
        phases: list[object] = []
        end = time.monotonic() + scaled(SEED_SECONDS)
        while seed.poll() is None and time.monotonic() < end:
            for (phase,) in machine.rows("SELECT DISTINCT state FROM approvals_request ORDER BY state"):
                if phase not in phases:
                    own_redis.stop(hard=len(phases) % 2 == 0)
                    time.sleep(scaled(len(phases) * 0.5))  # back at once, or after tasks have ended
                    own_redis.start()
                    phases.append(phase)
            time.sleep(0.05)
        assert seed.poll() == 0, machine.log()
        assert {"preparing", "in_review", "approved", "applying"} <= {*phases}
        assert [worker.poll() for worker in workers] == [None, None], machine.log()
        check_whole(machine, own_sandbox)
        wait_for(lambda: own_redis.client.llen("celery") == 0, "the workers empty the queue")
    finally:
        machine.stop()


def check_whole(machine: Machine, cluster: Endpoint) -> None:
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
        live = cluster.ask("GET", f"/apis/apps/v1/namespaces/harbour-system/deployments/{name}")
        assert live["metadata"]["generation"] == 1, json.dumps(live["metadata"])
