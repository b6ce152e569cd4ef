"""What to do about power over Pratique: once for all findings that say the same, so it stands in their evidence."""

from __future__ import annotations

from provisioner.review.base.facts import ReviewRule
from provisioner.review.rules import Phrase

ADVICE = "advice"  # in a finding's evidence


def advice_of(rule: ReviewRule) -> Phrase:
    """What the file of `rule` advises."""
    return Phrase.of(rule.id, "advice.do")
