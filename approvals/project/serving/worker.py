"""Gunicorn's threads, for whole requests only.

A request is gathered by the main loop, which holds any number of connections, and handed to a thread once all of it is
there. What the client does not read at once of the answer, the main loop sends too. So who sends or reads slowly, or
sends half a request, holds no thread. Where connections, file descriptors or memory run short, whoever holds most of
them gives way.
"""

from __future__ import annotations

import contextlib
import errno
import resource
import selectors
import socket
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from gunicorn import util
from gunicorn.workers.gthread import TConn, ThreadWorker

from approvals.limits.addresses import UNKNOWN, counted_as
from approvals.project import configuration
from approvals.project.serving.heads import Unacceptable, is_waiting_to_continue, length_of_request
from approvals.project.serving.shares import Shares
from approvals.project.serving.sockets import MAX_ALL_OUTGOING, SEND_SECONDS, BoundedSocket, Budget

HEAD_SECONDS = 10.0
BODY_SECONDS = 30.0
READ_SECONDS = 120.0
LINGER_SECONDS = 2.0
MAX_LINGER_BYTES = 64 * 1024
# What one worker keeps of its file descriptors for the database, Redis, clusters and files.
RESERVED_DESCRIPTORS = 128
# Where there is no place left, so many connections that wait are closed for those that come.
GIVEN_WAY = 8
# After accepting failed, as without file descriptors: it would fail again at once.
REST_SECONDS = 0.5
USUAL = {errno.EAGAIN, errno.EINTR, errno.ECONNABORTED}


