"""The check `high-water`: a port whose next high water is above its quay."""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, ReviewRule, StateFacts
from provisioner.values import Finding, GroupKind, Section, Severity

FLOOD = ReviewRule("TIDE-01", Section.OBJECTS, Severity.DANGEROUS)
QUAY_METRES = 5.0
PREFIX = "tide-"


def _standing(state: StateFacts) -> Iterator[Finding]:
    for ref, obj in state.named:
        if ref.kind != "ConfigMap" or not ref.name.startswith(PREFIX):
            continue
        metres = float(obj["data"]["metres"])
        if metres > QUAY_METRES:
            message = f"High water at {ref.name.removeprefix(PREFIX)} is {metres} m, and its quay has {QUAY_METRES} m"
            yield FLOOD.at(ref, message, evidence={"metres": metres}, key="high water")


# The rule judges nothing but the height: what else such a map holds is reported where it changes.
_CLAIMS = (Claim("TIDE-01", frozenset({GroupKind("", "ConfigMap")}), ("data.metres",)),)
CHECK = Check("high-water", standing=_standing, claims=_CLAIMS)
