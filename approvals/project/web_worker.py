"""Gunicorn's threads, for whole requests only.

A request is gathered by the main loop, which holds any number of connections, and handed to a thread once all of it is
there. What the client does not read at once of the answer, the main loop sends too. So who sends or reads slowly, or
sends half a request, holds no thread. One address has so many connections at most, unless it is a trusted proxy.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any

from gunicorn import util
from gunicorn.workers.gthread import TConn, ThreadWorker

from approvals.project import configuration

HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
SEND_SECONDS = 30.0
LINGER_SECONDS = 2.0
CHUNK = 64 * 1024
MAX_HEAD = 64 * 1024
# Above what Django reads (DATA_UPLOAD_MAX_MEMORY_SIZE).
MAX_BODY = 5 * 1024 * 1024
# Of one answer, and of all answers of one worker, that the main loop sends to clients who read slowly.
MAX_OUTGOING = 16 * 1024 * 1024
MAX_ALL_OUTGOING = 128 * 1024 * 1024
READ_SECONDS = 120.0
MAX_LINGER_BYTES = 64 * 1024
# Of all unfinished requests of one worker.
MAX_GATHERED = 64 * 1024 * 1024
CONNECTIONS_OF_ONE_ADDRESS = 100
END_OF_HEAD = b"\r\n\r\n"
LENGTHS = re.compile(rb"\ncontent-length[ \t]*:([^\r\n]*)", re.IGNORECASE)
NUMBER = re.compile(rb"0|[1-9]\d{0,11}")
CHUNKED = re.compile(rb"\ntransfer-encoding[ \t]*:", re.IGNORECASE)
CONTINUE = re.compile(rb"\r\nexpect:[ \t]*100-continue", re.IGNORECASE)


class Unacceptable(Exception):
    """A request that no thread is given: its body has no length, or one that is too large."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.answer = f"HTTP/1.1 {status} {status.phrase}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


