"""Connections that are opened and not finished."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterable, Iterator

from tests.support.patience import scaled

# What a quiet machine gives a connection and an answer: far above what they take.
SECONDS = 60.0
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
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=scaled(SECONDS)))
            sock.sendall(said)
            held.append(sock)
        yield held


def answered(held: Iterable[socket.socket]) -> int:
    """How many of these connections were answered or closed by the server."""
    poll = select.poll()
    for sock in held:
        poll.register(sock, select.POLLIN)
    return len(poll.poll(0))
