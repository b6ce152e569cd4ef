"""What a long report says of CRDs: one entry for each rule and severity, with its fields; the rest is a number.

Of what is critical or unknown each finding has its own lines, and stands elsewhere (S24).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from provisioner.review.base.messages import said_anywhere, words_anywhere
from provisioner.review.base.places import places_of
from provisioner.review.base.shared_fields import fields_in_words, spelled_out
from provisioner.review.base.statements import NEVER_FOLDED, count, is_told_alone
from provisioner.review.base.text import visible
from provisioner.review.crds.conditions import CONDITIONS
from provisioner.review.output.brevity import Brief
from provisioner.review.output.painted import Paint, plain, severity_mark, wrapped
from provisioner.review.rules import rule_text
from provisioner.values import Certainty, Finding, Severity

_DEPENDING = "What follows depends on stored objects, except where it says always:"
# Longer words are told by the title of their rule.
_MAX_WORDS = 60
_ALWAYS = " (always)"


def is_entry(finding: Finding) -> bool:
    """Whether a finding about a CRD is told in an entry: what is said of a field of its schema, in our own words."""
    is_of_field = finding.rule.startswith("SCH-") and bool(finding.path) and not finding.server_words
    return (
        is_of_field
        and finding.severity not in NEVER_FOLDED
        and not is_told_alone(finding)
        and said_anywhere(finding) is not None
    )


def crd_entries(findings: Iterable[Finding], paint: Paint, brief: Brief) -> Iterator[str]:
    """The entries, the worst first, below the CRDs that they are about; and what they depend on, where objects could
    settle some."""
    ordered = sorted(findings, key=lambda it: (it.severity.rank, it.rule))
    depends = any(map(_depends, ordered))
    if depends:
        yield from wrapped(_DEPENDING, "  ")
    for (severity, objects), entries in _by_objects(ordered).items():
        mark = severity_mark(severity, plain)
        first, *more = wrapped(visible(f"{mark.strip()}  {', '.join(objects)}"), "  ", "      ")
        yield from (first.replace(mark, severity_mark(severity, paint), 1), *more)
        for entry in entries:
            yield from _entry(entry, brief, depends=depends)


def _by_objects(ordered: Iterable[Finding]) -> dict[tuple[Severity, tuple[str, ...]], list[list[Finding]]]:
    """The findings of each rule and severity, those about the same CRDs together, the worst first."""
    groups: dict[tuple[Severity, tuple[str, ...]], list[list[Finding]]] = {}
    for (severity, _), group in groupby(ordered, key=lambda one: (one.severity, one.rule)):
        entry = list(group)
        objects = tuple(sorted({place.of for one in entry for place in places_of(one)}))
        groups.setdefault((severity, objects), []).append(entry)
    return groups


def _entry(findings: Sequence[Finding], brief: Brief, *, depends: bool) -> Iterator[str]:
    most = brief.brevity.fields
    brief.places += count(place for one in findings for place in places_of(one)) - spelled_out(findings, most)
    always = _ALWAYS if depends and not any(map(_depends, findings)) else ""
    told = f"{findings[0].rule}  {_said(findings)}{always}: {fields_in_words(findings, most)}"
    yield from wrapped(visible(told), "    ", "      ")


def _said(findings: Sequence[Finding]) -> str:
    """What all of them have in common: their words, or the title of their rule."""
    told = [replace(one, notes=tuple(note for note in one.notes if note.file != CONDITIONS)) for one in findings]
    rule, words = rule_text(findings[0].rule), words_anywhere(told[0], is_short=True)
    is_same = len({said_anywhere(one, is_short=True) for one in told}) == 1
    return rule.title if rule and (not is_same or len(words) > _MAX_WORDS) else words


def _depends(finding: Finding) -> bool:
    return finding.certainty is Certainty.DEPENDS_ON_OBJECTS
