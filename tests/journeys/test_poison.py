"""Requests that kill their workers: each ends in words, alone, and those beside them come through."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.controlplane.endpoint import Endpoint
from tests.journeys import poison
from tests.journeys.machine import POOL, Machine
from tests.journeys.poison import Kernel, Source

pytestmark = pytest.mark.thorough
# Of the container, and of a process of its own in it. A worker that does nothing has 130.
CONTAINER_MIB, ALONE_MIB = 340, 200
PATIENCE_SECONDS = 400.0


class Ship:
    """A machine whose worker is started again whenever it is gone, as Kubernetes does."""

    def __init__(self, machine: Machine, endpoint: Endpoint, source: Source):
        self.machine, self.source = machine, source
        self.mark = f"PRATIQUE_CONTENT_DIR={machine.environment['PRATIQUE_CONTENT_DIR']}"
        self.workers: list[subprocess.Popen[bytes]] = []
        machine.run("manage.py", "migrate", "--verbosity", "0")
        kubeconfig = machine.folder / "kubeconfig"
        kubeconfig.write_text(endpoint.kubeconfig("admin"))
        self.shell(poison.seed(kubeconfig))
        machine.celery("beat", "--schedule", machine.folder / "beat")

    def shell(self, code: str) -> str:
        return self.machine.run("manage.py", "shell", "--verbosity", "0", "-c", code)

    def ask(self, hostile: list[str], harmless: list[str]) -> None:
        """Requests for these bundles, the harmless first."""
        folder = self.machine.folder / "source"
        for name in hostile[:1]:
            poison.hostile(folder, name)
        for name in harmless:
            poison.harmless(folder, name)
        sources = self.source.pack(folder)
        # It takes a while to pack: all of them wish for the same.
        same = [sources[name] for name in hostile[:1]]
        sources |= {name: source for name in hostile for source in same}
        self.shell(poison.ask({name: sources[name] for name in [*harmless, *hostile]}))

    def worker(self, threads: int = 4) -> subprocess.Popen[bytes]:
        self.workers.append(self.machine.celery("worker", *POOL, "--concurrency", threads))
        return self.workers[-1]

    def until(self, is_so: Callable[[], bool], what: str, *, is_kept_up: bool = True) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < end, f"{what}: {self.states()}\n{self.machine.log()}"
            if is_kept_up and self.workers[-1].poll() is not None:
                self.worker()
            time.sleep(0.1)

    def states(self) -> dict[str, tuple[str, str, int]]:
        """Of each deployment's latest request: its state, its problem's code, how many workers it killed."""
        rows = self.machine.rows(
            "SELECT d.name, r.state, r.problem_code, r.worker_deaths FROM approvals_request r"
            " JOIN approvals_bundledeployment d ON d.id = r.deployment_id ORDER BY r.number"
        )
        return {str(name): (str(state), str(code), int(str(deaths))) for name, state, code, deaths in rows}

    def holder(self, name: str) -> str:
        rows = self.machine.rows(
            "SELECT r.claimed_by FROM approvals_request r JOIN approvals_bundledeployment d ON d.id = r.deployment_id"
            f" WHERE d.name = '{name}'"
        )
        return str(rows[-1][0])

    def problem(self, name: str) -> str:
        rows = self.machine.rows(
            "SELECT r.problem FROM approvals_request r JOIN approvals_bundledeployment d ON d.id = r.deployment_id"
            f" WHERE d.name = '{name}' ORDER BY r.number"
        )
        return str(rows[-1][0])


@pytest.fixture
def ship(machine: Machine, own_sandbox: Endpoint, tmp_path: Path) -> Iterator[Ship]:
    machine.environment["PRATIQUE_ALONE_MEMORY_MIB"] = str(ALONE_MIB)
    folder = tmp_path / "archives"
    source = Source(folder)
    made = Ship(machine, own_sandbox, source)
    yield made
    source.stop()
    machine.stop()
    for pid in poison.alone_processes(made.mark):
        os.kill(pid, signal.SIGKILL)


def settled(ship: Ship, *names: str) -> Callable[[], bool]:
    return lambda: all(ship.states()[name][0] not in ("preparing", "approved", "applying") for name in names)


@pytest.mark.parametrize("alone_mib", [ALONE_MIB, 4 * CONTAINER_MIB], ids=["its own limit", "the kernel"])
def test_S26_a_bundle_that_kills_its_worker_is_failed_at_the_second_death_and_the_one_beside_it_comes_through(
    ship: Ship, alone_mib: int
) -> None:
    ship.machine.environment["PRATIQUE_ALONE_MEMORY_MIB"] = str(alone_mib)
    kernel = Kernel(ship.mark, CONTAINER_MIB)
    ship.source.held["innocent"] = lambda: not kernel.killed
    ship.ask(["hostile"], ["innocent"])
    try:
        ship.worker()
        ship.until(settled(ship, "hostile", "innocent"), "both come to an end")
    finally:
        kernel.stop()
    states = ship.states()
    assert states["hostile"] == ("failed", "worker-died", 0)
    assert states["innocent"] == ("in_review", "", 0)
    by_kernel = alone_mib != ALONE_MIB
    assert kernel.killed == ["worker", *["alone"] * by_kernel]
    assert len(ship.workers) == 2
    assert ship.source.asked.count("innocent") == 2, "it was under way when its worker was killed"
    how = "was killed by signal 9" if by_kernel else f"needed more than {ALONE_MIB} MiB of memory"
    assert (
        f"its worker died 2 times while preparing its report. The last one was alone with it and {how}"
        in ship.problem("hostile")
    )
    assert ship.machine.chain_is_whole()
    ship.shell(poison.AGAIN.format(name="hostile"))
    assert ship.states()["hostile"] == ("preparing", "", 0), "it can be asked for again"


def test_S26_eight_bundles_that_kill_their_workers_and_an_innocent_one_beside_them_end_as_they_should(
    ship: Ship,
) -> None:
    names = [f"hostile-{number}" for number in range(8)]
    kernel = Kernel(ship.mark, CONTAINER_MIB)
    ship.source.held["innocent"] = lambda: not kernel.killed
    ship.ask(names, ["innocent"])
    try:
        ship.worker(threads=8)
        ship.until(settled(ship, "innocent", *names), "all come to an end")
    finally:
        kernel.stop()
    states = ship.states()
    assert {name: states[name] for name in names} == dict.fromkeys(names, ("failed", "worker-died", 0))
    assert states["innocent"] == ("in_review", "", 0)
    assert "alone" not in kernel.killed


def test_S26_a_worker_killed_once_in_each_state_fails_nothing(ship: Ship) -> None:
    ship.source.held["innocent"] = lambda: len(ship.workers) < 2
    ship.ask([], ["innocent"])
    ship.worker()
    ship.until(lambda: "innocent" in ship.source.asked, "it is fetched")
    ship.machine.kill(ship.workers[-1])
    ship.until(settled(ship, "innocent"), "it is prepared")
    assert ship.states()["innocent"] == ("in_review", "", 0)
    ship.machine.kill(ship.workers[-1])
    ship.shell(poison.APPROVE.format(name="innocent"))
    ship.worker()
    ship.until(lambda: ship.states()["innocent"][0] != "in_review", "it is approved", is_kept_up=False)
    ship.machine.kill(ship.workers[-1])
    ship.until(lambda: ship.states()["innocent"][0] == "applied", "it is applied")
    assert ship.states()["innocent"] == ("applied", "", 0)


def test_S26_a_worker_that_is_told_to_stop_gives_its_claims_back(ship: Ship) -> None:
    ship.source.held["innocent"] = lambda: True
    ship.ask([], ["innocent"])
    worker = ship.worker()
    ship.until(lambda: "innocent" in ship.source.asked, "it is fetched")
    assert ship.holder("innocent")
    worker.send_signal(signal.SIGTERM)
    ship.until(lambda: not ship.holder("innocent"), "its claim is free", is_kept_up=False)
    ship.source.held.clear()
    ship.worker()
    ship.until(settled(ship, "innocent"), "another worker prepares it")
    assert ship.states()["innocent"] == ("in_review", "", 0)
    assert "died" not in ship.machine.log()


def test_S26_a_worker_that_is_told_to_stop_takes_the_process_of_its_own_along(ship: Ship) -> None:
    ship.source.held["innocent"] = lambda: True
    ship.ask([], ["innocent"])
    ship.worker()
    ship.until(lambda: "innocent" in ship.source.asked, "it is fetched")
    ship.machine.kill(ship.workers[-1])
    worker = ship.worker()
    ship.until(lambda: ship.source.asked.count("innocent") == 2, "it is fetched alone")
    assert poison.alone_processes(ship.mark)
    worker.send_signal(signal.SIGTERM)
    ship.until(lambda: not poison.alone_processes(ship.mark), "it stops", is_kept_up=False)
    assert (ship.holder("innocent"), ship.states()["innocent"]) == ("", ("preparing", "", 1))
    ship.source.held.clear()
    ship.until(settled(ship, "innocent"), "another worker prepares it")
    assert ship.states()["innocent"] == ("in_review", "", 0)
