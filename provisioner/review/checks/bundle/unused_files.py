"""Files of the sources that the bundle's format did not use: nothing in them is applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.escaping import visible
from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.values import Finding, Section, Severity

_READABLE = ReviewRule("SRC-01", Section.CONTENT, Severity.NOTABLE)
_OTHERS = ReviewRule("SRC-01", Section.CONTENT, Severity.SAFE)


def _changes(facts: Facts) -> Iterator[Finding]:
    unused = facts.content.unused
    if not unused.count:
        return
    rule, variant = (_READABLE, "objects-not-used") if unused.readable_count else (_OTHERS, "not-used")
    found = rule.finding(
        variant,
        None,
        key=[unused.count, *unused.paths],
        count=unused.count,
        yamlOrJson=unused.readable_count,
        others=(unused.count - unused.readable_count) or None,
        files=[visible(path) for path in unused.paths],
    )
    yield replace(found, is_new=facts.previous is None or facts.previous.unused != unused)


CHECK = Check("unused files", changes=_changes)
