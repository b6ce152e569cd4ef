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
from provisioner.escaping import visible
from provisioner.masking import masked
from provisioner.review.base.facts import SECRET, STATED, Check, Facts, ReviewRule
from provisioner.review.rules.messages import VARIANT
from provisioner.values import Finding, ObjectRef, Section, Severity

MAX_SHOWN = 200
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
    named: dict[str, Any] = {"count": len(changed), "by_spec": count if 0 < count < len(found) else None}
    values = [_change_of(visible(path), *sides[path]) for path in changed[:MAX_SHOWN]]
    left_out = len(changed) - len(values)
    # Its name is made of paths alone: values could be guessed from it.
    finding = _CHANGED.finding("changed", None, key=found, values=values, left_out=left_out, **named)
    if facts.bundle is not None:
        stated = _CHANGED.finding("named", None, names=[visible(path) for path in changed], **named).message
        finding = replace(finding, evidence={**finding.evidence, STATED: stated}, sources=_readable_with(facts))
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


def _change_of(path: str, before: str | None, after: str | None) -> dict[str, Any]:
    """One value that changed, in the variant that says it; of two lists what came to it and went from it."""
    variant = "new" if before is None else "gone" if after is None else "changed"
    sides = {name: None if text is None else visible(text) for name, text in (("before", before), ("after", after))}
    try:
        old, new = json.loads(before or ""), json.loads(after or "")
    except ValueError:  # no list, or cut off
        old = new = None
    if not (isinstance(old, list) and isinstance(new, list) and old and new):
        return {VARIANT: variant, "path": path, **sides}
    gained, lost = _without(new, old), _without(old, new)
    variant = ("gains-and-loses" if lost else "gains") if gained else "loses" if lost else "reordered"
    return {VARIANT: variant, "path": path, **sides, "gained": gained, "lost": lost}


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
