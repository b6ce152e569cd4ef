"""Cuts a catalog's file into its documents, holding one at a time.

Publishers write YAML documents between `---` lines, or JSON objects one after the other, on one line or many.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import BinaryIO

from provisioner.errors import BundleTooLarge

PIECE_BYTES = 1024 * 1024
_PART_BYTES = 16_384
_SEPARATOR = re.compile(rb"^---", re.MULTILINE)
_MARKS = re.compile(rb'["{}]')
_IN_STRING = re.compile(rb'["\\]')


def documents_of(stream: BinaryIO, *, name: str, max_bytes: int) -> Iterator[tuple[bytes, int]]:
    """Each document with the line (from 1) on which it begins; raises BundleTooLarge past `max_bytes` in one."""
    cutter = _Cutter(name, max_bytes)
    while piece := stream.read(PIECE_BYTES):
        # Whole lines, and many: one by one, a document of short lines took seconds and forty times its size.
        yield from cutter.take(piece + stream.readline(PIECE_BYTES))
    yield from cutter.rest()


class _Cutter:
    """Where one is in the document that is being read; `_depth` is None outside of a JSON object."""

    def __init__(self, name: str, max_bytes: int):
        self._name = name
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._line = self._begins = 1
        self._at_line_start = True
        self._depth: int | None = None
        self._is_in_string = False
        self._is_escaped = False

    def take(self, piece: bytes) -> Iterator[tuple[bytes, int]]:
        begin = 0
        for separator in _SEPARATOR.finditer(piece):
            if separator.start() or self._at_line_start:
                yield from self._steps(piece[begin : separator.start()])
                begin = separator.start()
                if self._depth is None:
                    yield from self.rest()
        yield from self._steps(piece[begin:])
        self._at_line_start = piece.endswith(b"\n")

    def _steps(self, piece: bytes) -> Iterator[tuple[bytes, int]]:
        # In small parts: what is left of one is copied after each document in it.
        for begin in range(0, len(piece), _PART_BYTES):
            part = piece[begin : begin + _PART_BYTES]
            while part:
                part = yield from self._one_step(part)

    def rest(self) -> Iterator[tuple[bytes, int]]:
        if any(part.strip() for part in self._parts):
            yield b"".join(self._parts), self._begins
        self._parts, self._size, self._depth, self._begins = [], 0, None, self._line

    def _one_step(self, piece: bytes) -> Generator[tuple[bytes, int], None, bytes]:
        """Take what belongs to the present document; returns what is left of the piece."""
        if self._depth is None and not self._parts:
            blank = len(piece) - len(piece.lstrip())
            self._line += piece.count(b"\n", 0, blank)
            piece = piece[blank:]
            self._begins = self._line
            self._depth = 0 if piece.startswith(b"{") else None
        end = len(piece) if self._depth is None else self._end_of_json(piece)
        part = piece[:end]
        self._size += len(part)
        if self._size > self._max_bytes:
            raise BundleTooLarge(
                f"{self._name}:{self._begins}: a document of more than {self._max_bytes} bytes (max_document_bytes)"
            )
        self._line += part.count(b"\n")
        self._parts += [part] if part else []
        if self._depth == 0 and self._parts:
            yield from self.rest()
        return piece[end:]

    def _end_of_json(self, piece: bytes) -> int:
        """Where the object that is open ends in `piece`, or its length."""
        at = 0
        depth = self._depth or 0
        while at < len(piece):
            if self._is_escaped:
                self._is_escaped = False
                at += 1
                continue
            found = (_IN_STRING if self._is_in_string else _MARKS).search(piece, at)
            if found is None:
                break
            at = found.end()
            if self._is_in_string:
                self._is_in_string = found[0] != b'"'
                self._is_escaped = found[0] == b"\\"
                continue
            self._is_in_string = found[0] == b'"'
            depth += {b"{": 1, b"}": -1}.get(found[0], 0)
            if depth == 0:
                self._depth = 0
                return at
        self._depth = depth
        return len(piece)
