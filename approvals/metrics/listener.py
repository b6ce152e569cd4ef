"""Each process's own /metrics, on an address that only the operator's network reaches."""

from __future__ import annotations

import logging
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.conf import settings
from django.db import close_old_connections, connections

from approvals.metrics.exposition import exposition
from approvals.metrics.views import may_read

logger = logging.getLogger(__name__)
PATH = "/metrics"
MOST_AT_ONCE = 4
# For a whole request: who sends more slowly is cut off.
PATIENCE_SECONDS = 5.0
# These tell of the records and the queue too.
OF_SERVICE = frozenset({"web", "beat"})


def serve(process: str) -> ThreadingHTTPServer | None:
    """Serve /metrics of this process at PRATIQUE_METRICS_ADDRESS from now on; None where that is empty.

    A port that is taken is told in the log and stops nothing else. Where PRATIQUE_METRICS_TOKEN is set it is asked for
    here as well. The processes of gunicorn share the port.
    """
    address = settings.PRATIQUE["METRICS_ADDRESS"]
    if address is None:
        return None
    host, port = address
    try:
        server = Listener(host, port, process)
    except OSError as exc:
        logger.error("cannot serve metrics", extra={"host": host, "port": port, "error": type(exc).__name__})
        return None
    threading.Thread(target=server.serve_forever, daemon=True, name="metrics").start()
    logger.info("serving metrics", extra={"host": host, "port": port})
    return server


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 16

    def __init__(self, host: str, port: int, process: str) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.allow_reuse_port = process == "web"
        self.is_of_service = process in OF_SERVICE
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__((host, port), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        # The timeout is for each read: a client that sends a byte now and then is cut off by the timer.
        cut_off = threading.Timer(PATIENCE_SECONDS, _shut, [request])
        cut_off.daemon = True
        cut_off.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            cut_off.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.debug("a scrape broke off", exc_info=sys.exception())


class Handler(BaseHTTPRequestHandler):
    server: Listener
    timeout = PATIENCE_SECONDS
    server_version, sys_version = "pratique", ""

    def do_GET(self) -> None:
        is_open = not settings.PRATIQUE["METRICS_TOKEN"] or may_read(self.headers.get("Authorization", ""))
        if self.path.partition("?")[0] != PATH or not is_open:
            self._answer(404, b"", "text/plain")
            return
        close_old_connections()
        try:
            body, content_type = exposition(of_service=self.server.is_of_service)
        finally:
            connections.close_all()
        self._answer(200, body, content_type)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
        """Nothing: a scrape every few seconds is no news."""

    def _answer(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
