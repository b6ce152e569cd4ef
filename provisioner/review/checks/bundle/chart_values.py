"""Which values of a chart changed since the content that runs: first those that the spec sets, then the chart's own."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from itertools import accumulate
from typing import Any
from urllib.parse import unquote

from provisioner.masking import HIDDEN, masked
from provisioner.review.base.facts import SECRET, Check, Facts, ReviewRule, mapping
from provisioner.review.base.text import visible
from provisioner.sentences import number, some, some_phrases
from provisioner.values import Content, Finding, Section, Severity

MAX_SHOWN = 200
# As many as a content keeps.
MAX_VALUES = 5_000
_HIDDEN = json.dumps(HIDDEN)
# Words of so many characters are looked for inside of what Secrets hold.
_TELLING, _SHORTEST_CODE = 8, 4
# Numbers that Go prints with an exponent, and those whose hex is a code.
_LARGE, _LONGEST_WORD = 1e6, 0xFFF
# Values times characters of Secrets: some seconds.
MOST_COMPARED = 2_000_000_000
_ESCAPED = re.compile(r"\\(?:[ux]([0-9a-fA-F]{4}|[0-9a-fA-F]{2})|(.))", re.DOTALL)
_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)')
_CODED = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}")
_CHANGED = ReviewRule("VAL-01", Section.CONTENT, Severity.NOTABLE)


def hide_secret_values(facts: Facts) -> Facts:
    """`facts` without the values of the charts that stand in a Secret, whatever they are called (S09).

    A value that is hidden on one side is hidden on the other. One of the new chart is hidden by what the new Secrets
    hold alone: else who tries values there would learn which of them the old ones hold (S38).
    """
    if facts.previous is None or not facts.previous.values or not facts.content.values:
        return facts
    old, new = (_secret_texts(one) for one in (facts.previous, facts.content))
    before, after = facts.previous.values, facts.content.values
    hidden = _standing_in(before, old | new) | _standing_in(after, new)
    # Of contents that were rendered by earlier versions addresses are as they were written.
    shown = [
        {path: _HIDDEN if path in hidden else masked(text) for path, text in side.items()} for side in (before, after)
    ]
    previous, content = replace(facts.previous, values=shown[0]), replace(facts.content, values=shown[1])
    return replace(facts, previous=previous, content=content)


def _secret_texts(content: Content) -> frozenset[str]:
    """All that Secrets hold, as it is written and decoded, also what is decoded once more."""
    found: set[str] = set()
    for one in content.everything:
        if one.ref.group_kind == SECRET:
            for part in ("data", "stringData"):
                texts = [text for text in mapping(one.body.get(part)).values() if isinstance(text, str)]
                found.update(texts)
                found.update(decoded for text in texts for word in _CODED.findall(text) if (decoded := _decoded(word)))
    found |= {decoded for text in found for word in _CODED.findall(text) if (decoded := _decoded(word))}
    found |= {plain for text in found for plain in _unescaped(text)}
    return frozenset(found - {""})


def _unescaped(text: str) -> Iterator[str]:
    """What a text says that JSON, YAML or an address writes with escapes."""
    if "\\" in text:
        yield _ESCAPED.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], text)
    if "%" in text:
        yield unquote(text)


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except ValueError:
        return ""


def _standing_in(values: Mapping[str, str], texts: frozenset[str]) -> set[str]:
    """The paths of values that are, or stand in, one of these texts; all where looking would take too long."""
    if len(values) * sum(map(len, texts)) > MOST_COMPARED:
        return set(values)
    return {path for path, value in values.items() if _stands_in(value, texts)}


def _stands_in(value: str, texts: frozenset[str]) -> bool:
    """Whether the JSON text of a value, or the beginning of one, is or stands in one of these texts: all of it, or one
    of its lines, which may be indented there."""
    try:
        found = json.loads(value)
    except ValueError:  # a long one that was cut
        found = [_beginning_of(piece) for piece in _PIECE.findall(value.rpartition("… (")[0])]
    for word in _words_of(found):
        lines = [line for line in map(str.strip, word.splitlines()) if len(line) >= _TELLING or "\n" not in word]
        if any(_is_in(one, texts) for one in (word, *lines)):
            return True
    return False


def _beginning_of(piece: str) -> str:
    """The text of which this is the beginning in JSON, which may be cut within an escape of six characters."""
    for length in range(len(piece), max(len(piece) - 6, 0), -1):
        try:
            return str(json.loads(f'"{piece[:length]}"'))
        except ValueError:
            continue
    return piece


def _words_of(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _words_of(one)
    elif value not in (None, "") and not isinstance(value, bool):
        yield str(value)
        if isinstance(value, int | float):
            yield from _spellings(value)


def _spellings(value: float) -> Iterator[str]:
    """How templates write a number beside its own form: as Go prints a large one (1.2e+07), and in hex."""
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    if isinstance(exponent, int) and abs(value) >= _LARGE:
        power, fraction = exponent + len(digits) - 1, "".join(map(str, digits[1:]))
        yield f"{'-' * (value < 0)}{digits[0]}{f'.{fraction}' if fraction else ''}e+{power:02d}"
    if isinstance(value, int) and value > _LONGEST_WORD:
        yield from (f"{value:x}", f"{value:X}")


def _is_in(word: str, texts: frozenset[str]) -> bool:
    """Short words stand in many texts: of those only what is all of a Secret's value, or looks like a code."""
    if word in texts:
        return True
    if len(word) >= _TELLING:
        return any(word in text for text in texts)
    if len(word) < _SHORTEST_CODE or not any(map(str.isdigit, word)):
        return False
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    return any(word in text and pattern.search(text) for text in texts)


