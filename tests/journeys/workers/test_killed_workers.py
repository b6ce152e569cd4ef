"""Workers are killed (-9) and Redis restarts while bundles go in and sources move: nothing is lost or happens twice."""

from __future__ import annotations

import hashlib
import json
import random
import time
from pathlib import Path

import pytest
import yaml

from tests.support.journeys import people
from tests.support.journeys.machine import POOL, SEED_SECONDS, Machine, environment
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled, wait_for
from tests.support.servers.http import Asked, FileServer, Reply
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


NAMESPACE = "moves"
MOVES = 6
LONGEST_SECONDS = 0.4
POLLING = {
    "PRATIQUE_MUTABLE_HTTP": "true",
    "PRATIQUE_SOURCE_POLL_SECONDS": "1",
    "PRATIQUE_SOURCE_POLL_MIN_SECONDS": "1",
    "PRATIQUE_SOURCE_POLLS_PER_HOST": "1000",
    "PRATIQUE_SOURCE_REQUESTS_PER_HOUR": "0",
}
LATEST = "SELECT number, state, json_extract(pins, '$[0].digest') FROM approvals_request ORDER BY number DESC LIMIT 1"


@pytest.mark.thorough
def test_kill_9_of_the_worker_between_a_look_and_its_request_loses_no_move_and_doubles_none(
    machine: Machine, own_sandbox: Endpoint, http_server: FileServer, tmp_path: Path
) -> None:
    machine.environment |= POLLING
    kubeconfig = tmp_path / "kubeconfig.people"
    own_sandbox.write(kubeconfig)
    machine.make_database()
    looks: list[str] = []

    def serve(version: int) -> str:
        body = yaml.safe_dump_all([people.a_secret(NAMESPACE, str(version))]).encode()
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"

        def answer(asked: Asked) -> Reply:
            looks.append(digest)
            return Reply(body)

        http_server.serve_reply("/moves.yaml", answer)
        return digest

    def is_in_review(number: int, digest: str) -> bool:
        return machine.rows(LATEST) == [(number, "in_review", digest)]

    first = serve(1)
    machine.have_people("ask", kubeconfig, NAMESPACE, f"{http_server.url}/moves.yaml")
    worker = machine.worker()
    wait_for(lambda: is_in_review(1, first), "the first is in review", 60, log=machine.log)
    moments = random.Random(20261127)
    for move in range(1, MOVES + 1):
        digest = serve(move + 1)
        wait_for(lambda digest=digest: digest in looks, "it is looked at", 60, every=0.01, log=machine.log)
        time.sleep(moments.uniform(0.0, LONGEST_SECONDS))  # in which the worker gets somewhere
        machine.kill(worker)
        worker = machine.worker()
        wait_for(
            lambda move=move, digest=digest: is_in_review(move + 1, digest),
            f"request {move + 1} is in review",
            60,
            log=machine.log,
        )
    told = [one for (one,) in machine.rows("SELECT verb FROM approvals_auditentry WHERE verb = 'source.moved'")]
    assert len(told) == MOVES
    states = machine.rows("SELECT number, state FROM approvals_request ORDER BY number")
    assert states == [(n, "superseded") for n in range(1, MOVES + 1)] + [(MOVES + 1, "in_review")]
    assert machine.chain_is_whole()
