"""Requests that kill the processes that prepare them: each ends in words, and those beside them come through."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.journeys.workers import poison
from tests.journeys.workers.poison import Kernel, Source
from tests.support.journeys.machine import CLAIM_SECONDS, LONG_CLAIM, POOL, Machine
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled, wait_for

pytestmark = pytest.mark.thorough
# Of the container, and of a process that tries once more. A worker that does nothing has 210 with what it forks from.
CONTAINER_MIB, ALONE_MIB = 420, 200
PATIENCE_SECONDS = 400.0


class Ship:
    """A machine whose worker is started again whenever it is gone, as Kubernetes does."""

    def __init__(self, machine: Machine, endpoint: Endpoint, source: Source):
        self.machine, self.source = machine, source
        self.mark = f"PRATIQUE_CONTENT_DIR={machine.environment['PRATIQUE_CONTENT_DIR']}"
        self.workers: list[subprocess.Popen[bytes]] = []
        machine.make_database()
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
        sources = self.source.pack_bundles(folder)
        # It takes a while to pack: all of them wish for the same.
        same = [sources[name] for name in hostile[:1]]
        sources |= {name: source for name in hostile for source in same}
        self.shell(poison.ask({name: sources[name] for name in [*harmless, *hostile]}))

    def worker(self, threads: int = 4) -> subprocess.Popen[bytes]:
        self.workers.append(self.machine.celery("worker", *POOL, "--concurrency", threads))
        return self.workers[-1]

    def until(self, is_so: Callable[[], bool], what: str, *, is_kept_up: bool = True) -> None:
        def look() -> bool:
            if is_so():
                return True
            if is_kept_up and self.workers[-1].poll() is not None:
                self.worker()
            return False

        wait_for(look, what, PATIENCE_SECONDS, log=lambda: f"{self.states()}\n{self.machine.log()}")

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
    machine.environment |= {"PRATIQUE_ALONE_MEMORY_MIB": str(ALONE_MIB), **LONG_CLAIM}
    folder = tmp_path / "archives"
    source = Source(folder)
    made = Ship(machine, own_sandbox, source)
    yield made
    source.stop()
    machine.stop()
    for pid in [*poison.processes_apart(made.mark), *poison.fork_servers(made.mark)]:
        os.kill(pid, signal.SIGKILL)


def under_way(ship: Ship) -> int:
    """The process that fetches the innocent bundle, once it is held up by its source."""
    ship.until(lambda: bool(ship.source.asked and poison.processes_apart(ship.mark)), "it is fetched")
    (pid,) = poison.processes_apart(ship.mark)
    return pid


def settled(ship: Ship, *names: str) -> Callable[[], bool]:
    return lambda: all(ship.states()[name][0] not in ("preparing", "approved", "applying") for name in names)


@pytest.mark.parametrize("alone_mib", [ALONE_MIB, 4 * CONTAINER_MIB], ids=["its own limit", "the kernel"])
def test_S26_a_bundle_that_uses_up_the_memory_is_failed_at_the_second_death_and_the_one_beside_it_comes_through(
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
    assert kernel.killed == ["apart", *["apart"] * by_kernel]
    assert len(ship.workers) == 1, "the worker lives"
    assert ship.source.asked.count("innocent") == 1, "it was under way all the time"
    how = "was killed by signal 9" if by_kernel else f"needed more than {ALONE_MIB} MiB of memory"
    assert (
        f"the worker died 2 times while preparing its report. The last process worked on nothing else and {how}"
        in ship.problem("hostile")
    )
    assert ship.machine.chain_is_whole()
    ship.shell(poison.AGAIN.format(name="hostile"))
    assert ship.states()["hostile"] == ("preparing", "", 0), "it can be asked for again"


def test_S26_the_worker_ends_the_largest_process_before_the_memory_is_used_up(ship: Ship) -> None:
    names = [f"hostile-{number}" for number in range(3)]
    ship.machine.environment["PRATIQUE_WORKER_MEMORY_MIB"] = str(CONTAINER_MIB)
    ship.machine.environment["PRATIQUE_ALONE_MEMORY_MIB"] = str(4 * CONTAINER_MIB)
    kernel = Kernel(ship.mark, CONTAINER_MIB)
    ship.source.held["innocent"] = lambda: any(ship.states()[name][0] == "preparing" for name in names)
    ship.ask(names, ["innocent"])
    try:
        ship.worker()
        ship.until(settled(ship, "innocent", *names), "all come to an end")
    finally:
        kernel.stop()
    states = ship.states()
    assert {name: states[name] for name in names} == dict.fromkeys(names, ("failed", "worker-died", 0))
    assert states["innocent"] == ("in_review", "", 0)
    assert kernel.killed == [], "the worker was there first"
    assert ship.source.asked.count("innocent") == 1
    words = f"was the largest when the processes of its worker came near to {CONTAINER_MIB} MiB of memory"
    assert all(words in ship.problem(name) for name in names)


def test_S26_eight_bundles_that_use_up_the_memory_and_an_innocent_one_beside_them_end_as_they_should(
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
    assert "worker" not in kernel.killed
    assert len(ship.workers) == 1


def test_S26_a_process_that_is_killed_is_followed_by_one_more_and_that_by_words(ship: Ship) -> None:
    ship.source.held["innocent"] = lambda: True
    ship.ask([], ["innocent"])
    ship.worker()
    os.kill(first := under_way(ship), signal.SIGKILL)
    ship.until(lambda: ship.source.asked.count("innocent") == 2, "it is tried once more")
    assert ship.states()["innocent"] == ("preparing", "", 1)
    os.kill(second := under_way(ship), signal.SIGKILL)
    ship.until(settled(ship, "innocent"), "it is given up")
    assert first != second
    assert ship.states()["innocent"] == ("failed", "worker-died", 0)
    assert "the worker died 2 times while preparing its report" in ship.problem("innocent")
    assert "was killed by signal 9" in ship.problem("innocent")


def test_S26_a_process_whose_worker_is_killed_gives_its_claim_back_and_ends(ship: Ship) -> None:
    ship.source.held["innocent"] = lambda: True
    ship.ask([], ["innocent"])
    worker = ship.worker()
    under_way(ship)
    ship.machine.kill(worker)
    ship.until(lambda: not poison.processes_apart(ship.mark), "it ends", is_kept_up=False)
    # Not because it was done, nor as one that hangs, which gives nothing back.
    assert (ship.holder("innocent"), ship.states()["innocent"]) == ("", ("preparing", "", 0))
    ship.until(lambda: not poison.fork_servers(ship.mark), "and so does what it came from", is_kept_up=False)
    ship.source.held.clear()
    ship.worker()
    ship.until(settled(ship, "innocent"), "another worker prepares it")
    assert ship.states()["innocent"] == ("in_review", "", 0)


def test_S26_where_what_all_are_forked_from_is_killed_it_is_started_anew_and_nobody_died(ship: Ship) -> None:
    ship.source.held["innocent"] = lambda: True
    ship.ask([], ["innocent"])
    ship.worker()
    under_way(ship)
    for pid in (killed := poison.fork_servers(ship.mark)):
        os.kill(pid, signal.SIGKILL)
    ship.source.held.clear()
    ship.until(settled(ship, "innocent"), "it is prepared by another process")
    assert ship.states()["innocent"] == ("in_review", "", 0)
    assert len(killed) == 1
    assert set(poison.fork_servers(ship.mark)).isdisjoint(killed)
    assert len(ship.workers) == 1


def test_S26_a_worker_killed_once_in_each_state_fails_nothing(ship: Ship) -> None:
    ship.machine.environment["PRATIQUE_CLAIM_SECONDS"] = str(round(scaled(CLAIM_SECONDS)))
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


@pytest.mark.parametrize("is_suspect", [False, True], ids=["at the first try", "tried once more"])
def test_S26_a_worker_that_is_told_to_stop_takes_its_processes_along_and_gives_their_claims_back(
    ship: Ship, is_suspect: bool
) -> None:
    ship.source.held["innocent"] = lambda: True
    ship.ask([], ["innocent"])
    worker = ship.worker()
    pid = under_way(ship)
    if is_suspect:
        os.kill(pid, signal.SIGKILL)
        ship.until(lambda: ship.source.asked.count("innocent") == 2, "it is tried once more")
        under_way(ship)
    assert ship.holder("innocent")
    worker.send_signal(signal.SIGTERM)
    ship.until(lambda: not poison.processes_apart(ship.mark), "it stops", is_kept_up=False)
    assert (ship.holder("innocent"), ship.states()["innocent"]) == ("", ("preparing", "", int(is_suspect)))
    ship.source.held.clear()
    ship.worker()
    ship.until(settled(ship, "innocent"), "another worker prepares it")
    assert ship.states()["innocent"] == ("in_review", "", 0)
