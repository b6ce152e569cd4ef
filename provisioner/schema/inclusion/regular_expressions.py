"""Regular expressions in RE2's syntax read into automata, whose languages can then be compared."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby

Ranges = tuple[tuple[int, int], ...]
LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
FOLDED = {"k": "\u212a", "s": "\u017f"}  # the two characters outside ASCII that fold into it


def joined(parts: Iterable[tuple[int, int]]) -> Ranges:
    """The ranges sorted, and those that touch made one."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(parts):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)


def negated(ranges: Ranges) -> Ranges:
    found, start = [], 0
    for low, high in ranges:
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    return (*found, (start, LAST)) if start <= LAST else tuple(found)


def holds(ranges: Ranges, point: int) -> bool:
    place = bisect_right(ranges, (point, LAST)) - 1
    return place >= 0 and ranges[place][1] >= point


def folded(ranges: Ranges) -> Ranges:
    """With both cases of every ASCII letter, as `(?i)` asks."""
    found = list(ranges)
    for letter in "abcdefghijklmnopqrstuvwxyz":
        forms = [ord(char) for char in (letter, letter.upper(), FOLDED.get(letter, letter))]
        if any(holds(ranges, form) for form in forms):
            found += [(form, form) for form in forms]
    return joined(found)


def one(char: str) -> Ranges:
    return ((ord(char), ord(char)),)


ANY: Ranges = ((0, LAST),)
NOT_NEWLINE = negated(one("\n"))
DIGITS: Ranges = ((0x30, 0x39),)
WORD = joined([(0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A), (0x5F, 0x5F)])
SPACE = joined([(9, 10), (12, 13), (32, 32)])
PERL = {"d": DIGITS, "w": WORD, "s": SPACE}
POSIX = {
    "alnum": joined([(0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)]),
    "alpha": joined([(0x41, 0x5A), (0x61, 0x7A)]),
    "ascii": ((0, 0x7F),),
    "blank": joined([(9, 9), (32, 32)]),
    "cntrl": joined([(0, 0x1F), (0x7F, 0x7F)]),
    "digit": DIGITS,
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": joined([(0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)]),
    "space": joined([(9, 13), (32, 32)]),
    "upper": ((0x41, 0x5A),),
    "word": WORD,
    "xdigit": joined([(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)]),
}


@cache
def category(name: str) -> Ranges:
    """The characters of a Unicode category such as L or Lu; empty where there is none of that name."""
    found = []
    for fits, points in groupby(range(LAST + 1), lambda point: unicodedata.category(chr(point)).startswith(name)):
        if fits:
            listed = list(points)
            found.append((listed[0], listed[-1]))
    return tuple(found)


MAX_STATES = 6_000
MAX_REPEAT = 1_000
MAX_DEPTH = 100
ESCAPES = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
AT_START, AT_END = "^", "$"
FLAGS = "ims"


class UnreadableExpression(ValueError):
    """The expression uses what is not read here (word boundaries, several lines), is too large, or is none."""


@dataclass(slots=True)
class Automaton:
    """States with steps that read a character and steps that read none, the latter perhaps only at start or end.

    It searches: text before and after a match is skipped by the steps of `start` and `end` to themselves.
    """

    reads: list[list[tuple[Ranges, int]]] = field(default_factory=list)
    jumps: list[list[tuple[str, int]]] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def state(self) -> int:
        if len(self.reads) >= MAX_STATES:
            raise UnreadableExpression(f"more than {MAX_STATES} states")
        self.reads.append([])
        self.jumps.append([])
        return len(self.reads) - 1

    def jump(self, source: int, target: int, condition: str = "") -> None:
        self.jumps[source].append((condition, target))


