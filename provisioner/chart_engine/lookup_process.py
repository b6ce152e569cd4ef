"""The child process for a chart that looks things up: it answers the lookups itself, and renders no other chart."""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import secrets
import socket
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from provisioner.chart_engine.process import main

_GET_FLAGS, _SET_FLAGS, _IS_UP = 0x8913, 0x8914, 1
_REQUEST = "16sH14x"
_VERSION = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?")

# Each with api_version, kind, namespace, name, and its body or None.
Known = Sequence[Mapping[str, Any]]


@contextmanager
def answering(known: Known, api_versions: Sequence[str], *, is_open: bool = False) -> Iterator[str]:
    """The address of a server that answers with these objects; `api_versions` are the cluster's, kinds included.

    Where it `is_open`, anything may be looked up, and whatever else is not found.
    """
    # A network of one's own begins with a loopback that is down; where there is none of one's own, it is up.
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = fcntl.ioctl(any_socket, _GET_FLAGS, struct.pack(_REQUEST, b"lo", 0))
        flags = struct.unpack(_REQUEST, asked)[1]
        if not flags & _IS_UP:
            fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack(_REQUEST, b"lo", flags | _IS_UP))
    secret = f"/{secrets.token_hex(16)}"
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(secret, _Answers(known, api_versions, is_open=is_open)))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{secret}"
    finally:
        server.shutdown()
        server.server_close()


class _Answers:
    """What is answered to a path. A kind is served under its own name, so that a path says which one is meant."""

    def __init__(self, known: Known, api_versions: Sequence[str], *, is_open: bool):
        self._is_open = is_open
        self._bodies = {(one["api_version"], one["kind"], one["namespace"], one["name"]): one["body"] for one in known}
        kinds = {(one["api_version"], one["kind"]) for one in known}
        for text in api_versions:
            version, _, kind = text.rpartition("/")
            if version and kind[:1].isupper():
                kinds.add((version, kind))
        self._kinds = sorted(kinds)

    def of(self, path: str) -> tuple[int, Mapping[str, Any]]:
        root, *parts = path.strip("/").split("/")
        taken = 1 if root == "api" else 2
        version, rest = "/".join(parts[:taken]), parts[taken:]
        if not rest:
            kinds = [kind for other, kind in self._kinds if other == version]
            # Of a kind that no list has, Helm asks for the name alone, as if it were a version.
            if self._is_open and not _VERSION.fullmatch(parts[-1] if parts else ""):
                return _NOT_FOUND
            if not kinds and not self._is_open:
                return _refused(f"config.lookup names nothing in {version[:200]}")
            listed = [{"name": kind, "kind": kind, "namespaced": True, "verbs": ["get", "list"]} for kind in kinds]
            return 200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": listed}
        namespace = rest[1] if rest[0] == "namespaces" and len(rest) > 2 else ""
        kind, *name = rest[2:] if namespace else rest
        if not name:
            if self._is_open:
                return _NOT_FOUND
            return _refused(f"a lookup of every {kind} is not answered: config.lookup names single objects")
        return self._object(version, kind, namespace, name[0])

    def _object(self, version: str, kind: str, namespace: str, name: str) -> tuple[int, Mapping[str, Any]]:
        for place in (namespace, ""):  # Helm leaves out the namespace of what has none
            if (version, kind, place, name) in self._bodies:
                body = self._bodies[version, kind, place, name]
                return (200, body) if body is not None else _NOT_FOUND
        if self._is_open:
            return _NOT_FOUND
        where = f"{namespace}/{name}" if namespace else name
        return _refused(f"config.lookup does not name {kind} {where[:300]}")


def _refused(words: str) -> tuple[int, Mapping[str, Any]]:
    return 403, _status(403, "Forbidden", words)


def _status(code: int, reason: str, words: str) -> Mapping[str, Any]:
    return {
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": words
    }  # fmt: skip


_NOT_FOUND = 404, _status(404, "NotFound", "it does not exist")


def _handler(secret: str, answers: _Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            is_ours = path.startswith(f"{secret}/")
            code, body = answers.of(path.removeprefix(secret)) if is_ours else _refused("not for you")
            data = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    return Handler


def answer_lookups(job: dict[str, Any]) -> AbstractContextManager[str]:
    """The address of a server in this process that answers the lookups of a job."""
    return answering(job["lookups"], job["api_versions"], is_open=job["is_open"])


if __name__ == "__main__":
    main(answer_lookups)
