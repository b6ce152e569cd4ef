"""Regular expressions that others wrote, in RE2: linear in the text, and bounded in the memory and time they take.

Regular expressions of ours that read long texts of others are RE2's, too, where Python's would try too many ways.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

SMALL_BYTES, LARGE_BYTES = 4 * 2**20, 8 * 2**20  # of memory for one program and its searches
# Instructions times characters: RE2 is linear in the text, but where its memory is used up each character may cost it a
# look at every instruction. This much takes about a second then.
MAX_WORK = 400_000_000
ESCAPED = re.compile(r"\\Q.*?(?:\\E|$)|\\(.)", re.DOTALL)
# What RE2 says where Go, which the API server is written in, says something else.
GO_WORDS = {
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid named capture group": "invalid named capture",
    "bad repetition operator": "invalid nested repetition operator",
    "trailing \\": "trailing backslash at end of expression",
}


class BadRegularExpression(ValueError):
    """A pattern that RE2 does not read; the message is Go's."""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Let all patterns that are read and searched inside take so many seconds together; after that TooMuchWork."""
    token = _left.set([seconds])
    try:
        yield
    finally:
        _left.reset(token)


_left: ContextVar[list[float] | None] = ContextVar("left", default=None)


@contextmanager
def _timed() -> Iterator[None]:
    left = _left.get()
    if left is None:
        yield
        return
    if left[0] < 0:
        raise TooMuchWork("the patterns of this content together take too long")
    started = time.perf_counter()
    try:
        yield
    finally:
        left[0] -= time.perf_counter() - started


class TooMuchWork(BadRegularExpression):
    """A pattern so large that to search a text of this length would take too long."""


@dataclass(frozen=True, slots=True)
class BoundedPattern:
    """A compiled pattern; its searches raise TooMuchWork."""

    program: Any

    def search(self, text: str) -> Any:
        self._check_work(text)
        with _timed():
            return self.program.search(text)

    def finditer(self, text: str) -> Iterator[Any]:
        self._check_work(text)
        with _timed():
            return iter(list(self.program.finditer(text)))

    def _check_work(self, text: str) -> None:
        if self.program.programsize * len(text) > MAX_WORK:
            raise TooMuchWork(f"the pattern is too large to search a text of {len(text)} characters")


def compiled(pattern: str) -> BoundedPattern:
    """The RE2 program of `pattern`; raises BadRegularExpression."""
    try:
        return _small(pattern)
    except _TooLarge:
        return _large(pattern)


# RE2 takes up to its `max_mem` for each program that is kept, so that few large ones are.
@lru_cache(maxsize=128)
def _small(pattern: str) -> BoundedPattern:
    return _compiled(pattern, SMALL_BYTES)


@lru_cache(maxsize=4)
def _large(pattern: str) -> BoundedPattern:
    return _compiled(pattern, LARGE_BYTES)


class _TooLarge(BadRegularExpression):
    pass


def _compiled(pattern: str, max_bytes: int) -> BoundedPattern:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = max_bytes
    if "C" in ESCAPED.findall(pattern):  # one byte of a character: Go has no such thing
        raise BadRegularExpression("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        with _timed():
            return BoundedPattern(re2.compile(pattern, options))
    except re2.error as exc:
        words = _in_go(exc.args[0] if exc.args else "")
        raise (_TooLarge if "pattern too large" in words else BadRegularExpression)(words) from exc
    except UnicodeEncodeError as exc:
        raise BadRegularExpression(f"error parsing regexp: invalid UTF-8: {exc.reason}") from exc


def _in_go(words: object) -> str:
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
    what, _, where = text.partition(": ")
    return f"error parsing regexp: {GO_WORDS.get(what, what)}: `{where}`"