def automaton(pattern: str) -> Automaton:
    """The automaton that accepts every text in which RE2 finds `pattern`; raises UnreadableExpression."""
    made = Automaton()
    made.start = made.state()
    made.end = made.state()
    made.reads[made.start].append((ANY, made.start))
    made.reads[made.end].append((ANY, made.end))
    reader = _Reader(pattern, made)
    last = reader.alternatives(made.start, 0)
    if reader.place < len(pattern):
        raise UnreadableExpression(f"unexpected {pattern[reader.place]!r}")
    made.jump(last, made.end)
    return made


@dataclass(slots=True)
class _Reader:
    """Reads the expression once from left to right; what is repeated is read again, once per copy."""

    text: str
    made: Automaton
    place: int = 0
    flags: frozenset[str] = frozenset()

    def peek(self) -> str:
        return self.text[self.place : self.place + 1]

    def take(self, wanted: str) -> bool:
        if not self.text.startswith(wanted, self.place):
            return False
        self.place += len(wanted)
        return True

    def next(self) -> str:
        char = self.peek()
        if not char:
            raise UnreadableExpression("ends too early")
        self.place += 1
        return char

    def alternatives(self, start: int, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise UnreadableExpression("nested too deep")
        end, kept = self.made.state(), self.flags
        self.made.jump(self._sequence(start, depth), end)
        while self.take("|"):
            self.made.jump(self._sequence(start, depth), end)
        self.flags = kept
        return end

    def _sequence(self, start: int, depth: int) -> int:
        at = self.made.state()
        self.made.jump(start, at)
        while self.peek() not in ("", "|", ")"):
            at = self._repeated(at, depth)
        return at

    def _repeated(self, start: int, depth: int) -> int:
        """One piece and what says how often it stands there."""
        begin, flags = self.place, self.flags
        first = self.made.state()
        after = self._piece(first, depth)
        counts = self._counts()
        resume = self.place, self.flags
        low, high = counts if counts is not None else (1, 1)
        if low > MAX_REPEAT or (high or 0) > MAX_REPEAT or (high is not None and high < low):
            raise UnreadableExpression("repeated too often")
        at, has_copy = start, True
        for number in range(max(low, high if high is not None else low + 1, 1)):
            if number:
                self.place, self.flags = begin, flags
                first = self.made.state()
                after = self._piece(first, depth)
            has_copy = high is None or number < high
            if number >= low:
                end = self.made.state()
                self.made.jump(at, end)
                if has_copy:
                    self.made.jump(at, first)
                    self.made.jump(after, end)
                    if high is None:
                        self.made.jump(after, first)
                at = end
            else:
                self.made.jump(at, first)
                at = after
        self.place, self.flags = resume
        return at

    def _counts(self) -> tuple[int, int | None] | None:
        """(fewest, most) of the quantifier that stands here, most None for no limit; None where there is none."""
        found: tuple[int, int | None] | None = None
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                found = counts
                break
        else:
            found = self._braces()
        if found is not None:
            self.take("?")
            if self.peek() and self.peek() in "*+?":
                raise UnreadableExpression("repeated twice")
        return found

    def _braces(self) -> tuple[int, int | None] | None:
        close = self.text.find("}", self.place)
        if self.peek() != "{" or close < 0:
            return None
        low, comma, high = self.text[self.place + 1 : close].partition(",")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None
        self.place = close + 1
        if not comma:
            return int(low), int(low)
        return int(low), int(high) if high else None

    def _piece(self, start: int, depth: int) -> int:
        char = self.next()
        if char == "(":
            return self._group(start, depth)
        if char in (AT_START, AT_END):
            if "m" in self.flags:
                raise UnreadableExpression("several lines")
            end = self.made.state()
            self.made.jump(start, end, char)
            return end
        if char == "[":
            is_negated = self.take("^")
            parts: list[tuple[int, int]] = []
            is_first = True
            while is_first or self.peek() != "]":
                is_first = False
                parts += self._class_part()
            self.place += 1
            found = joined(parts)
            found = folded(found) if "i" in self.flags else found
            return self._read_class(start, (negated(found) if is_negated else found))
        if char == ".":
            return self._read_class(start, ANY if "s" in self.flags else NOT_NEWLINE)
        if char == "\\":
            char = self.peek()
            if char in {"A", "z"}:
                self.place += 1
                end = self.made.state()
                self.made.jump(start, end, AT_START if char == "A" else AT_END)
                return end
            if char == "Q":
                self.place += 1
                close = self.text.find("\\E", self.place)
                end = close if close >= 0 else len(self.text)
                for char in self.text[self.place : end]:
                    start = self._read_class(start, one(char))
                self.place = end + (2 if close >= 0 else 0)
                return start
            return self._read_class(start, self._escaped())
        if char in "*+?":
            raise UnreadableExpression("nothing to repeat")
        return self._read_class(start, one(char))

    def _read_class(self, start: int, ranges: Ranges) -> int:
        end = self.made.state()
        self.made.reads[start].append((folded(ranges) if "i" in self.flags else ranges, end))
        return end

    def _group(self, start: int, depth: int) -> int:
        kept = self.flags
        if self.take("?"):
            if self.take("P<") or self.take("<"):
                self.place = self.text.find(">", self.place) + 1
                if not self.place:
                    raise UnreadableExpression("a name without end")
            elif self._sets_flags():
                return start
        end = self.alternatives(start, depth + 1)
        if not self.take(")"):
            raise UnreadableExpression("a group without end")
        self.flags = kept
        return end

    def _sets_flags(self) -> bool:
        """Read `i-s:` or `i)`; True where the flags count for the rest of the group outside."""
        is_on, flags = True, set(self.flags)
        while (char := self.next()) not in ":)":
            if char == "-":
                is_on = False
            elif char in FLAGS:
                (flags.add if is_on else flags.discard)(char)
            elif char != "U":
                raise UnreadableExpression(f"(?{char}")
        self.flags = frozenset(flags)
        return char == ")"

    def _escaped(self) -> Ranges:
        """What a backslash and the characters after it stand for, inside a class and outside."""
        char = self.next()
        if char.lower() in PERL:
            return PERL[char] if char.islower() else negated(PERL[char.lower()])
        if char in "pP":
            name = self.next()
            if name == "{":
                close = self.text.find("}", self.place)
                name, self.place = self.text[self.place : close], close + 1
            found = category(name.removeprefix("^"))
            if not found:
                raise UnreadableExpression(f"\\p{{{name}}}")
            return negated(found) if (char == "P") != name.startswith("^") else found
        if char == "x":
            return one(self._hexadecimal())
        if char in ESCAPES:
            return one(ESCAPES[char])
        if char == "0":
            return one("\0")
        if char.isalnum():
            raise UnreadableExpression(f"\\{char}")
        return one(char)

    def _hexadecimal(self) -> str:
        if self.take("{"):
            close = self.text.find("}", self.place)
            digits, self.place = self.text[self.place : close], close + 1
        else:
            digits, self.place = self.text[self.place : self.place + 2], self.place + 2
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError) as exc:
            raise UnreadableExpression("no character") from exc

    def _class_part(self) -> Ranges:
        if self.take("[:"):
            is_negated = self.take("^")
            close = self.text.find(":]", self.place)
            name, self.place = self.text[self.place : close], close + 2
            if name not in POSIX:
                raise UnreadableExpression(f"[:{name}:]")
            return negated(POSIX[name]) if is_negated else POSIX[name]
        low = self._class_char()
        if self.peek() != "-" or self.text[self.place + 1 : self.place + 2] in ("]", ""):
            return low
        self.place += 1
        high = self._class_char()
        if len(low) != 1 or len(high) != 1 or low[0][0] > high[0][0]:
            raise UnreadableExpression("a range without order")
        return ((low[0][0], high[0][0]),)

    def _class_char(self) -> Ranges:
        char = self.next()
        return self._escaped() if char == "\\" else one(char)
