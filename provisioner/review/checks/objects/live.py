"""What a changed CRD does to what exists: its objects, who writes them, and what else in the cluster counts on it.

The check of CRDs compares two schemas; this one tries the objects and says the findings of the other again by what it
saw (`settles`): a change that could break objects and breaks none is not breaking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from provisioner.review.base.facts import Check, Facts, Listing
from provisioner.review.crds.live_findings import live_findings
from provisioner.review.crds.live_scene import changed, listings_of, scenes
from provisioner.review.crds.references import DEPENDENTS, deleted, goes, of_deleted, of_references, scaled
from provisioner.review.crds.severity_from_objects import settled
from provisioner.schema.definition.crd import Crd
from provisioner.values import Finding, Section


def _settles(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """All findings, those about changed CRDs by what was seen, and what the objects tell besides.

    Both are said here because trying thousands of objects is worth doing once.
    """
    known = {scene.ref: scene for scene in scenes(facts)}
    for finding in findings:
        scene = known.get(finding.ref) if finding.ref is not None and finding.section is Section.CRDS else None
        if scene is None:
            yield finding
        else:
            yield scaled(finding, scene, facts) if finding.rule == "CRD-31" else settled(finding, scene)
    open_questions = {one.ref for one in findings if one.evidence.get("live")}
    for scene in known.values():
        yield from live_findings(scene, is_needed=scene.ref in open_questions)
        yield from of_references(scene, facts)
    yield from of_deleted(facts)


def _lists(facts: Facts) -> Iterator[Listing]:
    """The objects of every CRD that changes, and what may count on a version or a scale that goes."""
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


CHECK = Check("live", lists=_lists, settles=_settles)
