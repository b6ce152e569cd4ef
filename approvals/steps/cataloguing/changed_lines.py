"""The lines that differ in the objects of two bundles, bounded. PURE: planned actions come in, JSON values go out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from provisioner.review.base.difference import MAX_PIECES, DiffLine, all_lines, near_changes
from provisioner.values import Action, PlannedAction

# Of one object, of one line, and of all objects of a comparison.
MOST_LINES = 2_000
MOST_CHARACTERS = MAX_PIECES + 1_000
MOST_BYTES = 2_000_000
# What a line costs beside its text.
LINE_BYTES = 24
# First what is changed, then what is new; of what goes and what stays nothing differs.
CHANGING = frozenset({Action.UPDATE, Action.REPLACE, Action.RERUN})


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """By the position of an object in the plan: how many lines come and go, and the lines themselves.

    A line is a list of its kind, its text and its numbers before and after. `left` counts those without room.
    """

    counts: dict[str, list[int]] = field(default_factory=dict)
    lines: dict[str, dict[str, Any]] = field(default_factory=dict)


def changed_lines(planned: Sequence[PlannedAction], *, begin: Callable[[], object]) -> ChangedLines:
    """What differs in each object. `begin` is called before each, and may raise to end it."""
    found, room = ChangedLines(), MOST_BYTES
    for at, one in _in_order(planned):
        begin()
        lines = all_lines(one.before, one.after)
        added, removed = (sum(line.kind == sign for line in lines) for sign in "+-")
        if not added and not removed:
            continue
        found.counts[str(at)] = [added, removed]
        near = near_changes(lines)
        records = list(_that_fit(near, room))
        room -= sum(map(_size, records))
        found.lines[str(at)] = {"lines": records, "left": len(near) - len(records)}
    return found


def _in_order(planned: Sequence[PlannedAction]) -> Iterator[tuple[int, PlannedAction]]:
    placed = list(enumerate(planned))
    yield from (it for it in placed if it[1].action in CHANGING)
    yield from (it for it in placed if it[1].action is Action.CREATE)


def _record(line: DiffLine) -> list[Any]:
    """The kind, the text, and the numbers before and after."""
    text = line.text if len(line.text) <= MOST_CHARACTERS else f"{line.text[:MOST_CHARACTERS]}…"
    return [line.kind, text, line.old, line.new]


def _that_fit(lines: Iterable[DiffLine], room: int) -> Iterator[list[Any]]:
    for at, line in enumerate(lines):
        record = _record(line)
        room -= _size(record)
        if room < 0 or at >= MOST_LINES:
            return
        yield record


def _size(record: list[Any]) -> int:
    return LINE_BYTES + len(record[1].encode(errors="surrogatepass"))
