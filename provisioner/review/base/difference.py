"""Two states of an object as lines, side by side with what surrounds a change. Pure; stable for the same objects.

The trees are compared, not their texts: a moved key is no change, list items are matched by name or likeness, and a CRD
of ten thousand lines costs no more than walking it. Where items that both states hold stand in another order, a comment
in the list says so: what changes in an item is shown where it will be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from provisioner.alignment import TOO_DEEP, Aligner, is_same, order_of_kept
from provisioner.escaping import visible
from provisioner.json_values import mapping
from provisioner.values import JsonObject

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
    return "".join(piece.text for piece in pieces)


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
    return [piece for piece in found if piece.text], left


CONTEXT = 3
# What is nested deeper is one line of JSON.
MAX_DEPTH = 120
HIDDEN = "hidden"
# What a plan writes in the place of a Secret's values.
MASKS = frozenset({HIDDEN, "changed", "unchanged", "added"})
Path = tuple[str | int, ...]

_RANKS = {key: rank for rank, key in enumerate(("apiVersion", "kind", "metadata", "name"))}
# Characters of a key that is remembered.
_SHORT = 64
_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@%+-]*(?::[A-Za-z0-9_./@%+-]+)*")
_NAME = re.compile(r"[A-Za-z0-9_./:@%+*-]+")
_WORDS_OF_YAML = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Form(StrEnum):
    """What a line holds: a line of YAML, or one of a text of several lines."""

    YAML = "yaml"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`kind` is "+", "-", " " or, for a place where lines are left out, "@" with the path in `text`.

    `old` and `new` number it among the lines of the state before and after, from 1; 0 where it is not one of them.
    `path` is its field in the state after, of a "-" line in the state before; items of lists are numbers.
    """

    kind: str
    text: str
    path: Path = ()
    old: int = 0
    new: int = 0
    form: Form = Form.YAML


def diff_lines(before: JsonObject | None, after: JsonObject | None, *, context: int = CONTEXT) -> list[DiffLine]:
    """The lines that differ between two states, with `context` lines around them; all lines where one is missing.

    The text is safe to show (`visible`). Secrets are masked here once more, whatever the caller did before.
    """
    lines = all_lines(before, after)
    return near_changes(lines, context=context) if before is not None and after is not None else _visible_lines(lines)


def near_changes(lines: list[DiffLine], *, context: int = CONTEXT) -> list[DiffLine]:
    """Of all lines those that differ, with `context` lines around them; their text is safe to show.

    Of long lines that stand for each other those parts that differ.
    """
    shown = [*_folded(lines, context)]
    for gone, come in [*replaced_lines(shown)]:
        old, new = shown[gone].text, shown[come].text
        if is_long(old, new):
            pieces = in_pieces(old, new)
            shown[gone] = replace(shown[gone], text=text_of(pieces.old))
            shown[come] = replace(shown[come], text=text_of(pieces.new))
    return _visible_lines(shown)


def replaced_lines(lines: Iterable[DiffLine]) -> Iterator[tuple[int, int]]:
    """The places of lines that stand for each other: of those that go, the n-th for the n-th that comes after them."""
    gone: list[int] = []
    come: list[int] = []
    for at, line in enumerate(lines):
        if line.kind in " @" or (line.kind == "-" and come):
            yield from zip(gone, come, strict=False)
            gone, come = [], []
        if line.kind in "+-":
            (gone if line.kind == "-" else come).append(at)
    yield from zip(gone, come, strict=False)


def _visible_lines(lines: list[DiffLine]) -> list[DiffLine]:
    return [line if (text := visible(line.text)) == line.text else replace(line, text=text) for line in lines]


def all_lines(before: JsonObject | None, after: JsonObject | None) -> list[DiffLine]:
    """Every line of both states, what is equal in both once. Secrets are masked; `visible` is left to the caller."""
    old, new = (mask_secret(side) if side is not None else None for side in (before, after))
    comparison = _Comparison()
    comparison.compare(old, new, _Place())
    return comparison.numbered()


