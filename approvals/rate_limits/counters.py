"""Counting within fixed windows of time, in Redis, so that all processes count together.

Where Redis does not answer, each process counts by itself: the doors stay open and limited, only less strictly (the
limit times the number of processes). Nobody is locked out because Redis is away.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import redis
from django.conf import settings

from approvals.errors import TooManyAttempts

logger = logging.getLogger(__name__)

PREFIX = "pratique:limits:"
PATIENCE_SECONDS = 0.5
# After Redis failed, it is left alone for so long: else each request would wait for it.
AWAY_SECONDS = 5.0
# What one process keeps while Redis is away.
MAX_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Limit:
    """At most so many within `seconds`, from the first one on. `name` tells it from other limits on the same key."""

    name: str
    most: int
    seconds: int


@dataclass(frozen=True, slots=True)
class Count:
    """`total` so far in this window, which ends in `seconds_left`."""

    total: int
    seconds_left: float


class CounterStore(Protocol):
    def add(self, key: str, by: int, seconds: int) -> Count:
        """Add to the number under `key`, which lives for `seconds` from its first time on."""

    def read(self, key: str) -> int:
        """The number under `key`, 0 if there is none."""

    def drop(self, key: str) -> None:
        """Forget the number under `key`."""


def take(limit: Limit, *key: str, words: str = "too many attempts: try again in {time}") -> None:
    """Count one more of `key`. Raises TooManyAttempts, with `words` and the time that is left, beyond the limit."""
    count = _store().add(_counter_name(limit, key), 1, limit.seconds)
    if count.total > limit.most:
        seconds = max(1, math.ceil(count.seconds_left))
        raise TooManyAttempts(words.format(time=_in_words(seconds)), retryAfter=seconds)


def give_back(limit: Limit, *key: str) -> None:
    """Uncount one of `key`."""
    _store().add(_counter_name(limit, key), -1, limit.seconds)


def note(limit: Limit, *key: str) -> None:
    """Count one more of `key`, for `is_noted`; never raises."""
    _store().add(_counter_name(limit, key), 1, limit.seconds)


def is_noted(limit: Limit, *key: str) -> bool:
    return _store().read(_counter_name(limit, key)) > 0


def forget(limit: Limit, *key: str) -> None:
    """Begin anew for `key`."""
    _store().drop(_counter_name(limit, key))


class Memory:
    """The numbers of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[int, float]] = {}

    def add(self, key: str, by: int, seconds: int) -> Count:
        now = time.monotonic()
        with self._lock:
            total, end = self._kept.get(key, (0, 0.0))
            if end <= now:
                total, end = 0, now + seconds
                self._make_room(now)
            self._kept[key] = (total + by, end)
            return Count(total + by, end - now)

    def read(self, key: str) -> int:
        with self._lock:
            total, end = self._kept.get(key, (0, 0.0))
            return total if end > time.monotonic() else 0

    def drop(self, key: str) -> None:
        with self._lock:
            self._kept.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def _make_room(self, now: float) -> None:
        if len(self._kept) < MAX_KEPT:
            return
        self._kept = {key: one for key, one in self._kept.items() if one[1] > now}
        while len(self._kept) >= MAX_KEPT:
            self._kept.pop(next(iter(self._kept)))


class Shared:
    """The numbers of all processes, in Redis; those of this process while Redis does not answer."""

    def __init__(self, url: str, memory: Memory) -> None:
        self._client: Any = redis.Redis.from_url(
            url, socket_timeout=PATIENCE_SECONDS, socket_connect_timeout=PATIENCE_SECONDS
        )
        self._memory = memory
        self._away_until = 0.0

    def add(self, key: str, by: int, seconds: int) -> Count:
        if not self._is_away():
            try:
                with self._client.pipeline() as pipe:
                    pipe.set(PREFIX + key, 0, ex=seconds, nx=True)
                    pipe.incrby(PREFIX + key, by)
                    pipe.pttl(PREFIX + key)
                    _, total, left = pipe.execute()
                return Count(int(total), max(0, int(left)) / 1000)
            except (redis.RedisError, OSError) as exc:
                self._note_away(exc)
        return self._memory.add(key, by, seconds)

    def read(self, key: str) -> int:
        if not self._is_away():
            try:
                return int(self._client.get(PREFIX + key) or 0)
            except (redis.RedisError, OSError) as exc:
                self._note_away(exc)
        return self._memory.read(key)

    def drop(self, key: str) -> None:
        self._memory.drop(key)
        if not self._is_away():
            try:
                self._client.delete(PREFIX + key)
            except (redis.RedisError, OSError) as exc:
                self._note_away(exc)

    def _is_away(self) -> bool:
        return time.monotonic() < self._away_until

    def _note_away(self, exc: Exception) -> None:
        self._away_until = time.monotonic() + AWAY_SECONDS
        # Its words may name an address or hold a password.
        logger.warning(
            "Redis is not responding: each process counts limits on its own", extra={"error": type(exc).__name__}
        )


memory = Memory()


def _store() -> CounterStore:
    return _shared(settings.PRATIQUE["REDIS_URL"])


@cache
def _shared(url: str) -> Shared:
    return Shared(url, memory)


def _counter_name(limit: Limit, key: tuple[str, ...]) -> str:
    """Of one length whatever strangers send, and without names and addresses in it."""
    text = "".join(f"{len(part)}:{part}" for part in key)
    return f"{limit.name}:{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:32]}"


def _in_words(seconds: int) -> str:
    return f"{seconds} s" if seconds < 120 else f"{math.ceil(seconds / 60)} minutes"
