"""Workers are killed (-9) between a look at a source that moved and the request for it: one move, one request."""

from __future__ import annotations

import hashlib
import random
import time
from pathlib import Path

import pytest
import yaml

from tests.support.journeys import two_machines
from tests.support.journeys.machine import Machine
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import wait_for
from tests.support.servers.http import Asked, FileServer, Reply

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
        body = yaml.safe_dump_all(two_machines.objects(NAMESPACE, str(version))).encode()
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"

        def answer(asked: Asked) -> Reply:
            looks.append(digest)
            return Reply(body)

        http_server.serve_reply("/moves.yaml", answer)
        return digest

    def is_in_review(number: int, digest: str) -> bool:
        return machine.rows(LATEST) == [(number, "in_review", digest)]

    first = serve(1)
    people = "-m", "tests.support.program", "tests.support.journeys.two_machines"
    machine.run(*people, "ask", kubeconfig, NAMESPACE, f"{http_server.url}/moves.yaml")
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