class Budget:
    """How many bytes of answers the threads of one worker may leave to its main loop."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._lock = threading.Lock()

    def take(self, count: int) -> bool:
        """Whether there were so many left, which are taken then."""
        with self._lock:
            is_enough = count <= self._left
            self._left -= count if is_enough else 0
        return is_enough

    def give_back(self, count: int) -> None:
        with self._lock:
            self._left += count


class BoundedSocket(socket.socket):
    """Takes what its client does not read at once into `outgoing`; where that is too much it blocks, for some time."""

    budget: Budget
    outgoing: bytearray
    blocked_since: float | None = None

    def setblocking(self, flag: bool) -> None:
        self.settimeout(SEND_SECONDS if flag else 0.0)

    def sendall(self, data: Any, flags: int = 0) -> None:
        rest = memoryview(data).cast("B")
        if not self.outgoing:
            rest = rest[self.send_at_once(rest) :]
        if len(self.outgoing) + len(rest) <= MAX_OUTGOING and self.budget.take(len(rest)):
            self.outgoing += rest
            return
        self.blocked_since = self.blocked_since or time.monotonic()
        waiting = bytes(self.outgoing)
        self.clear()
        super().sendall(waiting)
        super().sendall(rest)

    def send_at_once(self, data: Any) -> int:
        """Send what the kernel takes without waiting; returns how many bytes that was."""
        self.settimeout(0.0)
        try:
            return self.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        finally:
            self.settimeout(SEND_SECONDS)

    def clear(self, count: int | None = None) -> None:
        """Forget the first `count` bytes of `outgoing`, or all."""
        gone = len(self.outgoing) if count is None else count
        del self.outgoing[:gone]
        self.budget.give_back(gone)


class Connection(TConn):
    """A client, with what it has sent of its next request."""

    def __init__(self, cfg: Any, sock: BoundedSocket, client: Any, server: Any, leave: Callable[..., None]) -> None:
        super().__init__(cfg, sock, client, server)
        self.peer = str(client[0]) if isinstance(client, tuple) else ""
        self.gathered = bytearray()
        self.deadline = 0.0
        self.wanted: int | None = None
        # Its body is not read: after the answer nobody knows where the next request would begin.
        self.lingered = 0
        self._leave = leave

    def init(self) -> None:
        super().init()
        if self.gathered:
            whole, self.gathered = bytes(self.gathered), bytearray()
            self.parser.unreader.unread(whole)

    def close(self, graceful: bool = False) -> None:
        self._leave(self, graceful)


class BufferingWorker(ThreadWorker):
    """As gthread, but for what is said above."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.gathering: dict[Connection, None] = {}
        self.working: dict[Connection, None] = {}
        self.sending: dict[Connection, Any] = {}
        self.lingering: dict[Connection, None] = {}
        self.budget = Budget(MAX_ALL_OUTGOING)
        self.peers: Counter[str] = Counter()
        self.gathered_bytes = 0
        self.trusted = configuration.read()["TRUSTED_PROXIES"]

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        super().check_config(cfg, log)
        if cfg.is_ssl:
            raise RuntimeError("certfile and keyfile are not supported: let a proxy in front speak TLS")

    def accept(self, listener: Any) -> None:
        try:
            accepted, client = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        sock = BoundedSocket(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        sock.budget, sock.outgoing = self.budget, bytearray()
        conn = Connection(self.cfg, sock, client, listener.getsockname(), self.leave)
        self.nr_conns += 1
        self.peers[conn.peer] += 1
        if self.peers[conn.peer] > CONNECTIONS_OF_ONE_ADDRESS and not self._is_trusted(conn.peer):
            self._drop(conn)
        else:
            self.gather(conn)

    def gather(self, conn: Connection, begin: bytes = b"") -> None:
        """Wait for the rest of a request of which `begin` has come."""
        conn.sock.setblocking(False)
        conn.sock.blocked_since = None
        conn.gathered, conn.wanted = bytearray(begin), None
        conn.deadline = time.monotonic() + HEAD_SECONDS
        self.gathering[conn] = None
        self.gathered_bytes += len(begin)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_data, conn))
        if begin:
            self._judge(conn)

    def on_client_socket_readable(self, conn: Connection, client: Any) -> None:
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        self.gather(conn)

    def enqueue_req(self, conn: Connection) -> None:
        self.working[conn] = None
        super().enqueue_req(conn)

    def finish_request(self, conn: Connection, fs: Any) -> None:
        self.working.pop(conn, None)
        if conn.sock.outgoing:
            conn.sock.setblocking(False)
            conn.deadline = time.monotonic() + READ_SECONDS
            self.sending[conn] = fs
            self.poller.register(conn.sock, selectors.EVENT_WRITE, partial(self._on_writable, conn))
            return
        is_kept = self.alive and not fs.cancelled() and fs.exception() is None and fs.result() is True
        left = conn.parser.unreader.take_buffered() if is_kept else b""
        if left:
            self.gather(conn, left)
        else:
            super().finish_request(conn, fs)

    def murder_pending(self) -> None:
        """Called once a second, or more often: cut off who has taken too long."""
        super().murder_pending()
        now = time.monotonic()
        for conn in [one for one in self.gathering if one.deadline < now]:
            self._forget(conn)
            self._drop(conn)
        for conn in [one for one in self.sending if one.deadline < now]:
            self._give_up(conn)
        for conn in [one for one in self.lingering if one.deadline < now]:
            self._end(conn)
        for conn in self.working:
            since = conn.sock.blocked_since
            if since is not None and now - since > SEND_SECONDS:
                # Its thread, which waits for the client, gets an error.
                with contextlib.suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RDWR)

    def leave(self, conn: Connection, graceful: bool) -> None:
        """Close; gracefully without waiting here for a client that does not."""
        self.peers[conn.peer] -= 1
        if not self.peers[conn.peer]:
            del self.peers[conn.peer]
        conn.sock.clear()
        if not graceful or not self.alive:
            util.close(conn.sock)
            return
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            conn.sock.setblocking(False)
            conn.deadline = time.monotonic() + LINGER_SECONDS
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_lingering, conn))
            self.lingering[conn] = None
        except OSError:
            util.close(conn.sock)

    def _cap_keepalive(self, deadline: float) -> None:
        """Once, when the worker begins to stop."""
        super()._cap_keepalive(deadline)
        for conn in self.gathering:
            conn.deadline = min(conn.deadline, deadline)

    def _on_data(self, conn: Connection, _: Any) -> None:
        data = _received(conn.sock)
        if data is None:
            return
        if not data:
            self._forget(conn)
            self._drop(conn)
            return
        conn.gathered += data
        self.gathered_bytes += len(data)
        self._judge(conn)

    def _judge(self, conn: Connection) -> None:
        """Hand it to a thread if all of the request is there."""
        try:
            if conn.wanted is None:
                self._read_head(conn)
        except Unacceptable as exc:
            self._forget(conn)
            self._refuse(conn, exc)
            return
        there = len(conn.gathered)
        if conn.wanted is not None and there >= conn.wanted:
            self._forget(conn)
            conn.data_ready = True
            self.enqueue_req(conn)
        elif conn.wanted is None and there > MAX_HEAD:
            self._forget(conn)
            self._refuse(conn, Unacceptable(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        elif self.gathered_bytes > MAX_GATHERED:
            self._forget(conn)
            self._drop(conn)

    def _read_head(self, conn: Connection) -> None:
        """How many bytes to wait for, once the head is there. Raises Unacceptable: no thread ever waits for a body."""
        end = conn.gathered.find(END_OF_HEAD)
        if end < 0:
            return
        head = bytes(conn.gathered[: end + 2])
        conn.wanted = end + len(END_OF_HEAD) + _length_of_body(head)
        if len(conn.gathered) < conn.wanted:
            conn.deadline = time.monotonic() + BODY_SECONDS
            if CONTINUE.search(head):
                with contextlib.suppress(OSError):
                    conn.sock.send(util.to_bytestring("HTTP/1.1 100 Continue\r\n\r\n"))

    def _forget(self, conn: Connection) -> None:
        """It is gathered no more."""
        del self.gathering[conn]
        self.gathered_bytes -= len(conn.gathered)
        self.poller.unregister(conn.sock)

    def _drop(self, conn: Connection) -> None:
        self.nr_conns -= 1
        conn.close()

    def _refuse(self, conn: Connection, why: Unacceptable) -> None:
        with contextlib.suppress(OSError):
            conn.sock.send(why.answer)
        self.nr_conns -= 1
        conn.close(graceful=True)

    def _on_writable(self, conn: Connection, _: Any) -> None:
        try:
            conn.sock.clear(conn.sock.send(conn.sock.outgoing[:CHUNK]))
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._give_up(conn)
            return
        if not conn.sock.outgoing:
            self.poller.unregister(conn.sock)
            self.finish_request(conn, self.sending.pop(conn))

    def _give_up(self, conn: Connection) -> None:
        """Its client does not read the answer."""
        del self.sending[conn]
        self.poller.unregister(conn.sock)
        self._drop(conn)

    def _on_lingering(self, conn: Connection, _: Any) -> None:
        data = _received(conn.sock)
        conn.lingered += len(data or b"")
        if data == b"" or conn.lingered > MAX_LINGER_BYTES:
            self._end(conn)

    def _end(self, conn: Connection) -> None:
        del self.lingering[conn]
        self.poller.unregister(conn.sock)
        util.close(conn.sock)

    def _is_trusted(self, peer: str) -> bool:
        """A proxy, or a Unix socket, which has no address."""
        if not peer:
            return True
        address = ipaddress.ip_address(peer.partition("%")[0])
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return any((mapped or address) in network for network in self.trusted)


def _length_of_body(head: bytes) -> int:
    """In bytes. Raises Unacceptable where gunicorn might read another length from this head, or one too large."""
    if CHUNKED.search(head):
        raise Unacceptable(HTTPStatus.LENGTH_REQUIRED)
    lengths = [found.strip(b" \t") for found in LENGTHS.findall(head)]
    if not lengths:
        return 0
    if len(lengths) > 1 or not NUMBER.fullmatch(lengths[0]):
        raise Unacceptable(HTTPStatus.BAD_REQUEST)
    length = int(lengths[0])
    if length > MAX_BODY:
        raise Unacceptable(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return length


def _received(sock: socket.socket) -> bytes | None:
    """What has come, b"" at the end or after an error, None where nothing has."""
    try:
        return sock.recv(CHUNK)
    except (BlockingIOError, InterruptedError):
        return None
    except OSError:
        return b""
