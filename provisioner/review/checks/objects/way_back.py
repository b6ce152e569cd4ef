"""What going back to an earlier revision does not bring back: data that went since, and work that is done once more.

What a CRD of that revision cannot read any more is said where CRDs are compared (CRD-10, LIV-06), and that a Job is
replaced where objects are (IMM-01).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.retention import STATEFUL_SET as _STATEFUL_SET
from provisioner.retention import takes_claims_along
from provisioner.review.base.facts import Check, Facts, Gone, ReviewRule, mapping, maps
from provisioner.review.workloads.mounts import CLAIM
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_LOST = ReviewRule("HIS-01", Section.OBJECTS, Severity.DANGEROUS)
_KEPT = ReviewRule("HIS-01", Section.OBJECTS, Severity.NOTABLE)
_UNKNOWN = ReviewRule("HIS-01", Section.OBJECTS, Severity.UNKNOWN)
_RUNS_AGAIN = ReviewRule("HIS-02", Section.OBJECTS, Severity.DANGEROUS)

_JOB = GroupKind("batch", "Job")
# The messages about what an object that is restored does not bring along.
_WITHOUT = {
    CLAIM: "without-data",
    GroupKind("", "Namespace"): "without-contents",
    GroupKind("", "PersistentVolume"): "without-volume",
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): "without-objects",
}


def _changes(facts: Facts) -> Iterator[Finding]:
    if facts.way_back is None:
        return
    bodies = {one.ref.identity: one.body for one in facts.content.manifests}
    for gone in facts.way_back.gone:
        kind = gone.ref.group_kind
        if kind in _WITHOUT:
            yield _LOST.finding(_WITHOUT[kind], gone.ref, **_since(gone))
        elif kind == _STATEFUL_SET:
            yield from _of_stateful_set(gone, bodies.get(gone.ref.identity) or {}, facts)
    yield from _of_jobs(facts, facts.way_back.revision)


def _since(gone: Gone) -> dict[str, Any]:
    return {"revision": gone.revision, "action": str(gone.action)}


def _of_stateful_set(gone: Gone, body: JsonObject, facts: Facts) -> Iterator[Finding]:
    """The first claim of each template tells whether the data is still there."""
    claims = _first_claims(gone.ref, body)
    if not claims:
        return
    found = [facts.around.exists.get(one.identity) for one in claims]
    rule, variant = _KEPT, "claims-kept"
    if False in found:
        rule, variant = _LOST, "claims-gone"
    elif None in found:
        rule, variant = _UNKNOWN, "claims-taken-along" if takes_claims_along(body) else "claims-left"
    key, names = str(rule.severity), [one.name for one in claims]
    yield rule.finding(variant, gone.ref, key=key, **_since(gone), claims=names)


def _first_claims(ref: ObjectRef, body: JsonObject) -> list[ObjectRef]:
    templates = maps(mapping(body.get("spec")).get("volumeClaimTemplates"))
    names = [str(mapping(one.get("metadata")).get("name") or "") for one in templates]
    return [ObjectRef("", "v1", CLAIM.kind, ref.namespace, f"{name}-{ref.name}-0") for name in names if name]


def _of_jobs(facts: Facts, revision: int) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.ref.group_kind == _JOB and planned.action is Action.CREATE:
            yield _RUNS_AGAIN.finding("runs-again", planned.ref, revision=revision)


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    """The first claims of stateful sets that were deleted or made anew."""
    bodies = {one.ref.identity: one.body for one in facts.content.manifests}
    for gone in facts.way_back.gone if facts.way_back else ():
        if gone.ref.group_kind == _STATEFUL_SET:
            yield from _first_claims(gone.ref, bodies.get(gone.ref.identity) or {})


CHECK = Check("way back", changes=_changes, mentions=_mentions)
