"""Applies that wait for what never becomes ready hold no thread of the worker."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from tests.support.journeys import people
from tests.support.journeys.machine import LONG_CLAIM, Machine
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import wait_for
from tests.support.servers.downloads import archive, served

STUCK = 5
SECONDS = 120.0


@pytest.mark.thorough
def test_five_that_are_never_ready_leave_two_threads_to_a_sixth(
    machine: Machine, own_sandbox: Endpoint, tmp_path: Path
) -> None:
    namespace, kubeconfig = f"stuck-{uuid.uuid4().hex[:8]}", tmp_path / "kubeconfig.stuck"
    own_sandbox.write(kubeconfig)
    machine.environment |= {"PRATIQUE_MUTABLE_HTTP": "true", "PRATIQUE_APPLY_MINUTES": "60", **LONG_CLAIM}
    machine.make_database()
    names = [f"{namespace}-{number}" for number in range(1, STUCK + 2)]
    files = [archive(people.two_phases(name, namespace), name, tmp_path, tmp_path / "served") for name in names]
    with served(tmp_path / "served") as address:
        urls = [f"{address}/{file}" for file in files]
        keys = machine.have_people("approve-all", kubeconfig, namespace, *urls).split()
    *waiting, last = map(int, keys)
    # All six are due; the one that can be applied comes last.
    machine.celery("worker", "--pool", "threads", "--concurrency", 2, "--beat", "--schedule", machine.folder / "beat")

    def states() -> dict[int, str]:
        return {int(str(key)): str(state) for key, state in machine.rows("SELECT id, state FROM approvals_request")}

    wanted = {**dict.fromkeys(waiting, "applying"), last: "applied"}
    wait_for(states, "five are waited for and the sixth is applied", SECONDS, is_so=wanted.__eq__, log=machine.log)
    held = machine.rows("SELECT count(*) FROM approvals_request WHERE state = 'applying' AND claimed_by != ''")
    assert held == [(STUCK,)], "they are waited for all the same"

    def counted() -> float:
        ((least,),) = machine.rows("SELECT min(worked_seconds) FROM approvals_request WHERE state = 'applying'")
        return float(str(least))

    before = counted()
    wait_for(counted, "their time is counted", SECONDS, is_so=lambda now: now > before + 2.0, log=machine.log)
