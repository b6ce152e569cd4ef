"""An API server behind a line that fails: what comes back from the next writes is up to the test."""

from __future__ import annotations

import base64
import http.server
import json
import ssl
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from provisioner.cluster.client.api import ClusterClient
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.patience import scaled
from tests.support.servers.http import Authority, make_authority

# Answers in the place of the API server, or None: then the write goes through.
Trouble = Callable[[], "tuple[int, Any, dict[str, str]] | None"]
_KEPT = ("Content-Type", "Accept", "Impersonate-User", "Impersonate-Group")


class Line:
    """Every write (no dry-run) takes the next of `troubles` first, while there are any."""

    def __init__(self, endpoint: Endpoint):
        self.troubles: list[Trouble] = []
        self.writes = 0
        self.dry_runs = 0
        self.reads = 0
        self.loses_answers = 0
        self._endpoint = endpoint
        self._context = ssl.create_default_context(cadata=endpoint.ca_pem)

    def cluster(self, port: int, authority: Authority) -> ClusterClient:
        ca = base64.b64encode(authority.ca_pem.encode()).decode()
        config = {
            "current-context": "a",
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "clusters": [
                {"name": "a", "cluster": {"server": f"https://127.0.0.1:{port}", "certificate-authority-data": ca}}
            ],
            "users": [{"name": "a", "user": {"token": self._endpoint.tokens["admin"]}}],
        }
        return ClusterClient.connect(config, timeout_seconds=scaled(60))

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else None
        is_write = handler.command in {"PATCH", "POST", "PUT", "DELETE"}
        is_dry = "dryRun" in handler.path or (body is not None and b'"dryRun"' in body)
        if not is_write:
            self.reads += 1
        elif is_dry:
            self.dry_runs += 1
        else:
            self.writes += 1
            trouble = self.troubles.pop(0)() if self.troubles else None
            if trouble is not None:
                _send(handler, trouble[0], json.dumps(trouble[1]).encode(), trouble[2])
                return
        status, data, kind = self._forward(handler, body)
        if is_write and not is_dry and self.loses_answers:
            self.loses_answers -= 1
            handler.close_connection = True
            return
        _send(handler, status, data, {"Content-Type": kind})

    def _forward(self, handler: http.server.BaseHTTPRequestHandler, body: bytes | None) -> tuple[int, bytes, str]:
        headers = {key: handler.headers[key] for key in _KEPT if handler.headers[key]}
        headers["Authorization"] = handler.headers["Authorization"]
        asked = urllib.request.Request(
            self._endpoint.server + handler.path, method=handler.command, data=body, headers=headers
        )
        try:
            with urllib.request.urlopen(asked, timeout=scaled(60), context=self._context) as answer:
                return answer.status, answer.read(), answer.headers.get_content_type()
        except urllib.error.HTTPError as exc:
            return exc.code, exc.read(), exc.headers.get_content_type()


@contextmanager
def flaky(endpoint: Endpoint) -> Iterator[tuple[Line, ClusterClient]]:
    """The line, and the cluster as it looks through it."""
    line = Line(endpoint)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            line.answer(self)

        do_PATCH = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 -- named by http.server

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    with tempfile.TemporaryDirectory() as folder:
        authority = make_authority(Path(folder))
        server.socket = authority.server_context().wrap_socket(server.socket, server_side=True)
        cluster = line.cluster(server.server_address[1], authority)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield line, cluster
    finally:
        server.shutdown()
        server.server_close()


def status(code: int, reason: str, message: str, **headers: str) -> Trouble:
    """A refusal in the API server's form."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return lambda: (code, body, {key.replace("_", "-"): value for key, value in headers.items()})


def _send(handler: http.server.BaseHTTPRequestHandler, code: int, body: bytes, headers: dict[str, str]) -> None:
    handler.send_response(code)
    handler.send_header("Content-Length", str(len(body)))
    for key, value in {"Content-Type": "application/json", **headers}.items():
        handler.send_header(key, value)
    handler.end_headers()
    handler.wfile.write(body)
