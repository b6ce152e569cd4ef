"""What a stored object has to be like for a finding about a schema to hurt: said where nobody looked at the objects.

Two schemas prove that values are lost, not that anybody has such a value. The severity stays that of the worst case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from provisioner.review.base.facts import items, mapping
from provisioner.review.base.messages import with_message
from provisioner.review.rules import messages_of
from provisioner.review.rules.messages import LEAF
from provisioner.schema.fields import shown_json
from provisioner.values import Certainty, Finding, Note, Severity

# The file with the words of all conditions.
CONDITIONS = "shared/conditions"
_NOUNS = {"Length": "characters", "Items": "items", "Properties": "keys"}
_BREAKING = frozenset({Severity.BREAKING, Severity.UNKNOWN, Severity.DANGEROUS})


def with_condition(finding: Finding) -> Finding:
    """`finding` with a note on what an object has to be like, where that decides and is not known."""
    if finding.certainty is not Certainty.DEPENDS_ON_OBJECTS or finding.severity not in _BREAKING:
        return finding
    condition, values = condition_of(finding)
    note = Note(CONDITIONS, "only-if", {"verb": str(finding.severity), "condition": condition, **values})
    return with_message(replace(finding, notes=(*finding.notes, note)))


def condition_of(finding: Finding) -> tuple[str, dict[str, Any]]:
    """Of which objects a finding is true: the name of the condition in its file, and the values that it shows."""
    rule, evidence = str(finding.evidence.get("because") or finding.rule), finding.evidence
    new = evidence.get("new")
    if limit := str(evidence.get("limit") or ""):
        noun = next((noun for name, noun in _NOUNS.items() if limit.endswith(name)), "values")
        return ("fewer" if limit.startswith("min") else "more"), {"noun": noun, "new": int(new or 0)}
    if rule in {"SCH-25", "SCH-26"} and mapping(new):
        sides = _sides(mapping(new))
        return ("outside", {"sides": sides}) if sides else ("outside-bounds", {})
    if rule == "SCH-21":
        return rule, {"removed": [shown_json(value) for value in items(evidence.get("removed"))]}
    if rule in {"SCH-08", "SCH-11"} and finding.path:
        return rule, {LEAF: finding.path[-1]}
    if rule in {"SCH-13", "SCH-17"} and new:
        return "another-type", {"types": str(new).split(" or "), "required": items(evidence.get("required"))}
    if rule == "SCH-38t" and finding.variant == "changes":
        return "changed", {}
    return (rule if f"condition.{rule}" in messages_of(CONDITIONS).templates else "else"), {}


def _sides(bounds: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The limits of the numbers that are outside of bounds."""
    least, most = bounds.get("minimum"), bounds.get("maximum")
    below = {"variant": "at-most" if bounds.get("exclusiveMinimum") else "below", "limit": least}
    above = {"variant": "at-least" if bounds.get("exclusiveMaximum") else "above", "limit": most}
    return [side for side in (below, above) if side["limit"] is not None]
