"""Fairness in a worker: who has no place waits outside, without a claim or a thread, and is called in turn.

What each group used of the processor lately is known, so that a stream of new processes does not hold up an old one.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
# Whose work it is, from the narrowest group to the widest.
Groups = Sequence[str]

# Who was called and has not come by then has been looked at elsewhere. The sweep wakes whoever still waits every 5 s.
FORGET_SECONDS = 15.0
# Of the processor time that a group has used, half is forgotten after so many seconds.
HALF_LIFE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Visitor:
    """`group` is whose work it is: groups take turns. `call` wakes whoever comes for `key`."""

    key: Hashable
    group: str
    call: Callable[[], None]


@dataclass(slots=True)
class _Waiting:
    visitor: Visitor
    number: int
    seen_at: float


class Places:
    """`most` says how many there are."""

    def __init__(self, most: Callable[[], int]):
        self._most = most
        self._lock = threading.Lock()
        self._taken: dict[Hashable, str] = {}
        self._waiting: dict[Hashable, _Waiting] = {}
        self._number = 0

    def take(self, visitor: Visitor, now: float) -> bool:
        """Take a place until `leave`; False where others come first: then `visitor.call` is called when one is free."""
        with self._lock:
            self._waiting = {
                key: waiting for key, waiting in self._waiting.items() if now - waiting.seen_at < FORGET_SECONDS
            }
            if visitor.key not in self._waiting:
                self._number += 1
                self._waiting[visitor.key] = _Waiting(visitor, self._number, now)
            self._waiting[visitor.key].seen_at = now
            free = self._most() - len(self._taken)
            if visitor.key not in self._next()[: max(0, free)]:
                return False
            del self._waiting[visitor.key]
            self._taken[visitor.key] = visitor.group
            return True

    def leave(self, visitor: Visitor) -> None:
        with self._lock:
            self._taken.pop(visitor.key, None)
            called = [self._waiting[key].visitor for key in self._next()[:1]]
        for waiting in called:
            waiting.call()

    def _next(self) -> list[Hashable]:
        numbers = {key: ((waiting.visitor.group,), waiting.number) for key, waiting in self._waiting.items()}
        taken = [(group,) for group in self._taken.values()]
        return in_turn(numbers, taken, (most_of_one(self._most()),))


class RecentUse:
    """The processor time (s) that each group has used lately."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[str, tuple[float, float]] = {}

    def add(self, group: str, seconds: float, now: float) -> None:
        with self._lock:
            self._used = {name: (left, now) for name in self._used if (left := self._left(name, now)) > 0.01}
            self._used[group] = (self._left(group, now) + seconds, now)

    def seconds(self, group: str, now: float) -> float:
        with self._lock:
            return self._left(group, now)

    def _left(self, group: str, now: float) -> float:
        used, at = self._used.get(group, (0.0, now))
        return float(used * 0.5 ** ((now - at) / HALF_LIFE_SECONDS))


def most_of_one(places: int) -> int:
    """How many of so many places one group may have: what takes its time leaves some to the others."""
    return max(1, places - places // 4)


def in_turn(waiting: Mapping[K, tuple[Groups, int]], taken: Iterable[Groups], most: Sequence[int]) -> list[K]:
    """The keys of `waiting`, each with its groups and number, in the order in which they get places.

    The first group that has the fewest places comes first, and in it who has waited for longest. `taken` are the groups
    of those who have places. None of the groups gets more than `most` has for its position.
    """
    has = Counter(group for groups in taken for group in enumerate(groups))
    queues: dict[str, deque[K]] = {}
    for key in sorted(waiting, key=lambda waiting_key: waiting[waiting_key][1]):
        queues.setdefault(waiting[key][0][0], deque()).append(key)
    found: list[K] = []
    while queues:
        first = min(queues, key=lambda name: (has[0, name], waiting[queues[name][0]][1]))
        if has[0, first] >= most[0]:
            del queues[first]
            continue
        key = queues[first].popleft()
        if not queues[first]:
            del queues[first]
        groups = list(enumerate(waiting[key][0]))
        if all(has[group] < most[group[0]] for group in groups):
            has.update(groups)
            found.append(key)
    return found
