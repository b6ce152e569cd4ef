"""A source that went backwards: to an older commit, to a history that was rewritten, or to a lower version."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.errors import InvalidRange
from provisioner.review.base.facts import Check, Facts, ReviewRule
from provisioner.review.base.text import visible
from provisioner.values import Course, EarlierVersion, Finding, Section, Severity, SourceMove
from provisioner.versions import precedence, release_order, version_of

_BACK = ReviewRule("SRC-02", Section.CONTENT, Severity.DANGEROUS)
_UNKNOWN = ReviewRule("SRC-02", Section.CONTENT, Severity.UNKNOWN)
_LOWER = ReviewRule("SRC-03", Section.CONTENT, Severity.DANGEROUS)

_WORDS = {
    Course.BACKWARD: "goes back to an older commit",
    Course.ASIDE: "was rewritten (force-pushed), and the new commit does not follow the earlier one",
    Course.UNKNOWN: "moved, and it could not be found out whether the new commit follows the earlier one",
}


def _changes(facts: Facts) -> Iterator[Finding]:
    for move in facts.history.moves:
        if move.course in _WORDS:
            yield _of_move(move)
    for earlier in facts.history.versions:
        if _is_lower(facts.content.version, earlier):
            yield _of_version(facts.content.version, earlier)


def _of_move(move: SourceMove) -> Finding:
    rule = _UNKNOWN if move.course is Course.UNKNOWN else _BACK
    why = f" ({visible(move.why)})" if move.why else ""
    words = (
        f"{visible(move.reference)} {_WORDS[move.course]}{why}: {move.since} has {move.before}, this is {move.after}"
    )
    evidence = {"reference": move.reference, "course": str(move.course), "before": move.before, "after": move.after}
    key = [move.reference, str(move.course), move.before, move.after]
    return rule.at(None, words, evidence={**evidence, "since": move.since}, key=key)


def _of_version(version: str, earlier: EarlierVersion) -> Finding:
    words = f"The bundle claims version {visible(version)}, lower than {visible(earlier.version)} of {earlier.since}"
    evidence = {"claimed": version, "before": earlier.version, "since": earlier.since}
    return _LOWER.at(None, words, evidence=evidence, key=[version, earlier.version])


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
