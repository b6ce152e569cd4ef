"""What stands behind each rule: what a finding of it means, why it matters, what to do, and where that is written.

One file per family of rules; a test holds the tables against what the code can emit.
"""

from __future__ import annotations

from provisioner.review.explanations.cluster import CLUSTER
from provisioner.review.explanations.definitions import DEFINITIONS
from provisioner.review.explanations.objects import OBJECTS
from provisioner.review.explanations.permissions import PERMISSIONS
from provisioner.review.explanations.pods import PODS
from provisioner.review.explanations.preflight import PREFLIGHT
from provisioner.review.explanations.schemas import SCHEMAS
from provisioner.review.explanations.text import Explanation

__all__ = ["EXPLANATIONS", "Explanation", "explanation"]

EXPLANATIONS: dict[str, Explanation] = {
    **PERMISSIONS,
    **PREFLIGHT,
    **PODS,
    **CLUSTER,
    **OBJECTS,
    **DEFINITIONS,
    **SCHEMAS,
}


def explanation(rule: str) -> Explanation | None:
    """What stands behind the rule of this id; None for a rule of another package's check."""
    return EXPLANATIONS.get(rule)
