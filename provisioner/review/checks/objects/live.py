"""What a changed CRD does to what exists: its objects, who writes them, and what else in the cluster counts on it.

The check of CRDs compares two schemas; this one tries the objects and says the findings of the other again by what it
saw (`settles`): a change that could break objects and breaks none is not breaking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from provisioner.review.base.facts import Check, Facts, Listing, Reads
from provisioner.review.crds.live_findings import is_unstored, live_findings, marked, settled, with_condition
from provisioner.review.crds.live_scene import (
    CRD,
    CrdObjects,
    changed,
    counted,
    kind_of,
    listings_of,
    nothing_said,
    scenes,
)
from provisioner.review.crds.references import DEPENDENTS, deleted, goes, of_deleted, of_references, scaled
from provisioner.schema.definition.crd import Crd
from provisioner.values import Finding, ObjectRef, Section

_DELETIONS = frozenset({"CRD-08", "DEL-01"})


def _settles(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """All findings, those about changed CRDs by what was seen, and what the objects tell besides.

    Both are said here because trying thousands of objects is worth doing once. What no object settled says what one
    would have to be like.
    """
    known = {scene.ref: scene for scene in scenes(facts)}
    for finding in findings:
        yield with_condition(_settled(finding, known, facts))
    open_questions = {one.ref for one in findings if one.evidence.get("live")}
    for scene in known.values():
        yield from live_findings(scene, is_needed=scene.ref in open_questions)
        if not facts.is_offline:
            yield from of_references(scene, facts)
    if facts.is_offline:
        yield from _unsaid(facts, known)
    else:
        yield from of_deleted(facts)


def _settled(finding: Finding, known: Mapping[ObjectRef, CrdObjects], facts: Facts) -> Finding:
    ref = finding.ref
    scene = known.get(ref) if ref is not None and finding.section is Section.CRDS else None
    if scene is not None and is_unstored(finding, scene):
        return marked(finding, scene)
    if scene is not None:
        return scaled(finding, scene, facts) if finding.rule == "CRD-31" else settled(finding, scene)
    if ref is None or facts.stored is None or finding.rule not in _DELETIONS or ref.group_kind != CRD:
        return finding
    before = {one.ref.identity: one.body for one in (facts.previous.manifests if facts.previous else ())}
    gone = before.get(ref.identity)
    if gone is None or not facts.stored.tells_of(kind_of(gone)):
        return finding
    return counted(finding, kind_of(gone), facts.stored)


def _unsaid(facts: Facts, known: Mapping[ObjectRef, CrdObjects]) -> Iterator[Finding]:
    """The changed CRDs of which the objects that were given say nothing."""
    for planned, before, after in changed(facts):
        if planned.ref not in known:
            yield nothing_said(before, after)


def _lists(facts: Facts) -> Iterator[Listing]:
    """The objects of every CRD that changes, and what may count on a version or a scale that goes."""
    if facts.is_offline:
        return
    for _, before, after in changed(facts):
        old, new = Crd(before), Crd(after)
        yield from listings_of(old, new)
        if goes(old, new) or _loses_scale(old, new):
            yield from DEPENDENTS
    if any(deleted(facts)):
        yield from DEPENDENTS


def _loses_scale(old: Crd, new: Crd) -> bool:
    kept = {one.name for one in new.versions if one.scale is not None}
    return any(one.scale is not None and one.name not in kept for one in old.versions)


CHECK = Check("live", lists=_lists, settles=_settles, reads=frozenset({Reads.ROLES}))
