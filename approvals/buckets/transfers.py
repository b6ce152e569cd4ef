"""Bytes on their way: what boto3 reads from while it sends, and what is read from while an object comes."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from approvals.errors import StoreUnavailable

PIECE_BYTES = 64 * 1024
# Of one object, whatever its size: a server that sends a little now and then is away as well.
OBJECT_SECONDS = 900.0


class Sending:
    """A file for boto3 over the parts of an object, of which it holds one at a time."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._parts: Iterator[bytes] = iter(parts)
        self._part = memoryview(b"")
        self.sent_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Less than `size` only at the end: boto3 takes a short answer for it."""
        found = io.BytesIO()
        while size < 0 or found.tell() < size:
            if not self._part and not self._next():
                break
            piece = self._part if size < 0 else self._part[: size - found.tell()]
            self._part = self._part[len(piece) :]
            found.write(piece)
        self.sent_bytes += found.tell()
        return found.getvalue()

    def _next(self) -> bool:
        for part in self._parts:
            if part:
                self._part = memoryview(part)
                return True
        return False


class Arriving(io.RawIOBase):
    """The body of an object, read as it comes. `told` words what the network raises."""

    def __init__(self, body: Any, told: Callable[[Exception], StoreUnavailable]) -> None:
        self._body, self._told = body, told
        self._until = time.monotonic() + OBJECT_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any, /) -> int:
        if time.monotonic() > self._until:
            raise StoreUnavailable(
                f"the content store could not be used (reading an object): it had not come whole after "
                f"{OBJECT_SECONDS:.0f} s; the S3 server or the network is too slow"
            )
        try:
            data: bytes = self._body.read(min(len(into), PIECE_BYTES))
        except Exception as exc:  # botocore's, urllib3's and the socket's, which are not loaded here
            raise self._told(exc) from exc
        into[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._body.close()
        super().close()
