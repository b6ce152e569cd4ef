"""A small HTTP server for machines, of probes and of metrics: GET of a few paths, in one thread.

So nobody who holds the pages' threads can stop it. Connections that do not finish their request cost it a socket for
two seconds. When there are too many, the oldest of whoever has most of them goes. Each answer is worked out in a thread
of its own pool.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.db import close_old_connections

from approvals.rate_limits.clients import counted_as

logger = logging.getLogger(__name__)

HEAD_SECONDS = 2.0
ANSWER_SECONDS = 15.0
MAX_HEAD_BYTES = 16 * 1024
MAX_OPEN = 256
THREADS = 2
END_OF_HEAD = b"\r\n\r\n"


@dataclass(frozen=True, slots=True)
class PlainResponse:
    body: bytes
    status: int = 200
    content_type: str = "application/json"

    @classmethod
    def of(cls, value: Mapping[str, Any], status: int = 200) -> PlainResponse:
        """`value` as JSON."""
        return cls(json.dumps(value).encode(), status)


# Takes the request's headers, their names in lower case, so that a path may ask for a credential.
Responder = Callable[[Mapping[str, str]], PlainResponse]


# To whom a path is nothing gets the same, byte for byte, as where there is none.
NOTHING = PlainResponse.of({"status": "not found"}, 404)


def open_socket(host: str, port: int) -> socket.socket:
    """A listening socket. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=MAX_OPEN)


class Listener:
    """Answers on `sock`, which other processes may listen on as well, until `stop()`."""

    def __init__(self, name: str, table: Mapping[str, Responder], sock: socket.socket) -> None:
        self._table = table
        self._sock = sock
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        # Of each path its own: what waits for the database stops no other.
        self._pools = {path: ThreadPoolExecutor(THREADS, thread_name_prefix=f"{name}-{path}") for path in table}
        # By what is counted as one client, the oldest first.
        self._open: dict[asyncio.StreamWriter, str] = {}
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Close the socket, here, and end the thread."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()

    def _run(self) -> None:
        self._loop.run_until_complete(self._serve_until_stopped())
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)

    async def _serve_until_stopped(self) -> None:
        server = await asyncio.start_server(self._serve, sock=self._sock, limit=MAX_HEAD_BYTES)
        await self._stopping.wait()
        server.close()
        unfinished = asyncio.all_tasks() - {asyncio.current_task()}
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peername")
        self._open[writer] = counted_as(peer[0] if isinstance(peer, tuple) else "")
        if len(self._open) > MAX_OPEN:
            self._make_room()
        try:
            async with asyncio.timeout(HEAD_SECONDS):
                head = await reader.readuntil(END_OF_HEAD)
            answer = await self._answer(head)
            writer.write(_packed(answer))
            async with asyncio.timeout(HEAD_SECONDS):
                await writer.drain()
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            del self._open[writer]
            with contextlib.suppress(OSError):
                writer.close()

    def _make_room(self) -> None:
        greedy = Counter(self._open.values()).most_common(1)[0][0]
        next(writer for writer, client in self._open.items() if client == greedy).transport.abort()

    async def _answer(self, head: bytes) -> PlainResponse:
        method, path, headers = _parse_head(head)
        answerer = self._table.get(path)
        if answerer is None:
            return NOTHING
        if method != "GET":
            return PlainResponse.of({"status": "only GET is allowed"}, 405)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._loop.run_in_executor(self._pools[path], _worked_out, answerer, headers)
        except TimeoutError:
            return PlainResponse.of({"status": "took too long"}, 503)


def _worked_out(answerer: Responder, headers: Mapping[str, str]) -> PlainResponse:
    close_old_connections()
    try:
        return answerer(headers)
    except Exception:  # whatever a probe raises, whoever asked gets an answer and the log the rest
        logger.exception("an answer for a machine failed")
        return PlainResponse.of({"status": "failed; see the log"}, 500)
    finally:
        close_old_connections()


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    """Method, path without its query, and headers of a request's head; empty where it is none."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3:
        return "", "", {}
    pairs = (line.partition(":") for line in lines if ":" in line)
    return words[0], words[1].partition("?")[0], {name.strip().lower(): value.strip() for name, _, value in pairs}


def _packed(answer: PlainResponse) -> bytes:
    reason = HTTPStatus(answer.status).phrase
    head = (
        f"HTTP/1.1 {answer.status} {reason}\r\nContent-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + answer.body
