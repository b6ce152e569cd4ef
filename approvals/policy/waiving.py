"""Which findings a reviewer may accept. PURE."""

from __future__ import annotations

from provisioner.values import Severity

# Findings about content that touches Pratique itself: no policy may approve those, and nobody waives them (S22).
OWN_RULES_PREFIX = "OWN-PRATIQUE"
# Those of them that say whom content gives power over Pratique, and as whom with such power its pods run.
POWER_RULES = frozenset({"OWN-PRATIQUE-03", "OWN-PRATIQUE-05"})


def why_not_waivable(*, rule: str, severity: str) -> str:
    """Why nobody may waive a finding of this rule and severity; "" where somebody who may `override` may."""
    if rule.startswith(OWN_RULES_PREFIX):
        return "it affects Pratique itself, and such findings cannot be accepted"
    if severity == Severity.UNKNOWN:
        return "its effect is unknown, and unknown findings cannot be accepted"
    return ""