class Connection(TConn):
    """A client, with what it has sent of its next request."""

    def __init__(self, cfg: Any, sock: BoundedSocket, client: Any, server: Any, leave: Callable[..., None]) -> None:
        super().__init__(cfg, sock, client, server)
        self.peer = str(client[0]) if isinstance(client, tuple) else ""
        self.counted_as = counted_as(self.peer)
        self.gathered = bytearray()
        self.deadline = 0.0
        self.wanted: int | None = None
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
        self.worker_connections = places(self.cfg.worker_connections)
        self.gathering: dict[Connection, None] = {}
        self.working: dict[Connection, None] = {}
        self.sending: dict[Connection, Any] = {}
        self.lingering: dict[Connection, None] = {}
        self.budget = Budget(MAX_ALL_OUTGOING)
        self.shares = Shares(configuration.read()["TRUSTED_PROXIES"])
        self.rests_until = 0.0
        self.is_short = False

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        super().check_config(cfg, log)
        if cfg.is_ssl:
            raise RuntimeError("certfile and keyfile are not supported: let a proxy in front speak TLS")

    def set_accept_enabled(self, enabled: bool) -> None:
        """Asked for in each turn of the main loop."""
        super().set_accept_enabled(enabled and time.monotonic() >= self.rests_until)

    def accept(self, listener: Any) -> None:
        try:
            accepted, client = listener.accept()
        except OSError as exc:
            if exc.errno not in USUAL:
                self._rest(exc)
            return
        sock = BoundedSocket.of(accepted, self.budget)
        conn = Connection(self.cfg, sock, client, listener.getsockname(), self.leave)
        self.nr_conns += 1
        if self.shares.enter(conn.peer):
            self.gather(conn)
        else:
            self._drop(conn)

    def gather(self, conn: Connection, begin: bytes = b"") -> None:
        """Wait for the rest of a request of which `begin` has come."""
        conn.sock.setblocking(False)
        conn.sock.blocked_since = None
        conn.gathered, conn.wanted = bytearray(), None
        conn.deadline = time.monotonic() + HEAD_SECONDS
        self.gathering[conn] = None
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_data, conn))
        if begin:
            self._add(conn, begin)

    def on_client_socket_readable(self, conn: Connection, client: Any) -> None:
        self._wake(conn)
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
        """Called in each turn of the main loop, at least once a second: cut off who has taken too long, or too much."""
        super().murder_pending()
        now = time.monotonic()
        for conn in _late(self.gathering, now):
            self._forget(conn)
            self._drop(conn)
        for conn in _late(self.sending, now):
            self._give_up(conn)
        for conn in _late(self.lingering, now):
            self._end(conn)
        for conn in self.working:
            since = conn.sock.blocked_since
            if since is not None and now - since > SEND_SECONDS:
                # Its thread, which waits for the client, gets an error.
                with contextlib.suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RDWR)
        # Here only: of those whose events the loop is at, none may go.
        self._spare_memory()
        if self.is_short or self.nr_conns >= self.worker_connections:
            self.is_short = False
            self._make_room()

    def leave(self, conn: Connection, graceful: bool) -> None:
        """Close; gracefully without waiting here for a client that does not, but with its place still taken."""
        conn.sock.forget(len(conn.sock.outgoing))
        try:
            if graceful and self.alive:
                conn.sock.shutdown(socket.SHUT_WR)
                conn.sock.setblocking(False)
                conn.deadline = time.monotonic() + LINGER_SECONDS
                self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_lingering, conn))
                self.lingering[conn] = None
                self.nr_conns += 1
                return
        except OSError:  # it has closed as well
            pass
        self.shares.leave(conn.peer)
        util.close(conn.sock)

    def _cap_keepalive(self, deadline: float) -> None:
        """Once, when the worker begins to stop."""
        super()._cap_keepalive(deadline)
        for conn in (*self.gathering, *self.lingering):
            conn.deadline = min(conn.deadline, deadline)

    def _on_data(self, conn: Connection, _: Any) -> None:
        data = conn.sock.received()
        if data:
            self._add(conn, data)
        elif data == b"":
            self._forget(conn)
            self._drop(conn)

    def _add(self, conn: Connection, data: bytes) -> None:
        """Hand it to a thread if all of the request is there. No thread ever waits for a body."""
        conn.gathered += data
        self.shares.gather(conn.peer, len(data))
        try:
            if conn.wanted is None:
                conn.wanted = length_of_request(conn.gathered)
                self._await_body(conn)
        except Unacceptable as exc:
            self._forget(conn)
            self._refuse(conn, exc)
            return
        if conn.wanted is not None and len(conn.gathered) >= conn.wanted:
            self._forget(conn)
            conn.data_ready = True
            self.enqueue_req(conn)

    def _await_body(self, conn: Connection) -> None:
        if conn.wanted is None or len(conn.gathered) >= conn.wanted:
            return
        conn.deadline = time.monotonic() + BODY_SECONDS
        if is_waiting_to_continue(conn.gathered):
            with contextlib.suppress(OSError):
                conn.sock.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _spare_memory(self) -> None:
        """Where unfinished requests are too large together, those of whoever has most of them go, the largest first."""
        while (greedy := self.shares.too_much()) is not None:
            of_one = (conn for conn in self.gathering if conn.counted_as == greedy)
            largest = max(of_one, key=lambda conn: len(conn.gathered))
            self._forget(largest)
            self._drop(largest)

    def _make_room(self) -> None:
        """There is no place left: of whoever has most, the connections go that wait longest; else answered ones."""
        greedy = self.shares.greediest()
        idle = [*self.lingering, *self.keepalived_conns, *self.gathering]
        first = [conn for conn in idle if conn.counted_as == greedy] or list(self.lingering)
        for conn in first[:GIVEN_WAY]:
            if conn in self.lingering:
                self._end(conn)
                continue
            if conn in self.gathering:
                self._forget(conn)
            else:
                self._wake(conn)
            self._drop(conn)

    def _rest(self, exc: OSError) -> None:
        """Accepting failed for want of something: it is tried again a little later, not at once."""
        if self.rests_until < time.monotonic() - 10 * REST_SECONDS:
            self.log.warning("cannot accept connections: %s", errno.errorcode.get(exc.errno or 0, UNKNOWN))
        self.rests_until = time.monotonic() + REST_SECONDS
        self.is_short = True
        self.set_accept_enabled(False)

    def _wake(self, conn: Connection) -> None:
        """It is not kept idle any more."""
        self.poller.unregister(conn.sock)
        self.keepalived_conns.remove(conn)

    def _forget(self, conn: Connection) -> None:
        """It is gathered no more."""
        del self.gathering[conn]
        self.shares.gather(conn.peer, -len(conn.gathered))
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
            conn.sock.send_some()
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
        data = conn.sock.received()
        conn.lingered += len(data or b"")
        if data == b"" or conn.lingered > MAX_LINGER_BYTES:
            self._end(conn)

    def _end(self, conn: Connection) -> None:
        del self.lingering[conn]
        self.poller.unregister(conn.sock)
        self._drop(conn)


def places(wished: int) -> int:
    """How many connections a worker can hold, by the file descriptors that it may open."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return wished
    return max(1, min(wished, max(limit - RESERVED_DESCRIPTORS, limit // 2)))


def _late(connections: Iterable[Connection], now: float) -> list[Connection]:
    return [conn for conn in connections if conn.deadline < now]