def mask_secret(obj: JsonObject) -> JsonObject:
    """`obj`, its values replaced by words if it is a Secret: those that a plan has written there stay."""
    if obj.get("kind") != "Secret" or obj.get("apiVersion") != "v1":
        return obj
    shown = dict(obj)
    for part in {"data", "stringData"} & obj.keys():
        values, shown[part] = obj[part], HIDDEN
        if isinstance(values, Mapping):
            is_word = {key: isinstance(value, str) and value in MASKS for key, value in values.items()}
            shown[part] = {key: value if is_word[key] else HIDDEN for key, value in values.items()}
    meta = mapping(obj.get("metadata"))
    annotations = mapping(meta.get("annotations"))
    if LAST_APPLIED in annotations:
        shown["metadata"] = {**meta, "annotations": {**annotations, LAST_APPLIED: HIDDEN}}
    return shown


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands: its path in both states, and how far its lines are moved to the right."""

    old: Path = ()
    new: Path = ()
    indent: str = ""

    def below(self, old: str | int, new: str | int) -> _Place:
        return _Place((*self.old, old), (*self.new, new), self.indent + "  ")

    def path(self, kind: str) -> Path:
        return self.old if kind == "-" else self.new


class _Comparison:
    """Writes the lines of two values, in order."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, str, Path, Form]] = []
        self._aligner = Aligner()

    def numbered(self) -> list[DiffLine]:
        old = new = 0
        found = []
        for kind, text, path, form in self._lines:
            old, new = old + (kind != "+"), new + (kind != "-")
            found.append(DiffLine(kind, text, path, old if kind != "+" else 0, new if kind != "-" else 0, form))
        return found

    def compare(self, old: object, new: object, at: _Place) -> None:
        """Two values that stand at the same place, without the key before them."""
        if len(at.new) < MAX_DEPTH and isinstance(old, Mapping) and isinstance(new, Mapping):
            self._maps(old, new, at)
        elif len(at.new) < MAX_DEPTH and isinstance(old, list) and isinstance(new, list):
            self._lists(old, new, at)
        else:
            self._value("-", old, at)
            self._value("+", new, at)

    def _maps(self, old: Mapping[str, Any], new: Mapping[str, Any], at: _Place) -> None:
        for key in sorted({**old, **new}, key=_key_rank):
            there = at.below(key, key)
            if key not in new:
                self._entry("-", key, old[key], there)
            elif key not in old:
                self._entry("+", key, new[key], there)
            elif is_same(old[key], new[key]):
                self._entry(" ", key, new[key], there)
            else:
                self._changed(key, old[key], new[key], there)

    def _changed(self, key: str, old: object, new: object, at: _Place) -> None:
        head = f"{at.indent[2:]}{_key_text(key)}:"
        if len(at.new) < MAX_DEPTH and _are_alike(old, new):
            self._line(" ", head, at)
            self.compare(old, new, at)
        elif old and new and (_is_text(old) or _is_text(new)) and isinstance(old, str) and isinstance(new, str):
            self._line(" ", f"{head} |", at)
            self._texts(old.split("\n"), new.split("\n"), at)
        else:
            self._entry("-", key, old, at)
            self._entry("+", key, new, at)

    def _texts(self, old: list[str], new: list[str], at: _Place) -> None:
        for run in self._aligner.runs(old, new):
            if run.is_equal:
                self._add_texts(" ", new[run.start : run.end], at)
                continue
            self._add_texts("-", old[run.first : run.last], at)
            self._add_texts("+", new[run.start : run.end], at)

    def _lists(self, old: list[Any], new: list[Any], at: _Place) -> None:
        pairs = self._aligner.pairs(old, new)
        order = order_of_kept(old, new, pairs)
        is_below_key = not at.new or isinstance(at.new[-1], str)  # the first line of an item has its dash
        if order is not None and is_below_key:
            self._order(order, at)
        for one, other in pairs:
            there = at.below(max(one, 0), max(other, 0))
            is_kept = one >= 0 and other >= 0
            if is_kept and is_same(old[one], new[other]):
                self._item(" ", new[other], there)
            elif is_kept and _are_alike(old[one], new[other]) and len(at.new) < MAX_DEPTH - 1:
                first = len(self._lines)
                self.compare(old[one], new[other], there)
                self._dash(first, at.indent)
            else:
                if one >= 0:
                    self._item("-", old[one], there)
                if other >= 0:
                    self._item("+", new[other], there)
        if order is not None and not is_below_key:
            self._order(order, at)

    def _order(self, order: tuple[list[str], list[str]], at: _Place) -> None:
        for kind, words in zip("-+", order, strict=True):
            names = (word if _NAME.fullmatch(word) else _scalar(word) for word in words)
            self._line(kind, f"{at.indent}# order: {', '.join(names)}", at)

    def _entry(self, kind: str, key: object, value: object, at: _Place) -> None:
        head = f"{at.indent[2:]}{_key_text(key)}:"
        if isinstance(value, Mapping | list) and value and len(at.new) < MAX_DEPTH:
            self._line(kind, head, at)
            self._value(kind, value, at)
        elif _is_text(value):
            self._line(kind, f"{head} |", at)
            self._add_texts(kind, str(value).split("\n"), at)
        else:
            self._line(kind, f"{head} {_scalar(value)}", at)

    def _value(self, kind: str, value: object, at: _Place) -> None:
        """The lines of a value; of None none, which is what a missing object is."""
        if isinstance(value, Mapping) and value and len(at.new) < MAX_DEPTH:
            for key in sorted(value, key=_key_rank):
                self._entry(kind, key, value[key], at.below(key, key))
        elif isinstance(value, list) and value and len(at.new) < MAX_DEPTH:
            for number, one in enumerate(value):
                self._item(kind, one, at.below(number, number))
        elif value is not None:
            self._line(kind, f"{at.indent}{_scalar(value)}", at)

    def _item(self, kind: str, value: object, at: _Place) -> None:
        first = len(self._lines)
        self._value(kind, value, at)
        if len(self._lines) == first:
            self._line(kind, f"{at.indent}{_scalar(value)}", at)
        self._dash(first, at.indent[2:])

    def _dash(self, first: int, indent: str) -> None:
        """Make the line at `first` the beginning of an item; of one that has gone also the line that came for it."""
        self._set_dash(first, indent)
        following = first + 1
        if self._lines[first][0] == "-" and following < len(self._lines) and self._lines[following][0] == "+":
            self._set_dash(following, indent)

    def _set_dash(self, at: int, indent: str) -> None:
        kind, text, path, form = self._lines[at]
        self._lines[at] = (kind, f"{indent}- {text[len(indent) + 2 :]}", path, form)

    def _add_texts(self, kind: str, texts: list[str], at: _Place) -> None:
        path = at.path(kind)
        self._lines.extend((kind, at.indent + text, path, Form.TEXT) for text in texts)

    def _line(self, kind: str, text: str, at: _Place) -> None:
        self._lines.append((kind, text, at.path(kind), Form.YAML))


