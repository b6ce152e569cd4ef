"""Connections that are opened and not finished."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

# Less than a connection may stay half-open (10 s), on a machine that has much other work.
PROMPT = 8.0
HEAD = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\n"
# A body that is read before anybody is asked for anything: of a form with files, for the token in it.
READ = HEAD + b"Cookie: csrftoken=" + b"x" * 32 + b"\r\nContent-Type: multipart/form-data; boundary=x\r\n"
HALVES = {
    "nothing": b"",
    "half a line": b"GET /sig",
    "half a head": HEAD,
    "half a body": HEAD + b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\nwith=",
    "half a body that is read": READ + b"Content-Length: 4000000\r\n\r\n--x\r\n",
}


@contextlib.contextmanager
def holding(port: int, count: int, said: bytes) -> Iterator[list[socket.socket]]:
    """`count` connections that have said this much."""
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(count):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            sock.sendall(said)
            held.append(sock)
        yield held
