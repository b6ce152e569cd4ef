"""What a stored object has to be like for a finding about a schema to hurt: said where nobody looked at the objects.

Two schemas prove that values are lost, not that anybody has such a value. The severity stays that of the worst case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from provisioner.review.base.facts import items, mapping
from provisioner.schema.fields import go_number, shown_json
from provisioner.schema.verdicts import type_phrase
from provisioner.sentences import number, some
from provisioner.values import Certainty, Finding, Severity

_NOUNS = {"Length": "character", "Items": "item", "Properties": "key"}
_SHOWN_VALUES = 5
_CONDITIONS: Mapping[str, str] = {
    "CRD-08": "there is such an object",
    "CRD-27": "an object has fields that the schema does not name",
    "CRD-31": "something scales such objects",
    "SCH-01": "an object has a value there",
    "SCH-07": "an object has something there that does not fit",
    "SCH-15": "an object has a number with a fraction there",
    "SCH-19": "an object has keys there that go or do not fit",
    "SCH-20": "an object has a value there that is not listed",
    "SCH-27": "an object has a number there that is no such multiple",
    "SCH-29": "an object has a text there that does not match",
    "SCH-30": "an object has a text there that does not match",
    "SCH-32": "an object has a value there that does not fit the format",
    "SCH-33": "an object leaves it out",
    "SCH-34": "an object leaves it out",
    "SCH-35": "an object leaves it out",
    "SCH-36": "an object has null there",
    "SCH-38": "an object does not keep the rule",
    "SCH-38t": "an object is written",
    "SCH-39": "an object does not keep the rule",
    "SCH-46": "an object has an item twice there",
    "SCH-47": "an object has two items with the same keys there",
    "SCH-48": "several managers own fields there",
    "SCH-49": "several managers own fields there",
    "SCH-50": "several managers own fields there",
    "SCH-51": "an object has fields there that the schema does not name, and that go or do not fit",
    "SRV-01": "an object has a value there",
    "SRV-02": "an object has a value there",
}
_ELSE = "an object has a value there that is no longer taken"
_VERBS = {Severity.BREAKING: "breaks", Severity.UNKNOWN: "can break", Severity.DANGEROUS: "matters"}


def with_condition(finding: Finding) -> Finding:
    """`finding`, its words with what an object has to be like, where that decides and is not known."""
    if finding.certainty is not Certainty.DEPENDS_ON_OBJECTS or finding.severity not in _VERBS:
        return finding
    words = f"{finding.message}; {_VERBS[finding.severity]} only if {condition(finding)}"
    return replace(finding, message=words)


def without_condition(words: str) -> str:
    """Words as they were before `with_condition`."""
    found = (words.rpartition(f"; {verb} only if ")[0] for verb in _VERBS.values())
    return next(filter(None, found), words)


def condition(finding: Finding) -> str:
    """Of which objects a finding is true: `an object has more than 253 characters there`."""
    rule, evidence = finding.rule, finding.evidence
    if rule == "SRV-03" and evidence.get("because"):  # of what differs between the two versions
        return condition(replace(finding, rule=str(evidence["because"])))
    if evidence.get("limit"):
        return _of_limit(str(evidence["limit"]), evidence)
    if rule in {"SCH-25", "SCH-26"} and mapping(evidence.get("new")):
        return f"an object has a number there that is {_outside(mapping(evidence['new']))}"
    if rule == "SCH-21":
        return f"an object has {some([shown_json(one) for one in items(evidence.get('removed'))], _SHOWN_VALUES)} there"
    if rule in {"SCH-08", "SCH-11"} and finding.path:
        return f"an object has {'an item' if rule == 'SCH-11' else 'that part'} without {finding.path[-1]}"
    if rule in {"SCH-13", "SCH-17"} and evidence.get("new"):
        needed = f" with {', '.join(map(str, items(evidence.get('required'))))}" if evidence.get("required") else ""
        return f"an object has something else there than {type_phrase(str(evidence['new']).split(' or '))}{needed}"
    return _CONDITIONS.get(rule, _ELSE)


def _of_limit(limit: str, evidence: Mapping[str, Any]) -> str:
    noun = next((noun for name, noun in _NOUNS.items() if limit.endswith(name)), "value")
    than = "fewer than" if limit.startswith("min") else "more than"
    return f"an object has {than} {number(int(evidence.get('new') or 0), noun)} there"


def _outside(bounds: Mapping[str, Any]) -> str:
    found = []
    if bounds.get("minimum") is not None:
        least = go_number(bounds["minimum"])
        found.append(f"{least} or less" if bounds.get("exclusiveMinimum") else f"below {least}")
    if bounds.get("maximum") is not None:
        most = go_number(bounds["maximum"])
        found.append(f"{most} or more" if bounds.get("exclusiveMaximum") else f"above {most}")
    return " or ".join(found) or "outside the bounds"
