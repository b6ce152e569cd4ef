"""Sets of characters as sorted ranges of code points: what one step of a regular expression accepts."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
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
