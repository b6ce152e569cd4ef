"""Checksums that a chart makes over what it made up: computed again over the values that count."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from provisioner.render.helm.tokens import SHORTEST_INSIDE
from provisioner.values import MadePlace

SHORTEST = 6
_HEX = re.compile(rf"[0-9a-f]{{{SHORTEST},128}}")
_NAMED = re.compile(r"checksum|hash|digest|sha-?(?:1|224|256|384|512)|md5", re.IGNORECASE)
_HASHES = ("sha256", "sha1", "sha512", "md5")
# Checksums over checksums.
MAX_CHAIN = 5
# Lines that are looked for, each in all characters of templates.
MAX_SEARCHED = 2 * 10**8


@dataclass(frozen=True, slots=True)
class TextChange:
    """A text in the first rendering, in the second one, and with the values that count in place of made-up ones."""

    first: str
    again: str
    settled: str


def is_checksum(name: str, first: str, again: str, *, is_word: bool) -> bool:
    """Whether texts called `name` are checksums, by what they are and are called; `is_word` of a label or annotation.

    What is random and only looks like one would be another value whenever the content is another one.
    """
    if not (_HEX.fullmatch(first) and _HEX.fullmatch(again)):
        return False
    return bool(_NAMED.search(name)) or (is_word and not (first.isdigit() and again.isdigit()))


def compute_checksums(
    checksums: Mapping[MadePlace, tuple[str, str]], changes: Sequence[TextChange], sources: Sequence[tuple[str, str]]
) -> dict[MadePlace, str]:
    """The checksums that are those of a known text, over that text as it is settled; what is missing is not known.

    `sources` are whole templates, which may hold checksums of each other.
    """
    texts, known = list(changes), dict[MadePlace, str]()
    for _ in range(MAX_CHAIN):
        left = checksums.keys() - known.keys()
        if not left:
            break
        hashed: dict[str, list[tuple[str, TextChange]]] = defaultdict(list)
        for change in (*texts, *_settled_sources(sources, texts)):
            for name in _HASHES:
                hashed[_hash(name, change.first)[:SHORTEST]].append((name, change))
        found = {}
        for place in left:
            first, again = checksums[place]
            for name, change in hashed[first[:SHORTEST]]:
                if _hash(name, change.first).startswith(first) and _hash(name, change.again).startswith(again):
                    found[place] = _hash(name, change.settled)[: len(first)]
                    break
        if not found:
            break
        known |= found
        texts = [TextChange(*checksums[place], settled) for place, settled in known.items()] + list(changes)
    return known


def own_checksum(text: bytes, length: int) -> str:
    """A checksum of `length` hex digits over all that another one could be over."""
    return hashlib.sha512(text).hexdigest()[:length]


def _settled_sources(sources: Sequence[tuple[str, str]], changes: Sequence[TextChange]) -> list[TextChange]:
    """The templates, whole and without the blanks around them, in which settled lines make both renderings one."""
    lines: dict[str, str] = {}
    for change in changes:
        settled = change.settled.split("\n")
        for side in (change.first, change.again):
            if side.count("\n") == len(settled) - 1:
                lines |= {line: new for line, new in zip(side.split("\n"), settled, strict=True) if line != new}
    searched = len(lines) * sum(len(first) + len(again) for first, again in sources)
    if not lines or searched > MAX_SEARCHED or min(map(len, lines)) < SHORTEST_INSIDE:
        return []
    pattern = re.compile("|".join(map(re.escape, sorted(lines, key=len, reverse=True))))
    found: list[TextChange] = []
    for first, again in sources:
        one, other = (pattern.sub(lambda line: lines[line[0]], side) for side in (first, again))
        if one == other:
            found += [TextChange(first, again, one), TextChange(first.strip(), again.strip(), one.strip())]
    return found


def _hash(name: str, text: str) -> str:
    return hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()
