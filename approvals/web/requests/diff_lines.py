"""Which lines of an object are shown, and which are left out until somebody asks for them. Pure.

What is near a change is shown. What comes or goes as one large part, such as a version of a CRD, is its first line and
a gap. However large an object is, no more than MAX_SHOWN lines are shown at once, beside those that were asked for.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from typing import Any

from provisioner.alignment import Aligner
from provisioner.review.base.difference import CONTEXT, DiffLine, Form, Path
from provisioner.review.output.lines import located
from provisioner.values import JsonObject

# A part that comes or goes as a whole and has more lines is folded to its first one.
LARGE = 60
# Of an object that is new or goes, the upper levels are shown as far as they fit into this many lines.
LARGE_OBJECT = 300
MAX_SHOWN = 500
# So many lines are opened at once, and so many stay open on one page.
CHUNK = 400
MAX_OPEN = 2_000
# So many are opened from one end of a gap.
STEP = 20
# A gap that is no larger is not worth a row of its own.
SMALL_GAP = 2
WINDOW = 10

Span = tuple[int, int]
# An anchor of a line: the side it is on and its number there.
Line = tuple[str, int]


# Words of one pair of lines that are held against each other, and steps for all pairs of a page.
MAX_WORDS = 400
MAX_STEPS = 1_000_000
# Lines of which less stays the same are other lines, and no word of them is marked.
MIN_COMMON = 0.25
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
# A finding that holds at more places of an object stands at the first ones.
MAX_PLACES = 20
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is shown in any case: all unchanged lines, these spans of lines, what is `around` these lines, and those
    that are `noted`, because a finding stands at them, with what leads to them.
    """

    is_whole: bool = False
    opened: tuple[Span, ...] = ()
    around: frozenset[int] = field(default_factory=frozenset)
    noted: frozenset[int] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Part:
    """What of a gap can be asked for: `lines[first:last]`. `words` are "all", "many", "first" or "last".

    `anchor` is that of its first line.
    """

    words: str
    first: int
    last: int
    anchor: str

    @property
    def count(self) -> int:
        return self.last - self.first


@dataclass(frozen=True, slots=True)
class FoldedLines:
    """`lines[first:last]` are left out. `place` is the field in which the next line stands."""

    first: int
    last: int
    added: int
    removed: int
    place: Path
    parts: tuple[Part, ...]

    @property
    def count(self) -> int:
        return self.last - self.first

    @property
    def kind(self) -> str:
        """The kind of all lines left out, "" where they are of several."""
        if not self.changed:
            return "unchanged"
        if self.count in (self.added, self.removed):
            return "added" if self.added else "removed"
        return ""

    @property
    def changed(self) -> int:
        return self.added + self.removed


def fold(lines: Sequence[DiffLine], wanted: Wanted) -> list[int | FoldedLines]:
    """The lines to show, by their place in `lines`, and the gaps between them."""
    shown = _at_first(lines, is_whole=wanted.is_whole)
    asked, around = bytearray(len(lines)), bytearray(len(lines))
    for at in wanted.around:
        _mark(around, at - WINDOW, at + WINDOW + 1)
    for at in wanted.noted:
        _mark(asked, at if lines[at].kind != " " else at - CONTEXT, at + 1)
    for first, last in wanted.opened:
        _mark(asked, first, min(last, first + CHUNK))
    _bound(shown, asked, around)
    return list(_with_gaps(lines, shown, 0, len(lines)))


def opened(lines: Sequence[DiffLine], gap: Span, span: Span) -> list[int | FoldedLines]:
    """The lines of a span of a gap, as far as they open at once, and what is left of the gap around them."""
    shown = bytearray(len(lines))
    _mark(shown, span[0], min(span[1], span[0] + CHUNK))
    return list(_with_gaps(lines, shown, min(gap[0], len(lines)), min(gap[1], len(lines))))


def anchor_of(line: DiffLine) -> str:
    """The address of a line within its object: its number after the change, else the one before."""
    return f"R{line.new}" if line.new else f"L{line.old}"


def _at_first(lines: Sequence[DiffLine], *, is_whole: bool) -> bytearray:
    shown = bytearray(len(lines))
    at = 0
    for kind, group in groupby(lines, key=lambda one: one.kind):
        end = at + sum(1 for _ in group)
        if kind != " ":
            _mark(shown, at - CONTEXT, end + CONTEXT)
        elif is_whole:
            _mark(shown, at, end)
        at = end
    at = 0
    for kind, group in groupby(lines, key=lambda one: one.kind):
        end = at + sum(1 for _ in group)
        if kind != " " and end - at > LARGE:
            _fold_run(lines, shown, at, end)
        at = end
    return shown


def _fold_run(lines: Sequence[DiffLine], shown: bytearray, first: int, last: int) -> None:
    """Of lines that all come, or all go: parts that are large lose all but their first line."""
    # Where the part that each line is the head of ends: before the next line that is moved no further to the right.
    ends = [last] * (last - first)
    open_heads: list[tuple[int, int]] = []
    for at in range(first, last):
        line = lines[at]
        if line.form is Form.TEXT:
            ends[at - first] = at + 1
            continue
        depth = len(line.text) - len(line.text.lstrip(" "))
        while open_heads and open_heads[-1][0] >= depth:
            ends[open_heads.pop()[1] - first] = at
        open_heads.append((depth, at))
    if last - first == len(lines):
        _fold_object(shown, ends, first, last)
        return
    for head in _siblings(ends, first, last):
        if ends[head - first] - head > LARGE:
            shown[head + 1 : ends[head - first]] = bytes(ends[head - first] - head - 1)


