"""Which values of a chart changed since the content that runs: first those that the spec sets, then the chart's own.

A chart may put any of them into a Secret, as it is or hashed. So everybody is told which ones changed, and only who may
get the BundleDeployment and the Secrets of both contents what they were and are. Which Secret holds a value is never
looked at: who tries values would learn which of them one holds (S38).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any

from provisioner.api_groups import OWN_GROUP
from provisioner.masking import masked
from provisioner.review.base.facts import SECRET, STATED, Check, Facts, ReviewRule
from provisioner.review.base.text import visible
from provisioner.sentences import number, some, some_phrases
from provisioner.values import Finding, ObjectRef, Section, Severity

MAX_SHOWN, MAX_NAMED = 200, 20
# As many as a content keeps.
MAX_VALUES = 5_000
# Whoever may get all of them may get the one whose name nobody gave.
_DEPLOYMENT = ObjectRef(OWN_GROUP, "v1alpha2", "BundleDeployment", "", "")
_CHANGED = ReviewRule("VAL-01", Section.CONTENT, Severity.NOTABLE)


def _changes(facts: Facts) -> Iterator[Finding]:
    if facts.previous is None or facts.previous.values is None or facts.content.values is None:
        return
    before, after = facts.previous.values, facts.content.values
    # Of more than are kept nobody knows whether one came or went.
    is_cut = max(len(before), len(after)) >= MAX_VALUES
    known = before.keys() & after.keys() if is_cut else before.keys() | after.keys()
    # Contents that were rendered by earlier versions hold addresses as they were written.
    differing = [path for path in known if before.get(path) != after.get(path)]
    sides = {path: (_masked(before.get(path)), _masked(after.get(path))) for path in differing}
    found = sorted(path for path, side in sides.items() if not _is_same(*side))
    if not found:
        return
    by_spec = facts.previous.spec_values | facts.content.spec_values
    changed = sorted(found, key=lambda path: not _is_under(path, by_spec))
    count = sum(_is_under(path, by_spec) for path in found)
    of_spec = f", {count} of them by the spec" if 0 < count < len(found) else ""
    words = f"{number(len(changed), 'value')} of the chart changed{of_spec}"
    shown = [(path, *sides[path]) for path in changed[:MAX_SHOWN]]
    told = some_phrases([_told(*side) for side in shown], total=len(changed))
    entries = [{"path": visible(path), "before": old, "after": new} for path, old, new in shown]
    evidence: dict[str, Any] = {"values": entries, "left_out": len(changed) - len(shown)}
    # Its name is made of paths alone: values could be guessed from it.
    finding = _CHANGED.at(None, f"{words}: {told}", evidence=evidence, key=found)
    if facts.bundle is not None:
        stated = f"{words}: {some([f'`{visible(path)}`' for path in changed], MAX_NAMED)}"
        finding = replace(finding, evidence={**evidence, STATED: stated}, sources=_readable_with(facts))
    yield finding


def _masked(value: str | None) -> str | None:
    return None if value is None else masked(value)


def _readable_with(facts: Facts) -> tuple[ObjectRef, ...]:
    """What somebody has to be able to get to know the values anyway."""
    objects = (*facts.content.everything, *(facts.previous.everything if facts.previous else ()))
    secrets = {one.ref for one in objects if one.ref.group_kind == SECRET}
    return (replace(_DEPLOYMENT, name=facts.deployment), *sorted(secrets))


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
