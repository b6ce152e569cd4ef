"""What going back to an earlier revision does not bring back: data that went since, and work that is done once more.

What a CRD of that revision cannot read any more is said where CRDs are compared (CRD-10, LIV-06), and that a Job is
replaced where objects are (IMM-01).
"""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.retention import STATEFUL_SET as _STATEFUL_SET
from provisioner.retention import takes_claims_along
from provisioner.review.base.facts import Check, Facts, Gone, ReviewRule, mapping, maps, said
from provisioner.review.workloads.volumes import CLAIM
from provisioner.values import Action, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_LOST = ReviewRule("HIS-01", Section.OBJECTS, Severity.DANGEROUS)
_KEPT = ReviewRule("HIS-01", Section.OBJECTS, Severity.NOTABLE)
_UNKNOWN = ReviewRule("HIS-01", Section.OBJECTS, Severity.UNKNOWN)
_RUNS_AGAIN = ReviewRule("HIS-02", Section.OBJECTS, Severity.DANGEROUS)

_JOB = GroupKind("batch", "Job")
_DONE = {Action.DELETE: "deleted", Action.REPLACE: "made anew"}
# What an object that is restored does not bring along.
_WITHOUT = {
    CLAIM: "without the data that it held",
    GroupKind("", "Namespace"): "with nothing in it but what this revision holds",
    GroupKind("", "PersistentVolume"): "without a volume; what its former storage still holds is not known",
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): "without the objects of its kind",
}


def _changes(facts: Facts) -> Iterator[Finding]:
    if facts.way_back is None:
        return
    bodies = {one.ref.identity: one.body for one in facts.content.manifests}
    for gone in facts.way_back.gone:
        kind = gone.ref.group_kind
        if kind in _WITHOUT:
            yield _LOST.at(gone.ref, f"{_since(gone)}: it is there {_WITHOUT[kind]}", evidence=_evidence(gone))
        elif kind == _STATEFUL_SET:
            yield from _of_stateful_set(gone, bodies.get(gone.ref.identity) or {}, facts)
    yield from _of_jobs(facts, facts.way_back.revision)


def _since(gone: Gone) -> str:
    return f"{said(gone.ref)} was {_DONE[gone.action]} with revision {gone.revision}"


def _evidence(gone: Gone) -> dict[str, object]:
    return {"revision": gone.revision, "action": str(gone.action)}


def _of_stateful_set(gone: Gone, body: JsonObject, facts: Facts) -> Iterator[Finding]:
    """The first claim of each template tells whether the data is still there."""
    claims = _first_claims(gone.ref, body)
    if not claims:
        return
    found = [facts.around.exists.get(one.identity) for one in claims]
    names = ", ".join(one.name for one in claims)
    rule, words = _KEPT, f"claims of its own are still there ({names}), and it takes them up again"
    if False in found:
        rule, words = _LOST, f"its volumes begin empty ({names})"
    elif None in found:
        why = "it took them along" if takes_claims_along(body) else "it was told to leave them"
        rule, words = _UNKNOWN, f"nobody could look up whether its claims are still there ({names}); {why}"
    yield rule.at(gone.ref, f"{_since(gone)}: {words}", evidence={**_evidence(gone), "claims": names}, key=str(rule))


def _first_claims(ref: ObjectRef, body: JsonObject) -> list[ObjectRef]:
    templates = maps(mapping(body.get("spec")).get("volumeClaimTemplates"))
    names = [str(mapping(one.get("metadata")).get("name") or "") for one in templates]
    return [ObjectRef("", "v1", CLAIM.kind, ref.namespace, f"{name}-{ref.name}-0") for name in names if name]


def _of_jobs(facts: Facts, revision: int) -> Iterator[Finding]:
    for planned in facts.plan.actions:
        if planned.ref.group_kind == _JOB and planned.action is Action.CREATE:
            words = f"{said(planned.ref)} runs again, as it did when revision {revision} was applied"
            yield _RUNS_AGAIN.at(planned.ref, words, evidence={"revision": revision})


def _mentions(facts: Facts) -> Iterator[ObjectRef]:
    """The first claims of stateful sets that were deleted or made anew."""
    bodies = {one.ref.identity: one.body for one in facts.content.manifests}
    for gone in facts.way_back.gone if facts.way_back else ():
        if gone.ref.group_kind == _STATEFUL_SET:
            yield from _first_claims(gone.ref, bodies.get(gone.ref.identity) or {})


CHECK = Check("way back", changes=_changes, mentions=_mentions)