def _fold_object(shown: bytearray, ends: list[int], first: int, last: int) -> None:
    """Level by level, as long as whole levels fit."""
    shown[first:last] = bytes(last - first)
    waiting: deque[Span] = deque([(first, last)])
    room = LARGE_OBJECT
    while waiting:
        start, end = waiting.popleft()
        heads = list(_siblings(ends, start, end, base=first))
        if len(heads) > room:
            continue
        room -= len(heads)
        for head in heads:
            shown[head] = 1
            if ends[head - first] > head + 1:
                waiting.append((head + 1, ends[head - first]))


def _siblings(ends: list[int], start: int, end: int, *, base: int | None = None) -> Iterator[int]:
    """The heads of the parts that stand side by side between two lines."""
    base = start if base is None else base
    at = start
    while at < end:
        yield at
        at = ends[at - base]


def _bound(shown: bytearray, asked: bytearray, around: bytearray) -> None:
    """What is around a named line is shown in any case; of what else was asked for, and of the rest, what fits."""
    room, room_asked = MAX_SHOWN, MAX_OPEN
    for at in range(len(shown)):
        if around[at]:
            shown[at] = 1
        elif asked[at]:
            shown[at] = room_asked > 0
            room_asked -= 1
        elif shown[at]:
            shown[at] = room > 0
            room -= 1


def _with_gaps(lines: Sequence[DiffLine], shown: bytearray, first: int, last: int) -> Iterator[int | FoldedLines]:
    at = first
    while at < last:
        if shown[at]:
            yield at
            at += 1
            continue
        end = next((number for number in range(at, last) if shown[number]), last)
        if end - at <= SMALL_GAP:
            yield from range(at, end)
        else:
            yield _gap(lines, at, end)
        at = end


def _gap(lines: Sequence[DiffLine], first: int, last: int) -> FoldedLines:
    kinds = [line.kind for line in lines[first:last]]
    place = lines[last].path[:-1] if last < len(lines) else ()
    spans = [("all" if last - first <= CHUNK else "many", first, min(last, first + CHUNK))]
    if last - first > STEP:
        spans += [("first", first, first + STEP), ("last", last - STEP, last)]
    parts = tuple(Part(words, start, end, anchor_of(lines[start])) for words, start, end in spans)
    return FoldedLines(first, last, kinds.count("+"), kinds.count("-"), place, parts)


def _mark(flags: bytearray, first: int, last: int) -> None:
    start, end = max(first, 0), min(last, len(flags))
    if start < end:
        flags[start:end] = b"\1" * (end - start)


def changes(lines: Sequence[DiffLine], rows: Iterable[int | FoldedLines]) -> list[int]:
    """The first line of each change that is shown: what comes or goes, without an unchanged line between."""
    found: list[int] = []
    was_changed = False
    for row in rows:
        if isinstance(row, FoldedLines):
            was_changed = was_changed and row.changed == row.count
            continue
        is_changed = lines[row].kind != " "
        if is_changed and not was_changed:
            found.append(row)
        was_changed = is_changed
    return found


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
            head = common_start(old, new)
            tail = common_start(old[head:][::-1], new[head:][::-1])
            return Marks(_some(head, len(old) - tail), _some(head, len(new) - tail))
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


def _some(first: int, last: int) -> tuple[Span, ...]:
    return ((first, last),) if first < last else ()


def _spans(words: list[str], runs: list[Span]) -> tuple[Span, ...]:
    """Runs of words as runs of characters."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    return tuple((starts[first], starts[last]) for first, last in runs if first < last)


class LinePlaces:
    """The lines of one object by their fields."""

    def __init__(self, before: JsonObject | None, after: JsonObject | None, lines: Sequence[DiffLine]) -> None:
        self._before, self._after = before, after
        self._new = _first_lines(lines, "+ ")
        # Only what is gone has the path of the state before.
        self._old = _first_lines(lines, "-")

    def lines_of(self, finding: Record, name: str) -> list[int]:
        """Where a finding stands: for each of its fields the line in the state after, else in the one before.

        `name` is what a finding calls the object when it lists the places where it holds.
        """
        found = [self._line(tuple(path), version) for path, version in _fields(finding, name)[:MAX_PLACES]]
        return sorted({at for at in found if at is not None})

    def _line(self, path: Path, version: str) -> int | None:
        old, new = located(self._before, path, version), located(self._after, path, version)
        if not old and not new:
            return None
        return self._new.get(new) if len(new) >= len(old) else self._old.get(old)


def _fields(finding: Record, name: str) -> list[tuple[Iterable[str | int], str]]:
    evidence = finding["evidence"]
    listed = evidence.get("all_places")
    if listed:
        return [(place["path"], str(place["version"])) for place in listed if place["object"] == name and place["path"]]
    version = evidence.get("version")
    return [(finding["path"], version if isinstance(version, str) else "")] if finding["path"] else []


def _first_lines(lines: Sequence[DiffLine], kinds: str) -> dict[Path, int]:
    """The first line of each field: an item of a list begins at the line of its first field."""
    found: dict[Path, int] = {}
    for at, line in enumerate(lines):
        if line.kind not in kinds:
            continue
        path = line.path
        while path and path not in found:
            found[path] = at
            path = path[:-1]
    return found
