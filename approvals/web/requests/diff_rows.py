"""An object's lines as the rows of a table: unified, or side by side. Bounded in rows, characters and colours."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from django.utils.safestring import SafeString, mark_safe
from pygments.lexers.data import YamlLexer
from pygments.token import STANDARD_TYPES, _TokenType

from approvals.web.requests.diff_lines import FoldedLines, Line, Pair, Span, Words, anchor_of, side_by_side
from provisioner.escaping import visible
from provisioner.review.base.difference import GAP, MAX_CHARACTERS, MAX_FULL, DiffLine, Form, Piece, in_pieces, is_long

# Longer lines are shown in one colour.
MAX_COLOURED = 2_000
_LEXER = YamlLexer(stripnl=False, ensurenl=False)
Token = tuple[str, str]


_CSS = {"+": "plus", "-": "minus", " ": "same"}


def html_of(text: str, form: Form, marked: Sequence[Span] = ()) -> SafeString:
    """`text`, which is `visible` already, as HTML. `marked` are spans of its characters, in order."""
    parts = (_written(css, part, is_marked) for css, part, is_marked in _cut(_tokens(text, form), marked))
    return mark_safe("".join(parts))  # noqa: S308 - `_written` escapes every part


def _tokens(text: str, form: Form) -> list[Token]:
    if form is Form.TEXT or len(text) > MAX_COLOURED:
        return [("s" if form is Form.TEXT else "", text)]
    found = [(_css(kind), part) for kind, part in _LEXER.get_tokens(text)]
    # Whatever a lexer makes of a line, every character of it is shown.
    return found if "".join(part for _, part in found) == text else [("", text)]


def _css(kind: _TokenType) -> str:
    """The short name of a token's class, or of the nearest that has one."""
    while kind not in STANDARD_TYPES and kind.parent is not None:
        kind = kind.parent
    css = STANDARD_TYPES.get(kind, "")
    return "" if css == "w" else css


def _cut(tokens: Iterable[Token], marked: Sequence[Span]) -> Iterator[tuple[str, str, bool]]:
    """The tokens, cut where a mark begins or ends."""
    at = number = 0
    for css, text in tokens:
        end = at + len(text)
        while at < end:
            while number < len(marked) and marked[number][1] <= at:
                number += 1
            first, last = marked[number] if number < len(marked) else (end, end)
            is_marked = first <= at < last
            stop = min(last if is_marked else max(first, at), end)
            stop = end if stop == at else stop
            yield css, text[len(text) - (end - at) : len(text) - (end - stop)], is_marked
            at = stop


def _written(css: str, text: str, is_marked: bool) -> str:
    inner = f'<span class="{css}">{escape(text)}</span>' if css else escape(text)
    return f"<mark>{inner}</mark>" if is_marked else inner


@dataclass(frozen=True, slots=True)
class DiffCell:
    """One line on one side; `anchor` is its address within the object; `left_out` counts characters.

    `old` and `new` are its numbers as text, "" where it has none.
    """

    kind: str
    html: SafeString
    old: str
    new: str
    anchor: str
    left_out: int = 0

    @property
    def css(self) -> str:
        return _CSS[self.kind]


@dataclass(frozen=True, slots=True)
class Row:
    """A line, two lines side by side, or a gap; `findings` stand below it. `is_change` says that a change begins here.

    `before` and `after` are the anchors of the changes around a gap, "" where there is none.
    """

    cell: DiffCell | None = None
    left: DiffCell | None = None
    right: DiffCell | None = None
    gap: FoldedLines | None = None
    is_change: bool = False
    before: str = ""
    after: str = ""
    findings: list[Any] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown at first of a line that stands for another: what to mark in it, and how much is left out."""

    text: str
    marks: Sequence[Span]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class LineNotes:
    """What stands at lines, by their place: where changes begin, and findings. `full` is the line shown whole."""

    changes: Sequence[int] = ()
    findings: Mapping[int, list[Any]] = field(default_factory=dict)
    full: Line | None = None


class Drawing:
    """Draws the lines of one object."""

    def __init__(self, lines: Sequence[DiffLine], notes: LineNotes) -> None:
        self._lines, self._notes = lines, notes
        self._changes = frozenset(notes.changes)
        self._words = Words()

    def unified(self, rows: Sequence[int | FoldedLines]) -> Iterator[Row]:
        partners = self._partners(rows)
        for row in rows:
            if isinstance(row, FoldedLines):
                yield self._gap(row)
            else:
                cell = self._cell(row, partners.get(row))
                yield Row(cell=cell, is_change=row in self._changes, findings=self._findings(row))

    def split(self, rows: Sequence[int | FoldedLines]) -> Iterator[Row]:
        partners = self._partners(rows)
        for pair in side_by_side(self._lines, rows):
            if isinstance(pair, FoldedLines):
                yield self._gap(pair)
                continue
            places = [at for at in dict.fromkeys((pair.left, pair.right)) if at is not None]
            cells = {at: self._cell(at, partners.get(at)) for at in places}
            yield Row(
                left=cells[pair.left] if pair.left is not None else None,
                right=cells[pair.right] if pair.right is not None else None,
                is_change=not self._changes.isdisjoint(places),
                findings=[finding for at in places for finding in self._findings(at)],
            )

    def _gap(self, gap: FoldedLines) -> Row:
        """Changes stand in order."""
        known = self._notes.changes
        at = bisect_left(known, gap.first)
        before = anchor_of(self._lines[known[at - 1]]) if at else ""
        after = anchor_of(self._lines[known[at]]) if at < len(known) else ""
        return Row(gap=gap, before=before, after=after)

    def _findings(self, at: int) -> list[Any]:
        return self._notes.findings.get(at, [])

    def _partners(self, rows: Iterable[int | FoldedLines]) -> dict[int, _Shown]:
        """For each line that stands for another what is shown of it: of long ones every part that differs."""
        found: dict[int, _Shown] = {}
        for pair in side_by_side(self._lines, rows):
            if isinstance(pair, Pair) and pair.left is not None and pair.right is not None and pair.left != pair.right:
                old, new = self._lines[pair.left].text, self._lines[pair.right].text
                if is_long(old, new):
                    pieces = in_pieces(old, new)
                    found[pair.left], found[pair.right] = _joined(pieces.old, old), _joined(pieces.new, new)
                    continue
                marks = self._words.marks(visible(old), visible(new))
                found[pair.left], found[pair.right] = (_Shown(visible(old), marks.old), _Shown(visible(new), marks.new))
        return found

    def _cell(self, at: int, shown: _Shown | None) -> DiffCell:
        line = self._lines[at]
        is_full = self._notes.full in (("L", line.old), ("R", line.new))
        if is_full or shown is None:
            limit = MAX_FULL if is_full else MAX_CHARACTERS
            shown = _Shown(visible(line.text[:limit]), (), max(len(line.text) - limit, 0))
        html = html_of(shown.text, line.form, shown.marks)
        old, new = (str(number or "") for number in (line.old, line.new))
        return DiffCell(line.kind, html, old, new, anchor_of(line), shown.left_out)


def _joined(pieces: Iterable[Piece], whole: str) -> _Shown:
    text, marks, held = "", [], 0
    for piece in pieces:
        part = visible(piece.text)
        marks += [(len(text), len(text) + len(part))] if piece.is_changed else []
        text += part
        held += 0 if piece.text == GAP else len(piece.text)
    return _Shown(text, marks, max(len(whole) - held, 0))
