"""HTTPS in, answers out: one thread a connection, watches streamed as they happen."""

from __future__ import annotations

import http.server
import json
import socketserver
import ssl
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from provisioner.sandbox.calls import SandboxAnswer, SandboxCall
from provisioner.sandbox.status import StatusRefusal

MAX_BODY_BYTES = 3 * 1024 * 1024
IDLE_SECONDS = 120
HANDSHAKE_SECONDS = 10


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """TLS is shaken hands in the connection's own thread, so that a slow client holds up nobody."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], context: ssl.SSLContext, answer: Callable[[SandboxCall], SandboxAnswer]
    ):
        super().__init__(address, _Handler)
        self.context = context
        self.answer = answer

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(HANDSHAKE_SECONDS)
        try:
            secure = self.context.wrap_socket(request, server_side=True)
        except (ssl.SSLError, OSError):
            return
        secure.settimeout(IDLE_SECONDS)
        try:
            _Handler(secure, client_address, self)
        finally:
            secure.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes: the second would wait for the acknowledgement of the first, 40 ms a call.
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the standard library's name
        return

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the standard library's names

    def _serve(self) -> None:
        try:
            call = self._call()
        except StatusRefusal as exc:
            self.close_connection = True
            self._send(SandboxAnswer(exc.code, exc.body()))
            return
        answer = self.server.answer(call)
        if answer.stream is not None:
            self._stream(answer)
        else:
            self._send(answer)

    def _call(self) -> SandboxCall:
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY_BYTES:
            raise StatusRefusal(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MAX_BODY_BYTES}")
        headers: dict[str, list[str]] = {}
        for name, value in self.headers.items():
            headers.setdefault(name.lower(), []).append(value)
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        body = self.rfile.read(length) if length else b""
        if len(body) < length:  # who sent it broke off, and may not have meant it
            raise StatusRefusal(400, "BadRequest", "unexpected EOF")
        return SandboxCall(self.command, parts.path, query, headers, body)

    def _send(self, answer: SandboxAnswer) -> None:
        is_text = isinstance(answer.body, str)
        body = answer.body.encode() if is_text else json.dumps(answer.body).encode()
        self.send_response(answer.code)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(body)))
        self._warn(answer)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, answer: SandboxAnswer) -> None:
        self.send_response(answer.code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self._warn(answer)
        self.end_headers()
        self.wfile.flush()
        try:
            for event in answer.stream or ():
                self._chunk(json.dumps(event).encode() + b"\n")
        except StatusRefusal as exc:
            self._chunk(json.dumps({"type": "ERROR", "object": exc.body()}).encode() + b"\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _warn(self, answer: SandboxAnswer) -> None:
        for words in answer.warnings:
            quoted = words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
            self.send_header("Warning", f'299 - "{quoted}"')
