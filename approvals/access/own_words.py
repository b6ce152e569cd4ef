"""A report in its own words to a viewer who may see what it is made of, else the right that is missing (S09)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from approvals.access.sight import Record, ReportSight
from provisioner.review.base.record import finding_from
from provisioner.review.output.headline import own_headline, with_own_words
from provisioner.values import Finding, ObjectRef, Plan, Severity

# What a headline is made of: nothing below it is asked about.
_WORTH_A_SENTENCE = Severity.DANGEROUS


@dataclass(frozen=True, slots=True)
class HiddenWords:
    """How many findings are shown without their details, and the objects that the viewer would have to `get`."""

    count: int
    objects: list[str]


def own_words(finding: Record) -> Record:
    """A finding's record that the viewer may see whole, with its own words as its message."""
    if not finding["serverWords"]:
        return finding
    told = with_own_words(finding_from(finding))
    kept = {name: value for name, value in finding.items() if told.variant or name not in ("variant", "notes")}
    return {**kept, "message": told.message, "serverWords": "", "withheld": False}


def headline_for(sight: ReportSight, findings: Iterable[Record], public: list[str]) -> list[str]:
    """The `public` headline of a report in the words of its findings, as far as the viewer may see them."""
    told = [_told(one, sight) for one in findings]
    if not any(is_own for _, is_own in told):
        return public
    return list(own_headline([one for one, _ in told], public, Plan((), "")))


def unseen(sight: ReportSight, findings: Iterable[Record]) -> HiddenWords:
    """Of `findings` those that lack their details, with the rights that are missing."""
    hidden = [(one, sight.missing(one)) for one in findings]
    objects = sorted({_named(ref) for _, missing in hidden for ref in missing})
    return HiddenWords(sum(bool(missing) for _, missing in hidden), objects)


def _told(record: Record, sight: ReportSight) -> tuple[Finding, bool]:
    finding = finding_from(record)
    is_asked = bool(finding.server_words) and finding.severity.is_at_least(_WORTH_A_SENTENCE)
    if not is_asked or sight.why_hidden(record):
        return finding, False
    return with_own_words(finding), True


def _named(ref: ObjectRef) -> str:
    if ref.name:
        return str(ref)
    return f"every {ref.group_kind} in {ref.namespace}" if ref.namespace else f"every {ref.group_kind}"
