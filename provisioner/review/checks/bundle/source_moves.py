"""A source that went backwards: to an older commit, to a history that was rewritten, or to a lower version."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.errors import InvalidRange
from provisioner.escaping import visible
from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.values import Course, EarlierVersion, Finding, Section, Severity, SourceMove
from provisioner.versions import precedence, release_order, version_of

_BACK = ReviewRule("SRC-02", Section.CONTENT, Severity.DANGEROUS)
_UNKNOWN = ReviewRule("SRC-02", Section.CONTENT, Severity.UNKNOWN)
_LOWER = ReviewRule("SRC-03", Section.CONTENT, Severity.DANGEROUS)

# Its messages are named after these.
_TOLD = frozenset({Course.BACKWARD, Course.ASIDE, Course.UNKNOWN})


def _changes(facts: Facts) -> Iterator[Finding]:
    for move in facts.history.moves:
        if move.course in _TOLD:
            yield _of_move(move)
    for earlier in facts.history.versions:
        if _is_lower(facts.content.version, earlier):
            yield _of_version(facts.content.version, earlier)


def _of_move(move: SourceMove) -> Finding:
    rule, course = _UNKNOWN if move.course is Course.UNKNOWN else _BACK, str(move.course)
    return rule.finding(
        course,
        None,
        key=[move.reference, course, move.before, move.after],
        reference=visible(move.reference),
        course=course,
        why=visible(move.why) or None,
        before=move.before,
        after=move.after,
        since=move.since,
    )


def _of_version(version: str, earlier: EarlierVersion) -> Finding:
    claimed, before, key = visible(version), visible(earlier.version), [version, earlier.version]
    return _LOWER.finding("lower", None, key=key, claimed=claimed, before=before, since=earlier.since)


def _is_lower(version: str, earlier: EarlierVersion) -> bool:
    """What is no version has no order."""
    try:
        found, before = version_of(version), version_of(earlier.version)
    except InvalidRange:
        return False
    if precedence(found) != precedence(before):
        return precedence(found) < precedence(before)
    return earlier.has_releases and release_order(found.build or "") < release_order(before.build or "")


CHECK = Check("source moves", changes=_changes)
