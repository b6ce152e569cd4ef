"""Which values of a chart changed since the content that runs: those of the wish and those of the chart itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.review.base.text import visible
from provisioner.sentences import number, some, some_phrases
from provisioner.values import Finding, Section, Severity

MAX_SHOWN = 200
# As many as a content keeps.
MAX_VALUES = 5_000
_CHANGED = ReviewRule("VAL-01", Section.CONTENT, Severity.NOTABLE)


def _changes(facts: Facts) -> Iterator[Finding]:
    if facts.previous is None or facts.previous.values is None or facts.content.values is None:
        return
    before, after = facts.previous.values, facts.content.values
    # Of more than are kept nobody knows whether one came or went.
    is_cut = max(len(before), len(after)) >= MAX_VALUES
    known = before.keys() & after.keys() if is_cut else before.keys() | after.keys()
    changed = [path for path in sorted(known) if not _is_same(before.get(path), after.get(path))]
    if not changed:
        return
    told = [_told(path, before.get(path), after.get(path)) for path in changed[:MAX_SHOWN]]
    words = f"{number(len(changed), 'value')} of the chart changed: {some_phrases(told, total=len(changed))}"
    entries = [
        {"path": visible(one), "before": before.get(one), "after": after.get(one)} for one in changed[:MAX_SHOWN]
    ]
    evidence = {"values": entries, "left_out": max(0, len(changed) - MAX_SHOWN)}
    yield _CHANGED.at(None, words, evidence=evidence, key=[[one, after.get(one)] for one in changed])


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
