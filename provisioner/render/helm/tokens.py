"""What differs between two renderings of one text, word by word, so that the rest of the text can change and be seen.

The same text has to be cut alike in each rendering, or a value that was kept would be put in another's place. So a
word is never cut where two random ones happen to begin alike, but at marks, and what cannot be told is refused.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest

from provisioner.values import MadeSort

# A text that is known to be made up is looked for inside of others from this length on.
SHORTEST_INSIDE = 8
# Random bytes may be read as base64 of a text, but hardly of nine characters and twice.
_SHORTEST_CODED = 12
MAX_CODINGS = 3
# What is one value though it has marks in it: blocks of PEM, and times, of which only the seconds differ now.
_PEM = re.compile(r"-----(?P<edge>BEGIN|END) (?P<label>[A-Z0-9 ]{1,64})-----")
_TIME = re.compile(r"(?:\d{4}[-/.]\d\d[-/.]\d\d[T ])?\d\d:\d\d:\d\d[\d.]*(?:Z| ?[+-]\d\d:?\d\d)?(?: UTC)?(?: m=\S+)?")
_NO_DIGITS = re.compile(r"\D")
# Of a time in seconds since 1970, as all others that have seconds; no random number is as near to the next one.
_DIGITS_OF_TIME, _SECONDS_APART = 10, 100
# So many numbers before the last one may belong to a date.
_PARTS_OF_DATES = 6
_HARD = r"\s\"',;:@?&=<>()\[\]{}|\\"
# The padding of base64 belongs to its word.
_WORD = re.compile(rf"[^{_HARD}]+(?:={{1,2}}(?=[{_HARD}]|$))?")
_SOFT = "/-."
_LETTERS = re.compile(r"[A-Za-z0-9]{3,}")


class Unaligned(Exception):
    """Two renderings that do not differ by words alone."""


@dataclass(frozen=True, slots=True)
class Token:
    """A part of a text that was another one the second time: the chart made it up."""

    first: str = field(repr=False)
    again: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Coded:
    """The base64 of a text with tokens."""

    parts: tuple[Part, ...]


Part = str | Token | Coded


def compare_texts(first: str, again: str, known: Iterable[Token] = (), *, is_whole: bool = False) -> tuple[Part, ...]:
    """The parts of a text, those that differ as tokens; `known` tokens are found inside of longer words, too.

    `is_whole` says that the text is a value of a Secret, which is one token where it has nothing else in it.
    Raises Unaligned where the two differ by more than words.
    """
    parts = _Comparison(known, is_whole).compare(first, again)
    if not has_sides(parts, first, again):
        raise Unaligned
    return parts


def has_sides(parts: Sequence[Part], first: str, again: str) -> bool:
    """Whether these are the parts of both texts, so that other values can be put into them."""
    tokens = list(tokens_of(parts))
    sides = ([token.first for token in tokens], [token.again for token in tokens])
    return (join(parts, sides[0]), join(parts, sides[1])) == (first, again)


def join(parts: Iterable[Part], values: Iterable[str]) -> str:
    """The text of these parts with the values in the places of its tokens, in their order."""
    return _joined(parts, iter(values))


def _joined(parts: Iterable[Part], values: Iterator[str]) -> str:
    texts = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, Token):
            texts.append(next(values))
        else:
            texts.append(base64.b64encode(_joined(part.parts, values).encode()).decode())
    return "".join(texts)


def tokens_of(parts: Iterable[Part]) -> Iterator[Token]:
    """The tokens in their order, as often as they are there."""
    for part in parts:
        if isinstance(part, Token):
            yield part
        elif isinstance(part, Coded):
            yield from tokens_of(part.parts)


def is_pem(text: str) -> bool:
    """Whether a text is one block of PEM."""
    return _units(text) == [(0, len(text))] and text.startswith("-----")


def sort_of_pem(text: str) -> MadeSort:
    """What a block of PEM is, by its label, and of a certificate by what it says of itself."""
    label = _label(text)
    if label.endswith("PRIVATE KEY"):
        return MadeSort.PRIVATE_KEY
    if label.endswith("PUBLIC KEY"):
        return MadeSort.PUBLIC_KEY
    from cryptography import x509  # noqa: PLC0415 - few charts make up certificates, and it takes 40 ms to load

    try:
        found = x509.load_pem_x509_certificate(text.encode())
        is_authority = found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (ValueError, x509.ExtensionNotFound):
        is_authority = False
    return MadeSort.AUTHORITY if is_authority else MadeSort.CERTIFICATE


def is_time(token: Token) -> bool:
    """Whether a text is the time of its rendering: the two lie seconds apart, written or as one number."""
    if _TIME.fullmatch(token.first) and _TIME.fullmatch(token.again):
        return True
    first, again = (_NO_DIGITS.sub("", text) for text in (token.first, token.again))
    is_date = set(token.first + token.again) <= set("0123456789-/.:TZ ") and len(first) == len(again)
    return is_date and len(first) >= _DIGITS_OF_TIME and 0 < abs(int(again) - int(first)) <= _SECONDS_APART


def decoded(text: str) -> str | None:
    """The text that `text` is the base64 of; None where it is none, of no text, or written otherwise than by us."""
    try:
        raw = base64.b64decode(text, validate=True)
        inner = raw.decode()
    except ValueError:
        return None
    is_same = base64.b64encode(raw).decode() == text
    return inner if is_same and "".join(inner.split()).isprintable() else None


class _Comparison:
    def __init__(self, known: Iterable[Token], is_whole: bool):
        self._known = [token for token in known if len(token.first) >= SHORTEST_INSIDE]
        self._is_whole = is_whole
        self._codings = 0

    def compare(self, first: str, again: str) -> tuple[Part, ...]:
        if first == again:
            return (first,) if first else ()
        if coded := self._coded(first, again):
            return (coded,)
        if self._is_whole and not self._codings and not _is_anchored(first, again):
            return (Token(first, again),)
        return self._by_known(first, again)

    def _coded(self, first: str, again: str) -> Coded | None:
        if min(len(first), len(again)) < _SHORTEST_CODED or self._codings >= MAX_CODINGS:
            return None
        inner, inner_again = decoded(first), decoded(again)
        if inner is None or inner_again is None:
            return None
        self._codings += 1
        try:
            return Coded(self.compare(inner, inner_again))
        finally:
            self._codings -= 1

    def _by_known(self, first: str, again: str) -> tuple[Part, ...]:
        """Cut at the tokens that are known already; where the two texts do not have the same ones, at none."""
        present = [token for token in self._known if token.first in first and token.again in again]
        present.sort(key=lambda token: len(token.first), reverse=True)
        if not present:
            return self._by_unit(first, again)
        sides = []
        for text, tokens in ((first, {t.first: t for t in present}), (again, {t.again: t for t in present})):
            pattern = re.compile("|".join(map(re.escape, sorted(tokens, key=len, reverse=True))))
            sides.append((pattern.split(text), [tokens[found] for found in pattern.findall(text)]))
        (statics, found), (statics_again, found_again) = sides
        if found != found_again:
            return self._by_unit(first, again)
        return _between(found, (self._by_unit(*pair) for pair in zip(statics, statics_again, strict=True)))

    def _by_unit(self, first: str, again: str) -> tuple[Part, ...]:
        units, units_again = _units(first), _units(again)
        if len(units) != len(units_again):
            raise Unaligned
        pairs = [(first[slice(*unit)], again[slice(*other)]) for unit, other in zip(units, units_again, strict=True)]
        if any(_label(one) != _label(other) for one, other in pairs):
            raise Unaligned
        made: list[Part] = [one if one == other else Token(one, other) for one, other in pairs]
        rests = (_around(first, units), _around(again, units_again))
        return _between(made, (self._by_line(*pair) for pair in zip(*rests, strict=True)))

    def _by_line(self, first: str, again: str) -> tuple[Part, ...]:
        lines, lines_again = first.split("\n"), again.split("\n")
        if len(lines) != len(lines_again):
            raise Unaligned
        pairs = zip(lines, lines_again, strict=True)
        return _between(["\n"] * (len(lines) - 1), (self._by_word(*pair) for pair in pairs))

    def _by_word(self, first: str, again: str) -> tuple[Part, ...]:
        if first == again:
            return (first,) if first else ()
        words, words_again = list(_WORD.finditer(first)), list(_WORD.finditer(again))
        marks, marks_again = (
            _around(text, [word.span() for word in found]) for text, found in ((first, words), (again, words_again))
        )
        if marks != marks_again:
            raise Unaligned
        found: list[tuple[Part, ...]] = []
        for word, word_again in zip(words, words_again, strict=True):
            # Of an address, such as `db://x1b7@host`, the value begins after the slashes.
            is_address = all(each.string.startswith("://", each.start() - 1) for each in (word, word_again))
            start = 2 if is_address and word.start() else 0
            pair = word[0][start:], word_again[0][start:]
            coded = self._coded(*pair)
            found.append((word[0][:start], *((coded,) if coded else _cut(*pair))))
        pieces = chain.from_iterable(zip_longest([(mark,) for mark in marks], found, fillvalue=()))
        return tuple(part for piece in pieces for part in piece if part)


def _is_anchored(first: str, again: str) -> bool:
    """Whether something in a value stayed: of two random texts, marks and all, nothing does.

    Only all letters between two marks count: what a random text begins with may be as before by chance.
    """
    shared = set(_LETTERS.findall(first)) & set(_LETTERS.findall(again))
    return bool(shared) or "\n" in first.strip() + again.strip()


def _cut(first: str, again: str) -> tuple[Part, ...]:
    """A word in which one part differs, between marks: of `shop-x1b7` it is what follows the hyphen."""
    if first == again:
        return (first,)
    start = _mark_before(_shared(first, again))
    end = _mark_before(_shared(first[start:][::-1], again[start:][::-1]))
    if not first[start : len(first) - end].strip(_SOFT + "0123456789"):
        # Of a date, only the last digits differ now.
        for _ in range(_PARTS_OF_DATES):
            before = _mark_before(first[: max(start - 1, 0)])
            if not first[before : max(start - 1, 0)].isdigit():
                break
            start = before
    middle, middle_again = first[start : len(first) - end], again[start : len(again) - end]
    if not middle or not middle_again:
        return (Token(first, again),)
    parts: list[Part] = [first[:start], Token(middle, middle_again), first[len(first) - end :] if end else ""]
    return tuple(part for part in parts if part)


def _shared(first: str, again: str) -> str:
    """What two texts begin with."""
    pairs = enumerate(zip(first, again, strict=False))
    return first[: next((at for at, (letter, other) in pairs if letter != other), min(len(first), len(again)))]


def _mark_before(shared: str) -> int:
    """Where the last mark that follows a letter or digit ends in a text; 0 where there is none."""
    ends = [at + 1 for at in range(1, len(shared)) if shared[at] in _SOFT and shared[at - 1].isalnum()]
    return ends[-1] if ends else 0


def _units(text: str) -> list[tuple[int, int]]:
    """Where blocks of PEM and times stand; each edge of a block is looked at once."""
    blocks, begin = [], None
    for edge in _PEM.finditer(text):
        if edge["edge"] == "BEGIN":
            begin = edge
        elif begin is not None and begin["label"] == edge["label"]:
            blocks.append((begin.start(), edge.end()))
            begin = None
    outside = zip(_edges(text, blocks)[::2], _edges(text, blocks)[1::2], strict=True)
    times = [time.span() for start, end in outside for time in _TIME.finditer(text, start, end)]
    return sorted(blocks + times)


def _label(unit: str) -> str:
    """What a block of PEM holds; "" for a time."""
    begin = _PEM.match(unit)
    return begin["label"] if begin else ""


def _edges(text: str, spans: Iterable[tuple[int, int]]) -> list[int]:
    return [0, *(edge for span in spans for edge in span), len(text)]


def _around(text: str, spans: Iterable[tuple[int, int]]) -> list[str]:
    """What lies before, between and after these parts of a text."""
    edges = _edges(text, spans)
    return [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]


def _between(separators: Iterable[Part], pieces: Iterable[tuple[Part, ...]]) -> tuple[Part, ...]:
    """The pieces with one separator between each two."""
    parts: list[Part] = []
    for piece, separator in zip_longest(pieces, separators):
        parts += piece
        parts += [separator] if separator is not None else []
    return tuple(parts)
