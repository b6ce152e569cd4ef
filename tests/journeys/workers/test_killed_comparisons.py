"""A worker is killed (-9) while it fetches a bundle to compare: the next one goes on, and nobody asks again."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tests.support.journeys.contents.catalogs import operator_files
from tests.support.journeys.machine import Machine
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import wait_for
from tests.support.servers.http import Asked, FileServer, Reply
from tests.support.servers.registry import CONFIG_TYPE, LAYER_TYPE, MANIFEST_TYPE, digest_of, layer_of

ROW = "SELECT state, attempts, problem FROM approvals_bundlecomparison"
PEOPLE = ("-m", "tests.support.program", "tests.support.journeys.comparing")


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


@pytest.mark.thorough
def test_kill_9_of_the_worker_while_it_fetches_loses_no_comparison(
    machine: Machine, own_sandbox: Endpoint, http_server: FileServer, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig.people"
    own_sandbox.write(kubeconfig)
    machine.make_database()
    asked: list[str] = []
    go_on = threading.Event()
    machine.run(*PEOPLE, kubeconfig, slow_image(http_server, asked, go_on))
    worker = machine.worker()
    try:
        wait_for(lambda: len(asked) >= 1, "a worker fetches it", 60, log=machine.log)
        assert machine.rows(ROW) == [("waiting", 1, "")]
        machine.kill(worker)
    finally:
        go_on.set()
    machine.worker()
    wait_for(lambda: machine.rows(ROW) == [("done", 2, "")], "the next one compares it", 90, log=machine.log)
    assert machine.rows("SELECT position FROM approvals_bundlecomparison") == [(None,)]
