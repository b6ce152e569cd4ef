"""The bundles of scenarios.py, served over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from approvals.management.demo.seeds import pack_bundles
from tests.chaos.scenarios import VERSIONS, boat


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return None


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tmp_path = tmp_path_factory.mktemp("bundles")
    for version in VERSIONS:
        folder = tmp_path / "source" / "boat" / version / "manifests"
        folder.mkdir(parents=True)
        (folder / "all.yaml").write_text(yaml.safe_dump_all(boat(version)))
    pack_bundles(tmp_path / "source", tmp_path / "bundles")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "bundles")))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
