"""Whose the objects are that are planned as if they were adopted: one line for each owner."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from provisioner.review.base.facts import Check, Facts, ReviewRule, said
from provisioner.values import Finding, ObjectRef, Section, Severity

_OWNED = ReviewRule("OWN-03", Section.OBJECTS, Severity.NOTABLE)
_RELEASE = re.compile(r"the Helm release (?P<release>\S+)(?: in (?P<namespace>\S+))?")
_NOBODY, _KUBERNETES = "nobody by their marks", "Kubernetes itself"
MAX_NAMES, NAMED = 500, 2


def _changes(facts: Facts) -> Iterator[Finding]:
    found: dict[str, list[ObjectRef]] = {}
    for planned in facts.plan.actions:
        if planned.owner:
            found.setdefault(planned.owner, []).append(planned.ref)
    for owner, refs in sorted(found.items(), key=lambda it: (-len(it[1]), it[0])):
        yield replace(owned(owner, refs), sources=tuple(sorted(refs)))


def owned(owner: str, refs: Sequence[ObjectRef]) -> Finding:
    """What is said of the objects of one owner, and what a request needs that is to adopt them."""
    names, release = sorted(map(said, refs)), _RELEASE.fullmatch(owner)
    told: dict[str, Any] = {"owner": owner, "count": len(names), "objects": names[:MAX_NAMES], "first": names[:NAMED]}
    told |= {"more": len(names) - NAMED} if len(names) > NAMED else {}
    adoption = "unmanaged" if owner.startswith(_NOBODY) else "never" if owner == _KUBERNETES else "not-yet"
    if release:
        adoption, told = "helm", {**told, **release.groupdict()}
    return _OWNED.finding("owned", None, key=[owner, told["objects"]], adoption=adoption, **told)


CHECK = Check("owners", changes=_changes)
