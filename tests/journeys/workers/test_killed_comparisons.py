"""A worker is killed (-9) while it fetches a bundle to compare: nothing is lost, and nobody asks again.

The fetching is done by a process of its own, which outlives its worker for a few seconds: it ends by itself or finishes,
and gives the claim back in both cases. Where it is killed as well, the claim lapses.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.journeys.workers import poison
from tests.support.journeys.contents.catalogs import operator_files
from tests.support.journeys.machine import Machine
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import wait_for
from tests.support.servers.http import Asked, FileServer, Reply
from tests.support.servers.registry import CONFIG_TYPE, LAYER_TYPE, MANIFEST_TYPE, digest_of, layer_of

pytestmark = pytest.mark.thorough

ROW = "SELECT state, attempts, problem FROM approvals_bundlecomparison"
CLAIM = "SELECT claimed_by, worker_deaths FROM approvals_taskclaim WHERE task = 'compare_bundles'"


def slow_image(server: FileServer, asked: list[str], go_on: threading.Event) -> str:
    """An image whose manifest comes only once `go_on` is set; `asked` notes who came for it."""
    layer, config = layer_of(operator_files()), b"{}"
    blobs = {one: digest_of(one) for one in (layer, config)}
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": {"mediaType": CONFIG_TYPE, "digest": blobs[config], "size": len(config)},
            "layers": [{"mediaType": LAYER_TYPE, "digest": blobs[layer], "size": len(layer)}],
        }
    ).encode()

    def answer(one: Asked) -> Reply:
        asked.append(one.path)
        go_on.wait(120)
        return Reply(manifest, headers={"Content-Type": MANIFEST_TYPE})

    server.serve_reply(f"/v2/slow/manifests/{digest_of(manifest)}", answer)
    for body, digest in blobs.items():
        server.serve_reply(f"/v2/slow/blobs/{digest}", Reply(body))
    return f"{server.url.removeprefix('http://')}/slow@{digest_of(manifest)}"


@dataclass
class Harbour:
    """Where a worker fetches a bundle whose manifest comes only once `go_on` is set."""

    machine: Machine
    go_on: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)

    @property
    def mark(self) -> str:
        return f"PRATIQUE_CONTENT_DIR={self.machine.environment['PRATIQUE_CONTENT_DIR']}"

    def row(self) -> list[tuple[object, ...]]:
        return self.machine.rows(ROW)

    def holder(self) -> str:
        return str(self.machine.rows(CLAIM)[0][0])

    def apart(self) -> list[int]:
        return poison.processes_apart(self.mark)


@pytest.fixture
def harbour(machine: Machine, own_sandbox: Endpoint, http_server: FileServer, tmp_path: Path) -> Iterator[Harbour]:
    """A worker has begun to fetch what rita asked to compare, and is killed; what it started lives."""
    kubeconfig = tmp_path / "kubeconfig.people"
    own_sandbox.write(kubeconfig)
    machine.make_database()
    made = Harbour(machine)
    machine.have_people("compare", kubeconfig, slow_image(http_server, made.asked, made.go_on))
    worker = machine.worker()
    try:
        wait_for(lambda: made.asked, "a worker fetches it", 60, log=machine.log)
        assert made.row() == [("waiting", 1, "")]
        assert made.holder() != ""
        assert len(made.apart()) == 1
        machine.kill(worker)
        yield made
    finally:
        made.go_on.set()
        for pid in [*made.apart(), *poison.fork_servers(made.mark)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_kill_9_of_the_worker_while_it_fetches_loses_no_comparison(harbour: Harbour) -> None:
    wait_for(lambda: not harbour.apart(), "its process ends", 60, log=harbour.machine.log)
    assert (harbour.row(), harbour.holder()) == ([("waiting", 1, "")], "")
    harbour.go_on.set()
    harbour.machine.worker()
    is_compared_by_the_next(harbour)


def test_kill_9_of_the_worker_with_all_its_processes_loses_no_comparison(harbour: Harbour) -> None:
    for pid in harbour.apart():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not harbour.apart(), "its process is gone", 60, log=harbour.machine.log)
    assert harbour.row() == [("waiting", 1, "")]
    assert harbour.holder() != "", "nobody has given it back"
    harbour.go_on.set()
    harbour.machine.worker()
    is_compared_by_the_next(harbour)


def test_what_its_process_finishes_after_the_worker_was_killed_is_kept(harbour: Harbour) -> None:
    harbour.go_on.set()
    wait_for(lambda: not harbour.apart(), "its process ends", 60, log=harbour.machine.log)
    assert harbour.row() == [("done", 1, "")]
    assert harbour.machine.rows(CLAIM) == [("", 0)], "it has given the claim back"
    assert "Traceback" not in harbour.machine.whole_log()


def is_compared_by_the_next(harbour: Harbour) -> None:
    machine = harbour.machine
    wait_for(lambda: machine.rows(ROW), "the next one compares it", 90, is_so=is_done_at_second, log=machine.log)
    wait_for(lambda: machine.rows(CLAIM), "and gives its claim back", is_so=[("", 0)].__eq__, log=machine.log)
    assert machine.rows("SELECT position FROM approvals_bundlecomparison") == [(None,)]


def is_done_at_second(rows: list[tuple[object, ...]]) -> bool:
    return rows == [("done", 2, "")]
