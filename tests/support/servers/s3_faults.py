"""A way to an S3 server that understands what passes: what comes of a call is for the test to say."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.support.patience import scaled


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """`send` lets the server do it, and gives what it answers."""

    method: str
    path: str
    send: Callable[[], Answer]


Fault = Callable[[Call], Answer]


def refusal(status: int, code: str) -> Answer:
    """As S3 words it."""
    return Answer(status, f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>no</Message></Error>'.encode())


class Proxy:
    """`url` is the way to `there`. `fault` is asked for the answer of each call; `calls` are those that came."""

    def __init__(self, there: str, fault: Fault):
        self.fault, self.calls = fault, list[tuple[str, str]]()
        self._there = urlsplit(there).netloc
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join(scaled(20))
        self._server.server_close()

    def _sent(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        connection = http.client.HTTPConnection(self._there, timeout=scaled(20))
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            found = connection.getresponse()
            data = found.read()
            kept = [(name, value) for name, value in found.getheaders() if name.lower() not in _OWN]
            return Answer(found.status, data, tuple(kept))

    def _handler(proxy) -> type[BaseHTTPRequestHandler]:  # noqa: N805 -- `self` is the handler's
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                proxy.calls.append((self.command, self.path))
                given = dict(self.headers.items())
                call = Call(self.command, self.path, lambda: proxy._sent(self.command, self.path, given, body))
                self.answer(proxy.fault(call))

            def answer(self, found: Answer) -> None:
                with contextlib.suppress(OSError):
                    self.send_response(found.status)
                    for name, value in found.headers:
                        self.send_header(name, value)
                    if not any(name.lower() == "content-length" for name, _ in found.headers):
                        self.send_header("Content-Length", str(len(found.body)))
                    self.end_headers()
                    self.wfile.write(found.body)
                    self.wfile.flush()

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on  # noqa: N815 -- as http.server names them

        return Handler


# Said anew by who passes it on.
_OWN = {"content-length", "transfer-encoding", "connection", "date", "server"}


@contextmanager
def between(there: str, fault: Fault) -> Iterator[Proxy]:
    made = Proxy(there, fault)
    try:
        yield made
    finally:
        made.close()
