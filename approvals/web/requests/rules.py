"""Why a rule exists, in the words of the page: what its finding means for whoever says yes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.review import explanations


def explanation(rule: str, evidence: Mapping[str, Any]) -> str:
    """What is behind a finding of this rule and evidence; "" for one of another package's check."""
    return str(explanations.explanation(explanations.rows_of(rule, evidence)[0]) or "")
