"""A long line that changes, in pieces: each difference with what surrounds it. Pure; bounded in time and size.

Two changes far apart in one line are both shown (S41). What does not fit is counted, so that it can be said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# Shorter lines are shown whole, and of a longer one that has no partner so much on the page at first.
MAX_CHARACTERS = 1_000
# Of one that somebody opens.
MAX_FULL = 300_000
# Of the pieces of one line.
MAX_PIECES = 20_000
AROUND = 80
GAP = "…"
# Both lines go on together where so many characters are the same, at most so far behind a difference.
_SAME, _FAR = 24, 2_000
# What differs at more places is one difference from there on.
_MAX_DIFFERENCES = 500
_STEP = 4_096
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a line; `is_changed` where the other line has something else."""

    text: str
    is_changed: bool = False


@dataclass(frozen=True, slots=True)
class LinePieces:
    """Both lines in pieces, and how many characters that differ are in none of them."""

    old: tuple[Piece, ...]
    new: tuple[Piece, ...]
    unseen: int = 0


def is_long(old: str, new: str) -> bool:
    return max(len(old), len(new)) > MAX_CHARACTERS


def in_pieces(old: str, new: str) -> LinePieces:
    """What differs between two lines that stand for each other."""
    changed = list(differing_spans(old, new))
    sides = []
    unseen = 0
    for text, spans in ((old, [one for one, _ in changed]), (new, [one for _, one in changed])):
        found, left = _side(text, spans)
        sides.append(tuple(found))
        unseen += left
    return LinePieces(sides[0], sides[1], unseen)


def text_of(pieces: Sequence[Piece]) -> str:
    return "".join(one.text for one in pieces)


def differing_spans(old: str, new: str) -> Iterator[tuple[Span, Span]]:
    """Where both differ, in order; all between two differences is the same in both."""
    tail = _common_start(old[::-1], new[::-1], 0, 0)
    at = there = _common_start(old, new, 0, 0)
    tail = min(tail, len(old) - at, len(new) - there)
    last, end = len(old) - tail, len(new) - tail
    for _ in range(_MAX_DIFFERENCES):
        if at >= last and there >= end:
            return
        here, beyond = _together_again(old[at:last], new[there:end])
        yield (at, at + here), (there, there + beyond)
        at, there = at + here, there + beyond
        same = min(_common_start(old, new, at, there), max(last - at, 0), max(end - there, 0))
        at, there = at + same, there + same
    yield (at, last), (there, end)


def _together_again(old: str, new: str) -> tuple[int, int]:
    """How far on both sides it is to where they are the same again; to the end where that is too far."""
    found = (len(old), len(new))
    for skipped in range(min(_FAR, len(new))):
        if skipped >= sum(found):
            break
        part = new[skipped : skipped + _SAME]
        place = old.find(part, 0, _FAR + _SAME) if len(part) == _SAME else -1
        if place >= 0 and place + skipped < sum(found):
            found = (place, skipped)
    return found


def _common_start(old: str, new: str, first: int, start: int) -> int:
    """How many characters are the same from these places on."""
    at, step = 0, _STEP
    shorter = min(len(old) - first, len(new) - start)
    while step and at < shorter:
        if old[first + at : first + at + step] == new[start + at : start + at + step] and at + step <= shorter:
            at += step
        else:
            step //= 2
    return at


def _side(text: str, spans: Sequence[Span]) -> tuple[list[Piece], int]:
    """The pieces of one line, at most MAX_PIECES characters, and how many of its `spans` are left out."""
    found: list[Piece] = []
    room, end, left = MAX_PIECES, 0, 0
    for (first, last), (following, _) in zip(spans, [*spans[1:], (len(text), 0)], strict=True):
        begin = max(end, first - AROUND)
        shown = min(last, first + max(room - (first - begin), 0))
        left += last - shown
        if room <= 0:
            continue
        stop = min(shown + AROUND, following) if shown == last else shown
        found += [
            Piece(GAP if begin > end else ""),
            Piece(text[begin:first]),
            Piece(text[first:shown], is_changed=True),
        ]
        found.append(Piece(text[shown:stop]))
        room, end = room - (stop - begin), stop
    found.append(Piece(GAP if end < len(text) else ""))
    return [one for one in found if one.text], left
