"""Which findings a reviewer may accept. PURE."""

from __future__ import annotations

from provisioner.values import Severity

# Findings about content that touches Pratique itself: no policy may approve those, and nobody waives them (S22).
OWN_RULES_PREFIX = "OWN-PRATIQUE"


def why_not_waivable(*, rule: str, severity: str) -> str:
    """Why nobody may waive a finding of this rule and severity; "" where somebody who may `override` may."""
    if rule.startswith(OWN_RULES_PREFIX):
        return "it touches Pratique itself, and its guards are not opened by what they guard"
    if severity == Severity.UNKNOWN:
        return "nobody knows what it would mean, and what could not be found out is not accepted as fine"
    return ""
