"""A report in its own words, for a reader who may see what it is made of: in the line of a finding and in the headline.

What everybody reads leaves out what the cluster said and what live objects decide (S09, S27). Whoever asked whether
this reader may get those objects hands in the findings that they may see whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from provisioner.review.base.messages import message_of
from provisioner.review.output.headline import TOTALS, headline
from provisioner.values import Finding, Plan, Report, worst_first


def with_own_words(finding: Finding) -> Finding:
    """`finding` with what its check or the API server said as its message."""
    if not finding.server_words:
        return finding
    words = finding.server_words if finding.is_withheld else f"{finding.message}: {finding.server_words}"
    told = replace(finding, message=words, server_words="", is_withheld=False)
    # What the API server said of one object is no other's: such a sentence is made of no template.
    return told if told.variant and message_of(told) == words else replace(told, variant="", notes=())


def without_withholding(finding: Finding) -> Finding:
    """`finding` with the words of its check; what the API server said stays beside them."""
    return with_own_words(finding) if finding.is_withheld else finding


def own_headline(findings: Sequence[Finding], public: Sequence[str], plan: Plan) -> tuple[str, ...]:
    """The headline of `findings`, of which some have their own words; its totals are those that everybody reads."""
    told = headline(worst_first(findings), plan)
    return (*told[:-TOTALS], *public[-TOTALS:])


def in_own_words(report: Report) -> Report:
    """The report for somebody who may see everything that it is made of."""
    findings: Iterable[Finding] = map(with_own_words, report.findings)
    told = own_headline(list(findings), report.headline, report.plan)
    return replace(report, headline=told, findings=tuple(map(without_withholding, report.findings)))
