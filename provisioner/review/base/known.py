"""What the report of the running revision has as well: people decided on it then, so it is not new (pure).

A fingerprint names a finding. It does not name how bad it is, and not always all of its facts: a finding that became
worse is new, and so is one worse than notable whose facts are others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from provisioner.review.base.record import plain
from provisioner.values import Finding, Severity

# Power over Pratique is compared with what people approved, never with what a policy did (S22).
OWN = "OWN-PRATIQUE"


def known_by(findings: Iterable[Finding], before: Iterable[Finding]) -> tuple[Finding, ...]:
    """`findings`, those that `before` has as well as known.

    Public findings are compared with public ones only, so that nobody learns from this what is private (S38).
    """
    known = {one.fingerprint: one for one in before}
    return tuple(replace(one, is_new=one.is_new and not _is_same(one, known.get(one.fingerprint))) for one in findings)


def _is_same(finding: Finding, before: Finding | None) -> bool:
    if before is None or finding.rule.startswith(OWN) or not before.severity.is_at_least(finding.severity):
        return False
    return Severity.NOTABLE.is_at_least(finding.severity) or _facts(finding) == _facts(before)


def _facts(finding: Finding) -> tuple[object, ...]:
    """What of it every reader of the request knows: the evidence of other findings holds what few may read."""
    is_for_few = finding.is_withheld or bool(finding.sources or finding.server_words)
    return finding.message, None if is_for_few else plain(finding.evidence)
