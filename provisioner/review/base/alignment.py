"""Which items of two lists stand for each other. Pure; bounded in time whatever the lists hold.

What is equal at both ends is set aside, items that each list holds once are matched in order, and only what lies
between two of those is held against each other item by item.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

# Steps for one comparison of two objects: about a second. What would take more is shown as replaced.
MAX_STEPS = 4_000_000
# What names an item of a list, the first that all of them have.
NAMING_KEYS = ("name", "containerPort", "port", "mountPath", "key", "type")
TOO_DEEP = "(nested too deeply to be shown)"


@dataclass(frozen=True, slots=True)
class Run:
    """`old[first:last]` became `new[start:end]`; `is_equal` says that they hold the same."""

    is_equal: bool
    first: int
    last: int
    start: int
    end: int


class Aligner:
    """Aligns lists until its steps are used up. One for each comparison, so that many lists cost no more than one."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self._steps = steps

    def runs(self, old: Sequence[Hashable], new: Sequence[Hashable]) -> Iterator[Run]:
        """What both hold, in order, without empty runs."""
        shorter = min(len(old), len(new))
        head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
        tail = next((at for at in range(shorter - head) if old[-1 - at] != new[-1 - at]), shorter - head)
        yield from _equal(0, 0, head)
        at, there = head, head
        for one, other in self._anchors(old, new, head, tail):
            yield from self._between(old, new, Run(False, at, one, there, other))
            yield from _equal(one, other, 1)
            at, there = one + 1, other + 1
        yield from self._between(old, new, Run(False, at, len(old) - tail, there, len(new) - tail))
        yield from _equal(len(old) - tail, len(new) - tail, tail)

    def pairs(self, old: list[Any], new: list[Any]) -> Iterator[tuple[str, int, int]]:
        """Both lists in one order: matched by what names their items, else by equal runs.

        A pair of places is " "; a lone one has gone ("-") or come ("+"), and the other's place is -1.
        """
        name = naming_key(old, new)
        if name is not None:
            by_name = {str(item[name]): at for at, item in enumerate(old)}
            names = {str(item[name]) for item in new}
            yield from (("-", at, -1) for at, item in enumerate(old) if str(item[name]) not in names)
            for at, item in enumerate(new):
                known = by_name.get(str(item[name]))
                yield (" ", known, at) if known is not None else ("+", -1, at)
            return
        for run in self.runs([canonical(one) for one in old], [canonical(one) for one in new]):
            if run.last - run.first == run.end - run.start:
                yield from ((" ", run.first + at, run.start + at) for at in range(run.last - run.first))
                continue
            yield from (("-", at, -1) for at in range(run.first, run.last))
            yield from (("+", -1, at) for at in range(run.start, run.end))

    def _anchors(self, old: Sequence[Hashable], new: Sequence[Hashable], head: int, tail: int) -> list[tuple[int, int]]:
        """Places of what both hold once, the longest row of them that is in order on both sides."""
        here, there = _once(old, head, tail), _once(new, head, tail)
        pairs = [(at, there[item]) for item, at in here.items() if item in there]
        return _rising(pairs)

    def _between(self, old: Sequence[Hashable], new: Sequence[Hashable], gap: Run) -> Iterator[Run]:
        if gap.first == gap.last and gap.start == gap.end:
            return
        one, other = old[gap.first : gap.last], new[gap.start : gap.end]
        counted = Counter(other)
        cost = sum(counted[item] for item in one) * min(len(one), len(other))
        if not cost or cost > self._steps:
            yield gap
            return
        self._steps -= cost
        for tag, first, last, start, end in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
            yield Run(tag == "equal", gap.first + first, gap.first + last, gap.start + start, gap.start + end)


def _equal(first: int, start: int, length: int) -> Iterator[Run]:
    if length:
        yield Run(True, first, first + length, start, start + length)


def _once(items: Sequence[Hashable], head: int, tail: int) -> dict[Hashable, int]:
    """Where each item stands that is there once, without those at the ends; in order."""
    middle = items[head : len(items) - tail]
    counted = Counter(middle)
    return {item: head + at for at, item in enumerate(middle) if counted[item] == 1}


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of these pairs, sorted by the first, in which the second rises (patience sorting)."""
    ends: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for at, (_, place) in enumerate(pairs):
        pile = bisect_left(ends, place)
        before.append(piles[pile - 1] if pile else -1)
        ends[pile : pile + 1] = [place]
        piles[pile : pile + 1] = [at]
    row: list[tuple[int, int]] = []
    at = piles[-1] if piles else -1
    while at >= 0:
        row.append(pairs[at])
        at = before[at]
    return row[::-1]


def naming_key(old: list[Any], new: list[Any]) -> str | None:
    """The key by which the items of both lists are told apart, None where there is none."""
    return next((key for key in NAMING_KEYS if _names(old, key) and _names(new, key)), None)


def is_same(old: object, new: object) -> bool:
    """Unequal ones, as most are that get here, are told apart without writing them; so deep that nobody can: not."""
    try:
        return old is new or (old == new and canonical(old) == canonical(new))
    except RecursionError:
        return False


def canonical(value: object) -> str:
    """1, 1.0 and true are three values here; to Python they are one."""
    try:
        return json.dumps(value, sort_keys=True, default=str)
    except RecursionError:
        return TOO_DEEP


def _names(items: list[Any], key: str) -> bool:
    values = [str(one[key]) for one in items if isinstance(one, Mapping) and isinstance(one.get(key), str | int)]
    return len(values) == len(items) and len(set(values)) == len(values)
