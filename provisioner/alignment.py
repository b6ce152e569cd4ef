"""Which items of two lists stand for each other. Pure; bounded in time whatever the lists hold.

Items are matched by the fields that name them, else where they are equal, else by likeness: so that the fewest lines
differ. Of texts, what is equal at both ends is set aside, items that each list holds once are matched in order, and
only what lies between two of those is held against each other item by item.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, NamedTuple

import orjson

# Steps for one comparison of two objects: about a second. What would take more is shown as replaced.
MAX_STEPS = 4_000_000
# What names the items of a list: the keys by which the API server merges lists, and some that others use for that.
NAMING_KEYS = (
    ("name",),
    ("kind", "namespace", "name"),
    ("containerPort", "protocol"),
    ("port", "protocol"),
    ("mountPath",),
    ("devicePath",),
    ("topologyKey", "whenUnsatisfiable"),
    ("driver", "device", "pool", "shareID"),
    *((key,) for key in ("containerPort", "port", "ip", "uid", "rule", "key", "type", "resourceID", "apiServerID")),
)
# What a field stands for where it is left out.
_DEFAULTS = {"namespace": "", "protocol": "TCP", "shareID": ""}
# Fields of an item that are looked at for its likeness to another.
MAX_FIELDS = 500
Name = tuple[str, ...]
TOO_DEEP = "(nested too deeply to be shown)"


@dataclass(frozen=True, slots=True)
class Run:
    """`old[first:last]` became `new[start:end]`; `is_equal` says that they hold the same."""

    is_equal: bool
    first: int
    last: int
    start: int
    end: int


class ItemPair(NamedTuple):
    """The places of an item before and after; -1 where it has come or gone."""

    old: int
    new: int


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

    def pairs(self, old: list[Any], new: list[Any]) -> list[ItemPair]:
        """Both lists in one order, which is that of the new one: each item with the one that stands for it, or alone.

        What has gone stands before what has come in its place.
        """
        names = _names_of_both(old, new)
        if names is None:
            return list(_in_one_order(self._alike(old, new), len(old), len(new)))
        places = {name: at for at, name in enumerate(names[0])}
        known = {at: places[name] for at, name in enumerate(names[1]) if name in places}
        return list(_in_one_order(known, len(old), len(new)))

    def _alike(self, old: list[Any], new: list[Any]) -> dict[int, int]:
        """For items of `new` those of `old` that stand for them: equal ones, wherever maps stand; then like ones, and
        at last those at the same place of as many."""
        one, other = [canonical(item) for item in old], [canonical(item) for item in new]
        gaps: list[Run] = []
        known: dict[int, int] = {}
        for run in self.runs(one, other):
            if run.is_equal:
                known.update(zip(range(run.start, run.end), range(run.first, run.last), strict=True))
            else:
                gaps.append(run)
        moved: dict[str, deque[int]] = defaultdict(deque)
        for gap in gaps:
            for at in range(gap.first, gap.last):
                if isinstance(old[at], Mapping):
                    moved[one[at]].append(at)
        for gap in gaps:
            for at in range(gap.start, gap.end):
                if moved and moved.get(other[at]):
                    known[at] = moved[other[at]].popleft()
        taken = {*known.values()}
        for gap in gaps:
            gone = [at for at in range(gap.first, gap.last) if at not in taken]
            come = [at for at in range(gap.start, gap.end) if at not in known]
            known.update(self._most_alike(old, new, gone, come))
        return known

    def _most_alike(self, old: list[Any], new: list[Any], gone: list[int], come: list[int]) -> dict[int, int]:
        """In order, the items of a gap that have the most in common; between two of those, as many by their place."""
        known: dict[int, int] = {}
        first = start = 0
        for at, there in [*self._likest([old[it] for it in gone], [new[it] for it in come]), (len(gone), len(come))]:
            if at - first == there - start:
                known.update(zip(come[start:there], gone[first:at], strict=True))
            if at < len(gone):
                known[come[there]] = gone[at]
            first, start = at + 1, there + 1
        return known

    def _likest(self, old: list[Any], new: list[Any]) -> list[tuple[int, int]]:
        """Places of like items, so that most fields are the same on both sides; none where that takes too long."""
        if not any(isinstance(item, Mapping) for item in old) or not any(isinstance(item, Mapping) for item in new):
            return []
        if len(old) * len(new) > self._steps:
            return []
        here, there = [_fields_of(item) for item in old], [_fields_of(item) for item in new]
        cost = len(old) * sum(1 + len(item) for item in there)
        if cost > self._steps:
            return []
        self._steps -= cost
        # best[at][place]: the most that is the same in old[at:] and new[place:].
        best = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
        for at in range(len(old) - 1, -1, -1):
            row, below = best[at], best[at + 1]
            for place in range(len(new) - 1, -1, -1):
                row[place] = max(below[place], row[place + 1], below[place + 1] + _likeness(here[at], there[place]))
        found: list[tuple[int, int]] = []
        at = place = 0
        while at < len(old) and place < len(new):
            same = _likeness(here[at], there[place])
            if same and best[at][place] == same + best[at + 1][place + 1]:
                found.append((at, place))
                at, place = at + 1, place + 1
            elif best[at][place] == best[at + 1][place]:
                at += 1
            else:
                place += 1
        return found

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


def order_of_kept(old: list[Any], new: list[Any], pairs: Sequence[ItemPair]) -> tuple[list[str], list[str]] | None:
    """The items that both lists hold, by name or else by their number in the old one, in the order of each; None where
    that is the same."""
    kept = [pair.old for pair in pairs if pair.old >= 0 and pair.new >= 0]
    if all(one < other for one, other in zip(kept, islice(kept, 1, None), strict=False)):
        return None
    names = _names_of_both(old, new)
    words = ["/".join(filter(None, name)) for name in names[0]] if names else [str(at + 1) for at in range(len(old))]
    return [words[at] for at in sorted(kept)], [words[at] for at in kept]


def is_same(old: object, new: object) -> bool:
    """Whether both say the same as JSON. Those nested so deep that nobody can compare them are not the same.

    Unequal ones, as most are that get here, are told apart without writing them.
    """
    try:
        if old is new or old != new or type(old) is type(new) is str:
            return bool(old is new or old == new)
        return orjson.dumps(old, option=orjson.OPT_SORT_KEYS) == orjson.dumps(new, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # numbers past 64 bits, what JSON has not, or nested too deep for orjson
        return canonical(old) == canonical(new)
    except RecursionError:
        return False


def canonical(value: object) -> str:
    """1, 1.0 and true are three values here; to Python they are one."""
    try:
        return json.dumps(value, sort_keys=True, default=str)
    except RecursionError:
        return TOO_DEEP


def _names_of_both(old: list[Any], new: list[Any]) -> tuple[list[Name], list[Name]] | None:
    """What the items of both lists go by: by those of NAMING_KEYS that find most of the one in the other."""
    found: tuple[list[Name], list[Name]] | None = None
    most = -1
    for keys in NAMING_KEYS:
        one = _names(old, keys)
        other = _names(new, keys) if one is not None else None
        if one is None or other is None:
            continue
        same = len({*one}.intersection(other))
        if same > most:
            found, most = (one, other), same
        if same == min(len(one), len(other)):
            break
    return found


def _names(items: list[Any], keys: tuple[str, ...]) -> list[Name] | None:
    """What each item goes by; None where one has no such name, or two have the same."""
    found: dict[Name, None] = {}
    for item in items:
        values = [item.get(key, _DEFAULTS.get(key)) for key in keys] if isinstance(item, Mapping) else [None]
        if not all(isinstance(value, str | int) for value in values):
            return None
        found[tuple(map(str, values))] = None
    return list(found) if len(found) == len(items) else None


def _in_one_order(known: Mapping[int, int], olds: int, news: int) -> Iterator[ItemPair]:
    kept = {*known.values()}
    at = begun = 0
    for place in [*sorted(known), news]:
        end = known.get(place, olds)
        yield from (ItemPair(one, -1) for one in range(at, end) if one not in kept)
        yield from (ItemPair(-1, one) for one in range(begun, place))
        if place < news:
            yield ItemPair(end, place)
        at, begun = max(at, end + 1), place + 1


def _fields_of(item: object) -> frozenset[tuple[tuple[str, ...], str]]:
    """What an item holds, wherever in its lists: at most MAX_FIELDS of it."""
    found: set[tuple[tuple[str, ...], str]] = set()
    left: deque[tuple[tuple[str, ...], Any]] = deque([((), item)])
    while left and len(found) < MAX_FIELDS and len(left) < MAX_FIELDS * 2:
        path, value = left.popleft()
        if isinstance(value, Mapping) and value:
            left.extend(((*path, str(key)), inner) for key, inner in islice(value.items(), MAX_FIELDS))
        elif isinstance(value, list) and value:
            left.extend((path, inner) for inner in islice(value, MAX_FIELDS))
        else:
            found.add((path, canonical(value)))
    return frozenset(found)


def _likeness(one: frozenset[Any], other: frozenset[Any]) -> int:
    """How much two items have in common; 0 where it is less than half of them."""
    same = len(one & other)
    return same if 4 * same >= len(one) + len(other) else 0
