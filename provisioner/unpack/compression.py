"""Compressed streams, read piece by piece: gzip of many members, and zstd with a bounded window."""

from __future__ import annotations

import io
import zlib

from backports.zstd import DecompressionParameter, ZstdFile

from provisioner.errors import InvalidArchive
from provisioner.unpack.meter import ReadableLayer, UnpackLimits

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# zstd --ultra -22 asks for 2^27 bytes; a frame that asks for more is refused before anything is reserved for it.
LARGEST_WINDOW_LOG = 27
FEED_BYTES = 16 * 1024


def zstd_stream(data: bytes) -> ReadableLayer:
    """The unpacked bytes of all frames; reading raises ZstdError or EOFError."""
    return ZstdFile(io.BytesIO(data), options={DecompressionParameter.window_log_max: LARGEST_WINDOW_LOG})


class GzipStream:
    """gzip with every member read, and nothing but zero bytes after the last one.

    Reading raises zlib.error, EOFError, and InvalidArchive for what follows the end. The number of members is bounded,
    because an empty one costs 20 bytes to send and a decoder to read; formats for lazy pulling have one per entry.
    """

    def __init__(self, data: bytes, limits: UnpackLimits):
        self._data = memoryview(data)
        self._at = 0
        self._members_left = 2 * limits.max_entries + 16
        self._decoder = zlib.decompressobj(wbits=31)

    def read(self, size: int, /) -> bytes:
        """At least one and at most `size` bytes; none at the end."""
        while True:
            if self._decoder.eof and not self._begins_another():
                return b""
            piece = self._data[self._at : self._at + FEED_BYTES]
            if not piece and not self._decoder.unconsumed_tail:
                raise EOFError("the gzip stream ends too early")
            found = self._decoder.decompress(piece, size)
            # What the decoder did not use is read again: it lies in our own bytes.
            self._at += len(piece) - len(self._decoder.unconsumed_tail or self._decoder.unused_data)
            if found:
                return found

    def _begins_another(self) -> bool:
        if bytes(self._data[self._at : self._at + 2]) != GZIP_MAGIC:
            if any(self._data[self._at :]):
                raise InvalidArchive("something follows the end of the gzip stream")
            return False
        self._members_left -= 1
        if self._members_left < 0:
            raise InvalidArchive("the gzip stream has more members than a bundle may have entries")
        self._decoder = zlib.decompressobj(wbits=31)
        return True
