"""Two versions of a CRD compared, each change as a finding with its sentence."""

from __future__ import annotations

from provisioner.review.base.messages import with_message
from provisioner.schema import compare
from provisioner.values import Finding, JsonObject


def compare_crds(old: JsonObject, new: JsonObject) -> list[Finding]:
    """Every change from `old` to `new`, worst first (`schema.compare`)."""
    return [with_message(found) for found in compare(old, new)]
