"""Which values of a chart changed since the content that runs: first those that the spec sets, then the chart's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate
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
