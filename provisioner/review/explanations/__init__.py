"""What stands behind each rule: what a finding of it means, why it matters, what to do, and where that is written.

One file per family of rules; a test holds the tables against what the code can emit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from provisioner.review.explanations.cluster import CLUSTER
from provisioner.review.explanations.definitions import DEFINITIONS
from provisioner.review.explanations.objects import OBJECTS
from provisioner.review.explanations.permissions import PERMISSIONS
from provisioner.review.explanations.pods import PODS
from provisioner.review.explanations.preflight import PREFLIGHT
from provisioner.review.explanations.schemas import SCHEMAS
from provisioner.review.explanations.text import Explanation

__all__ = ["EXPLANATIONS", "Explanation", "explanation", "rows_of"]

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


def rows_of(rule: str, evidence: Mapping[str, Any]) -> list[str]:
    """The ids under which a finding is explained: its rule's, and before that its variant's where evidence names one.

    SCH-36a is found as SCH-36: the catalogue has one id for both ways in which null may change, and explains two.
    """
    variant = evidence.get("variant")
    return [variant, rule] if isinstance(variant, str) else [rule]
