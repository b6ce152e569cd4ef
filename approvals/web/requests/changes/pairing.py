"""Which lines of two states stand side by side, and which words of such a pair differ. Pure; bounded in time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from approvals.web.requests.changes.folding import FoldedLines, Span
from provisioner.alignment import Aligner
from provisioner.review.base.difference import DiffLine

# Words of one pair of lines that are held against each other, and steps for all pairs of a page.
MAX_WORDS = 400
MAX_STEPS = 1_000_000
# Lines of which less stays the same are other lines, and no word of them is marked.
MIN_COMMON = 0.25
_WORD = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two lines side by side, by their place; an unchanged one stands on both sides, None on a side without one."""

    left: int | None
    right: int | None


@dataclass(frozen=True, slots=True)
class Marks:
    """The characters of both lines that are not in the other one."""

    old: tuple[Span, ...] = field(default=())
    new: tuple[Span, ...] = field(default=())


def side_by_side(lines: Sequence[DiffLine], rows: Iterable[int | FoldedLines]) -> Iterator[Pair | FoldedLines]:
    """What goes beside what comes for it; the n-th line of the one beside the n-th of the other."""
    gone: list[int] = []
    come: list[int] = []
    for row in rows:
        kind = lines[row].kind if isinstance(row, int) else "@"
        if kind in " @" or (kind == "-" and come):
            yield from _paired(gone, come)
            gone, come = [], []
        if isinstance(row, FoldedLines):
            yield row
        elif kind == " ":
            yield Pair(row, row)
        else:
            (gone if kind == "-" else come).append(row)
    yield from _paired(gone, come)


def _paired(gone: list[int], come: list[int]) -> Iterator[Pair]:
    return (Pair(left, right) for left, right in zip_longest(gone, come))


class Words:
    """The words that differ, for the pairs of one page."""

    def __init__(self) -> None:
        self._aligner = Aligner(MAX_STEPS)

    def marks(self, old: str, new: str) -> Marks:
        """What to mark in both lines; nothing where they have too little in common, or are too long to tell."""
        one, other = _WORD.findall(old), _WORD.findall(new)
        if len(one) > MAX_WORDS or len(other) > MAX_WORDS:
            return _between_ends(old, new)
        runs = list(self._aligner.runs(one, other))
        same = sum(
            len(word) for run in runs if run.is_equal for word in one[run.first : run.last] if not word.isspace()
        )
        longer = max(len("".join(old.split())), len("".join(new.split())), 1)
        if same / longer < MIN_COMMON:
            return Marks()
        changed = [run for run in runs if not run.is_equal]
        return Marks(
            _spans(one, [(run.first, run.last) for run in changed]),
            _spans(other, [(run.start, run.end) for run in changed]),
        )


def common_start(old: str, new: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[:middle] == new[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _between_ends(old: str, new: str) -> Marks:
    head = common_start(old, new)
    tail = common_start(old[head:][::-1], new[head:][::-1])
    return Marks(_some(head, len(old) - tail), _some(head, len(new) - tail))


def _some(first: int, last: int) -> tuple[Span, ...]:
    return ((first, last),) if first < last else ()


def _spans(words: list[str], runs: list[Span]) -> tuple[Span, ...]:
    """Runs of words as runs of characters."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return tuple((starts[first], starts[last]) for first, last in runs if first < last)
