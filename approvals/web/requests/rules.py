"""Why a rule exists, in the words of the page: what its finding means for whoever says yes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.review.rules import rows_of, rule_text
from provisioner.review.rules.explanations import in_one_paragraph


def explanation(rule: str, evidence: Mapping[str, Any]) -> str:
    """What is behind a finding of this rule and evidence, as sentences; "" for one of another package's check."""
    words = rule_text(rows_of(rule, evidence)[0])
    return in_one_paragraph(words) if words else ""
