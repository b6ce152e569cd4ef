"""Sockets that leave to the main loop what their client does not read at once."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

SEND_SECONDS = 30.0
CHUNK = 64 * 1024
# Of one answer, and of all answers of one worker, that the main loop sends to clients who read slowly.
MAX_OUTGOING = 16 * 1024 * 1024
MAX_ALL_OUTGOING = 128 * 1024 * 1024


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

    @classmethod
    def of(cls, accepted: socket.socket, budget: Budget) -> BoundedSocket:
        """In the place of `accepted`."""
        made = cls(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        made.budget, made.outgoing = budget, bytearray()
        return made

    def setblocking(self, flag: bool) -> None:
        self.settimeout(SEND_SECONDS if flag else 0.0)

    def sendall(self, data: Any, flags: int = 0) -> None:
        rest = memoryview(data).cast("B")
        if not self.outgoing:
            rest = rest[self._send_at_once(rest) :]
        if len(self.outgoing) + len(rest) <= MAX_OUTGOING and self.budget.take(len(rest)):
            self.outgoing += rest
            return
        self.blocked_since = self.blocked_since or time.monotonic()
        waiting = bytes(self.outgoing)
        self.forget(len(waiting))
        super().sendall(waiting)
        super().sendall(rest)

    def send_some(self) -> None:
        """Send of `outgoing` what the client takes now. Raises OSError."""
        try:
            self.forget(self.send(self.outgoing[:CHUNK]))
        except (BlockingIOError, InterruptedError):
            return

    def forget(self, count: int) -> None:
        """Take the first `count` bytes off `outgoing`."""
        del self.outgoing[:count]
        self.budget.give_back(count)

    def received(self) -> bytes | None:
        """What has come, b"" at the end or after an error, None where nothing has."""
        try:
            return self.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:
            return b""

    def _send_at_once(self, data: Any) -> int:
        """Send what the kernel takes without waiting; returns how many bytes that was."""
        self.settimeout(0.0)
        try:
            return self.send(data)
        except (BlockingIOError, InterruptedError):
            return 0
        finally:
            self.settimeout(SEND_SECONDS)
