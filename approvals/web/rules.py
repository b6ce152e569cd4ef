"""Why a rule exists, in the words of the page: what its finding means for whoever says yes."""

from __future__ import annotations

from provisioner.review import explanations


def explanation(rule: str) -> str:
    """What is behind a finding of this rule; "" for one of another package's check."""
    return str(explanations.explanation(rule) or "")