def _changes(facts: Facts) -> Iterator[Finding]:
    if facts.previous is None or facts.previous.values is None or facts.content.values is None:
        return
    before, after = facts.previous.values, facts.content.values
    # Of more than are kept nobody knows whether one came or went.
    is_cut = max(len(before), len(after)) >= MAX_VALUES
    known = before.keys() & after.keys() if is_cut else before.keys() | after.keys()
    found = [path for path in sorted(known) if not _is_same(before.get(path), after.get(path))]
    if not found:
        return
    by_spec = facts.previous.spec_values | facts.content.spec_values
    changed = sorted(found, key=lambda path: not _is_under(path, by_spec))
    count = sum(_is_under(path, by_spec) for path in found)
    of_spec = f", {count} of them by the spec" if 0 < count < len(found) else ""
    told = [_told(path, before.get(path), after.get(path)) for path in changed[:MAX_SHOWN]]
    words = f"{number(len(changed), 'value')} of the chart changed{of_spec}: {some_phrases(told, total=len(changed))}"
    entries = [
        {"path": visible(one), "before": before.get(one), "after": after.get(one)} for one in changed[:MAX_SHOWN]
    ]
    evidence = {"values": entries, "left_out": max(0, len(changed) - MAX_SHOWN)}
    yield _CHANGED.at(None, words, evidence=evidence, key=[[one, after.get(one)] for one in found])


def _is_under(path: str, paths: frozenset[str]) -> bool:
    """Whether it is one of these paths or below one, as is all of a mapping that the spec replaces by one value."""
    return not paths.isdisjoint(accumulate(path.split("."), lambda above, step: f"{above}.{step}"))


def _told(path: str, before: str | None, after: str | None) -> str:
    name = f"`{visible(path)}`"
    if before is None:
        return f"{name} is new, {visible(after or '')}"
    if after is None:
        return f"{name} is gone, was {visible(before)}"
    return _of_lists(name, before, after) or f"{name} was {visible(before)}, is {visible(after)}"


def _of_lists(name: str, before: str, after: str) -> str:
    """What came to a list and went from it; "" where one is none, or cut off."""
    try:
        old, new = json.loads(before), json.loads(after)
    except ValueError:
        return ""
    if not (isinstance(old, list) and isinstance(new, list) and old and new):
        return ""
    gained, lost = _without(new, old), _without(old, new)
    told = [f"{verb} {some(items)}" for verb, items in (("gains", gained), ("loses", lost)) if items]
    return f"{name} {' and '.join(told) or 'has another order'}"


def _without(items: list[Any], others: list[Any]) -> list[str]:
    left = list(others)
    found = []
    for one in items:
        if one in left:
            left.remove(one)
        else:
            found.append(visible(json.dumps(one, ensure_ascii=False, sort_keys=True)))
    return found


def _is_same(before: str | None, after: str | None) -> bool:
    """Of a long value earlier versions kept the beginning, and not how long it was: nobody knows whether it changed."""
    if before is None or after is None or before == after:
        return before == after
    shorter, longer = sorted((before, after), key=len)
    return shorter.endswith("…") and longer.startswith(shorter)


CHECK = Check("values of the chart", changes=_changes)
