"""What a changed schema would do to objects where none exists: one line a CRD, as nothing of it can break any.

Only a list that was read whole and is empty says so. What the API server itself would refuse, what no comparison could
decide and what clients meet at a version that goes are told by themselves, as ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from provisioner.review.base.facts import ReviewRule, fingerprint, said
from provisioner.review.base.places import COUNTED, DIFFERING, PLACES, version_of
from provisioner.review.base.record import plain
from provisioner.review.crds.live_scene import CrdObjects
from provisioner.review.rules.messages import VARIANT
from provisioner.schema.verdicts import SchemaVerdict
from provisioner.values import Finding, ObjectRef, Section, Severity

UNSTORED = "unstored"  # in the evidence of a finding that is told with the others of its CRD: the kind of the objects
_TOLD = ReviewRule("LIV-08", Section.CRDS, Severity.NOTABLE, SchemaVerdict(writers=Severity.NOTABLE).as_mapping())
_REMOVED = frozenset({"SCH-01", "SCH-02", "SCH-03"})
_DEFAULTS = frozenset({"SCH-06", "SCH-33", "SCH-34", "SCH-35"})
_MERGING = frozenset({"SCH-48", "SCH-49", "SCH-50"})
# Objects do not settle these where there are some: each has a value there, or reads it.
_OF_ALL_OBJECTS = frozenset({"SCH-02", "SCH-03", "SCH-06", "SCH-19"})
_STRICTER = "stricter"
# What may become of a field, in the order in which the message says it.
_PARTS = (_STRICTER, "removed", "defaults", "merging")
_BAD = frozenset({Severity.BREAKING, Severity.DANGEROUS})


def is_unstored(finding: Finding, scene: CrdObjects) -> bool:
    """Whether a finding says only what would become of objects, and the CRD of `scene` certainly has none."""
    is_of_schema = finding.rule.startswith("SCH-") or finding.rule == "CRD-27"
    is_of_objects = bool(finding.evidence.get("live")) or finding.rule in _OF_ALL_OBJECTS
    is_taken = finding.verdicts.get("api") is Severity.SAFE
    return scene.is_empty and is_of_schema and is_of_objects and is_taken and finding.severity in _BAD


def marked(finding: Finding, scene: CrdObjects) -> Finding:
    """`finding` as one that `told_by_crd` tells with the others of its CRD."""
    return replace(finding, evidence={**finding.evidence, "basis": "objects", UNSTORED: scene.kind})


def told_by_crd(findings: Iterable[Finding]) -> list[Finding]:
    """`findings`, those that were marked as one for each CRD, where the first of them stood.

    It has every field in its evidence (`all_places`), each with its rule, its words and what the schemas prove. It is
    another finding as soon as one joins or leaves.
    """
    groups: dict[object, list[Finding]] = {}
    for position, one in enumerate(findings):
        key = one.ref.identity if one.ref and UNSTORED in one.evidence else position
        groups.setdefault(key, []).append(one)
    return [
        _together(group, group[0].ref) if group[0].ref and UNSTORED in group[0].evidence else group[0]
        for group in groups.values()
    ]


def _together(group: Sequence[Finding], ref: ObjectRef) -> Finding:
    paths: dict[str, set[tuple[str | int, ...]]] = {}
    for one in group:
        paths.setdefault(_part(one), set()).add(one.path)
    counts = {part: len(paths[part]) for part in _PARTS if part in paths}
    parts: list[dict[str, Any]] = [{VARIANT: part, "count": count} for part, count in counts.items()]
    parts[0]["fields"] = parts[0]["count"]  # the noun, once
    clients = "refused" if _STRICTER in counts else "dropped" if "removed" in counts else None
    told: dict[str, Any] = {"kind": group[0].evidence[UNSTORED], "parts": parts, "clients": clients, COUNTED: counts}
    told[PLACES] = [_place(one) for one in group]
    made = _TOLD.finding("unstored", ref, basis="objects", **told)
    return replace(made, fingerprint=fingerprint(made.rule, ref, (), sorted(one.fingerprint for one in group)))


def _part(finding: Finding) -> str:
    if finding.rule in _REMOVED:
        return "removed"
    if finding.rule in _DEFAULTS:
        return "defaults"
    return "merging" if finding.rule in _MERGING else _STRICTER


def _place(finding: Finding) -> dict[str, object]:
    """The field, with everything that was found of it."""
    kept = {name: value for name, value in plain(finding.evidence).items() if name not in (UNSTORED, "version")}
    found = {"rule": finding.rule, "message": finding.message, **kept, "fingerprint": finding.fingerprint}
    ref = said(finding.ref) if finding.ref else ""
    return {"object": ref, "path": list(finding.path), "version": version_of(finding), DIFFERING: found}
