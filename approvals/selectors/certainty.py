"""Which findings of a report only hold if a stored object is as they say."""

from __future__ import annotations

from approvals.models import Report
from provisioner.values import Certainty, certainty_of


def depending(report: Report) -> frozenset[str]:
    """The fingerprints of the findings whose severity depends on objects that nobody looked at; reads the body."""
    everything = [*report.body.get("findings", []), *report.body.get("private", [])]
    found = (one for one in everything if certainty_of(one.get("evidence", {})) is Certainty.DEPENDS_ON_OBJECTS)
    return frozenset(str(one["fingerprint"]) for one in found)
