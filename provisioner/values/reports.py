"""All findings about one content, with the plan they belong to."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.values.findings import Finding, Section, Severity
from provisioner.values.plans import Plan


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one content on one cluster, worst first, with the plan they belong to."""

    headline: tuple[str, ...]
    findings: tuple[Finding, ...]
    plan: Plan

    @property
    def public(self) -> tuple[Finding, ...]:
        """The findings that everybody may know of who may read the request."""
        return tuple(finding for finding in self.findings if not finding.is_private)

    @property
    def private(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.is_private)

    @property
    def worst(self) -> Severity:
        return min((finding.severity for finding in self.public), key=lambda it: it.rank, default=Severity.SAFE)

    def in_section(self, section: Section) -> list[Finding]:
        return [finding for finding in self.findings if finding.section is section]