def _are_alike(old: object, new: object) -> bool:
    """Whether two values are compared field by field; an empty one has no line of its own to stand beside the other."""
    are_maps, are_lists = (isinstance(old, kind) and isinstance(new, kind) for kind in (Mapping, list))
    return bool((are_maps or are_lists) and old and new)


def _scalar(value: object) -> str:
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS_OF_YAML
        return value if is_plain else json.dumps(value, ensure_ascii=False)
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return TOO_DEEP


def _key_text(key: object) -> str:
    return _known_key(key) if isinstance(key, str) and len(key) <= _SHORT else _scalar(key)


# A schema of thousands of lines has a few dozen keys.
@lru_cache(maxsize=4096)
def _known_key(key: str) -> str:
    return _scalar(key)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\n" in value


def _key_rank(key: object) -> tuple[int, str]:
    word = str(key)
    return (_RANKS.get(word, len(_RANKS)), word)


def _folded(lines: list[DiffLine], context: int) -> list[DiffLine]:
    """Only what is near a change; each gap is one "@" line that names where the next lines stand."""
    changed = [at for at, line in enumerate(lines) if line.kind != " "]
    if len(changed) == len(lines):
        return lines
    near = bytearray(len(lines))
    for at in changed:
        first, last = max(0, at - context), min(len(lines), at + context + 1)
        near[first:last] = b"\1" * (last - first)
    shown: list[DiffLine] = []
    above: list[tuple[int, str]] = []
    last = -1
    for at, line in enumerate(lines):
        depth = len(line.text) - len(line.text.lstrip(" "))
        while above and above[-1][0] >= depth:
            above.pop()
        if near[at]:
            if at > last + 1:
                shown.append(DiffLine("@", ".".join(key for _, key in above)))
            shown.append(line)
            last = at
        above.append((depth, line.text.strip().removeprefix("- ").split(":", 1)[0]))
    if shown and last < len(lines) - 1:
        shown.append(DiffLine("@", ""))
    return shown


MAX_VALUE_CHARACTERS = 200
ABSENT = "(absent)"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field: `before` and `after` are JSON-ready and short; ABSENT where there is none."""

    path: Path
    before: Any
    after: Any


def changed_paths(before: JsonObject | None, after: JsonObject | None) -> list[FieldChange]:
    """The smallest fields that differ, in the order of their paths. A Secret's values are never among them.

    The number of an item is that of the state after, of one that has gone that of the state before. A list whose items
    only stand in another order is a field itself, with the names of its items.
    """
    found = _between(mask_secret(before or {}), mask_secret(after or {}), (), Aligner())
    return [FieldChange(path, _short(old), _short(new)) for path, old, new in found]


def _between(old: object, new: object, path: Path, aligner: Aligner) -> Iterator[tuple[Path, object, object]]:
    if is_same(old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({**old, **new}, key=str):
            yield from _between(old.get(key, ABSENT), new.get(key, ABSENT), (*path, str(key)), aligner)
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        pairs = aligner.pairs(old, new)
        if order := order_of_kept(old, new, pairs):
            yield path, *order
        for at, there in pairs:
            one, other = old[at] if at >= 0 else ABSENT, new[there] if there >= 0 else ABSENT
            yield from _between(one, other, (*path, there if there >= 0 else at), aligner)
    else:
        yield path, old, new


def _short(value: object) -> Any:
    """`value` itself if it is short, else the beginning of its JSON."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    if len(text) <= MAX_VALUE_CHARACTERS:
        return value
    return f"{text[:MAX_VALUE_CHARACTERS]}… ({len(text)} characters)"
