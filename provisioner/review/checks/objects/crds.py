"""What a changed CRD does: whether it still accepts what is stored and written, and what that means for what exists.

One check compares what both schemas accept. The other tries the objects, who writes them and what counts on them, and
says the findings of the first again by what it saw (`settles`): a change that breaks no object is not breaking.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from provisioner.json_values import items, value_at
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, Listing, Reads, ReviewRule
from provisioner.review.base.messages import with_message
from provisioner.review.crds.live_findings import (
    compare_crds,
    is_unstored,
    live_findings,
    marked,
    settled,
    with_condition,
)
from provisioner.review.crds.live_scene import (
    CRD,
    CrdObjects,
    changed,
    counted,
    kind_of,
    listings_of,
    nothing_said,
    owned_by_others,
    refused_names,
    scenes,
    taken_in_cluster,
    twice_taken,
)
from provisioner.review.crds.references import DEPENDENTS, deleted, goes, of_deleted, of_references, scaled
from provisioner.schema import validate_crd
from provisioner.schema.definition.crd import Crd
from provisioner.schema.verdicts import GONE_WITH_ALL, NOTHING_KNOWN, REJECTED
from provisioner.sentences import unescaped
from provisioner.values import Action, Content, Finding, JsonObject, ObjectRef, Plan, Section, Severity

_GONE = ReviewRule("CRD-08", Section.CRDS, Severity.BREAKING, GONE_WITH_ALL.as_mapping())
_INVALID = ReviewRule("CRD-19", Section.CRDS, Severity.BREAKING, REJECTED.as_mapping())
_NOT_COMPARED = ReviewRule("CRD-00", Section.CRDS, Severity.UNKNOWN, NOTHING_KNOWN.as_mapping())
_DELETIONS = frozenset({"CRD-08", "DEL-01"})


def compare_definitions(facts: Facts) -> Iterator[Finding]:
    manifests = facts.content.manifests
    wished = {manifest.ref.identity: manifest.body for manifest in manifests if manifest.ref.group_kind == CRD}
    before = _bodies_before(facts)
    for planned in facts.plan.actions:
        ref = planned.ref
        if ref.group_kind != CRD or planned.action in (Action.NONE, Action.ORPHAN):
            continue
        live = facts.live.get(ref.identity)
        old = live or (before.get(ref.identity) if facts.is_offline else None)
        if planned.action is Action.DELETE:
            yield say_deletion(ref, old or before.get(ref.identity))
            continue
        new = wished[ref.identity]
        if old is None and planned.action is Action.CREATE:
            # What the API server took in the dry-run is not judged again. Why it refused one, only some may read there.
            yield from () if planned.is_proved else judge_creation(ref, new)
        elif old is None:
            yield _NOT_COMPARED.finding("not-read", ref)
        elif planned.action is not Action.ADOPT:
            for found in compare_crds(old, new, is_accepted=planned.is_proved):
                yield with_message(replace(found, ref=found.ref or ref))
        # Whose the CRD and its names are now, as the cluster shows it.
        yield from taken_in_cluster(new, facts.around.kinds or ())
        if live is not None:
            yield from refused_names(live)
            yield from owned_by_others(live, new)
    yield from twice_taken(wished.values())


def _bodies_before(facts: Facts) -> dict[tuple[str, str, str, str], JsonObject]:
    return {manifest.ref.identity: manifest.body for manifest in (facts.previous.manifests if facts.previous else ())}


def say_deletion(ref: ObjectRef, old: JsonObject | None) -> Finding:
    """Return what goes with a CRD; `old` is what it was, if that is known."""
    kind = value_at(old, "spec", "names", "kind")
    stored = [str(version) for version in items(value_at(old, "status", "storedVersions"))]
    return _GONE.finding("deleted", ref, kind=str(kind) if kind else None, storedVersions=stored, live=True)


def judge_creation(ref: ObjectRef, new: JsonObject) -> Iterator[Finding]:
    """Find why the API server will refuse a CRD that it has not yet."""
    for error in validate_crd(new):
        rule, variant = (_NOT_COMPARED, "may-be-refused") if error.is_unknown else (_INVALID, "will-be-refused")
        key, words = [error.path, error.message], unescaped(error.message)
        yield rule.finding(variant, ref, key=key, path=error.path, words=words)


def want_definitions(_: Content, plan: Plan) -> list[ObjectRef]:
    return [planned.ref for planned in plan.actions if planned.ref.group_kind == CRD and planned.ref.version]


def settle_by_objects(facts: Facts, findings: Sequence[Finding]) -> Iterator[Finding]:
    """Say all findings again, those about changed CRDs by what was seen, and what the objects tell besides.

    Both are said here because trying thousands of objects is worth doing once. What no object settled says what one
    would have to be like.
    """
    known = {scene.ref: scene for scene in scenes(facts)}
    for finding in findings:
        yield with_condition(_settle_finding(finding, known, facts))
    open_questions = {finding.ref for finding in findings if finding.evidence.get("live")}
    for scene in known.values():
        yield from live_findings(scene, is_needed=scene.ref in open_questions)
        if not facts.is_offline:
            yield from of_references(scene, facts)
    if not facts.is_offline:
        yield from of_deleted(facts)
        return
    for planned, before, after in changed(facts):
        # The objects that were given say nothing of it.
        if planned.ref not in known:
            yield nothing_said(before, after)


def _settle_finding(finding: Finding, known: Mapping[ObjectRef, CrdObjects], facts: Facts) -> Finding:
    ref = finding.ref
    scene = known.get(ref) if ref is not None and finding.section is Section.CRDS else None
    if scene is not None and is_unstored(finding, scene):
        return marked(finding, scene)
    if scene is not None:
        return scaled(finding, scene, facts) if finding.rule == "CRD-31" else settled(finding, scene)
    if ref is None or facts.stored is None or finding.rule not in _DELETIONS or ref.group_kind != CRD:
        return finding
    gone = _bodies_before(facts).get(ref.identity)
    if gone is None or not facts.stored.tells_of(kind_of(gone)):
        return finding
    return counted(finding, kind_of(gone), facts.stored)


def list_crd_objects(facts: Facts) -> Iterator[Listing]:
    """List the objects of every CRD that changes, and what may count on a version or a scale that goes."""
    if facts.is_offline:
        return
    for _, before, after in changed(facts):
        old, new = Crd(before), Crd(after)
        yield from listings_of(old, new)
        with_scale = {version.name for version in new.versions if version.scale is not None}
        loses_scale = any(version.scale is not None and version.name not in with_scale for version in old.versions)
        if goes(old, new) or loses_scale:
            yield from DEPENDENTS
    if any(deleted(facts)):
        yield from DEPENDENTS


_CRDS = frozenset({CRD})
_CLAIMS = (
    Claim("CRD-01", _CRDS, ("spec.scope",)),
    Claim("CRD-02", _CRDS, ("spec.group",)),
    Claim("CRD-03", _CRDS, ("spec.names",)),
    Claim("CRD-11", _CRDS, ("spec.versions.*.name", "spec.version")),
    Claim("CRD-12", _CRDS, ("spec.versions.*.served",)),
    Claim("CRD-13", _CRDS, ("spec.versions.*.storage",)),
    Claim("CRD-16", _CRDS, ("spec.versions.*.deprecated", "spec.versions.*.deprecationWarning")),
    Claim("CRD-21", _CRDS, ("spec.conversion",)),
    Claim("CRD-27", _CRDS, ("spec.preserveUnknownFields",)),
    Claim("CRD-29", _CRDS, ("spec.versions.*.subresources", "spec.subresources")),
    Claim("CRD-33", _CRDS, ("spec.versions.*.additionalPrinterColumns", "spec.additionalPrinterColumns")),
    Claim("CRD-34", _CRDS, ("spec.versions.*.selectableFields",)),
    Claim("SCH-01", _CRDS, ("spec.versions.*.schema", "spec.validation")),
)

DEFINITIONS_CHECK = Check("crds", claims=_CLAIMS, changes=compare_definitions, wants=want_definitions)
OBJECTS_CHECK = Check("live", lists=list_crd_objects, settles=settle_by_objects, reads=frozenset({Reads.ROLES}))
